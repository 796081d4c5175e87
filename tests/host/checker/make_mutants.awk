# SPDX-License-Identifier: BSD-2-Clause
#
# Puts every mutation of a lock header into one copy of it, each behind a switch, so that all mutants are compiled at
# once and one is chosen when the checker starts (mutant schemata: Untch, Offutt, Harrold, ISSTA 1993).
#
#   awk -v list=FILE -v first=N -v lock=NAME -f make_mutants.awk HEADER > COPY
#
# Appends one line per mutant to `list`: number|lock|header:line|operator|the statement. `lock` is who checks a header
# that is not a lock itself. Numbers begin at `first`. The operators are those that lock code dies of:
#   weaken        one memory order becomes relaxed
#   unfence       an exchange that is only a barrier becomes a relaxed store
#   drop          one store, kick, release or call is left out
#   blind         a last look before sleeping is not taken
#   mismatch      a cmpxchg expects another value
#   tear          a cmpxchg is a load and a store
#   widen         a store to the locked byte takes the pending byte with it
#   misdirect     a kick goes to the next CPU
#   reuse         a nested wait gets the node of the outer one
#   impatient     one spin loop ends at once

function number(operator, text) {
    sub(/^ +/, "", text)
    gsub(/[ \t]+/, " ", text)
    printf "%d|%s|%s:%d|%s|%s\n", ++last, lock, name, line, operator, text >> list
    return "spinkick_mutant == " last
}

function weaken(code, original,    out, order) {
    if (code ~ /signal_fence/) # binds the compiler only, and no choice of the checker
        return code
    out = ""
    while (match(code, /std::memory_order_(acquire|release|acq_rel|seq_cst)/)) {
        order = substr(code, RSTART, RLENGTH)
        out = out substr(code, 1, RSTART - 1) "(" number("weaken " substr(order, 19), original) \
            " ? std::memory_order_relaxed : " order ")"
        code = substr(code, RSTART + RLENGTH)
    }
    return out code
}

function mutate(code,    original, weak) {
    original = code
    code = weaken(code, original)
    if (match(code, /\.compare_exchange_strong\(/))
        code = substr(code, 1, RSTART) "compare_exchange_torn_if(" number("tear", original) ", " \
            substr(code, RSTART + RLENGTH)
    if (match(code, /word_?\.locked\(\)\.store\(/))
        code = substr(code, 1, RSTART - 1) "if (" number("widen", original) ") " \
            substr(code, RSTART, index(substr(code, RSTART), ".") - 1) ".locked_pending()" \
            substr(original, index(original, ".store("), index(original, ";") - index(original, ".store(")) \
            "; else " substr(code, RSTART)
    sub(/depth\+\+;$/, "depth++ * (" (code ~ /depth\+\+;$/ ? number("reuse", original) : "") " ? 0 : 1);", code)
    if (code ~ /TimedKicks<B>::kick\(.*\);$/) {
        sub(/kick\(/, "kick(CpuId{(raw(", code)
        sub(/\);$/, ") + (" number("misdirect", original) ")) % B::kMaxCpus});", code)
    }

    if (original ~ /^ +[A-Za-z_][A-Za-z_0-9.:<>()\[\]-]*\.exchange\(.*;$/) {
        weak = original
        sub(/\.exchange\(/, ".store(", weak)
        sub(/std::memory_order_[a-z_]+/, "std::memory_order_relaxed", weak)
        return "if (" number("unfence", original) ") {" weak "} else {" code "}"
    }
    if (original ~ /^ +[A-Za-z_][A-Za-z_0-9.:<>()\[\]\-]*(\.|->)(store|fetch_or|fetch_and|compare_exchange_strong)\(.*;$/ ||
        original ~ /^ +(TimedKicks<B>::kick|kick_[a-z]+|drop_flag|(nodes_|Queue::nodes\(\))\.release|erase|Hash::erase|Queue::grant|(Queue|Unfair)::leave)\(.*;$/ ||
        original ~ /^ +\(void\).*compare_exchange_strong\(.*;$/)
        return "{ if (!(" number("drop", original) ")) {" code "} }" # braces: an else may follow
    if (original ~ /noexcept \{ return .*; \}\);$/) {
        sub(/\{ return /, "{ return !(" number("blind", original) ") \\&\\& (", code)
        sub(/; \}\);$/, "); });", code)
        return code
    }
    if (original ~ /^ +if \(node\.(locked|granted)\.load\(std::memory_order_seq_cst\) == 0\) \{$/) {
        sub(/if \(/, "if ((" number("blind", original) ") || ", code)
        return code
    }
    if (original ~ /^ +(std::uint(8|16|32)_t|const void\*) [a-z]+ = [^=]*;$/ && original !~ /load|exchange|depth/) {
        if (original ~ /void/)
            sub(/= /, "= (" number("mismatch", original) ") ? reinterpret_cast<const void*>(8) : ", code)
        else {
            sub(/= /, "= (" number("mismatch", original) ") ^ (", code)
            sub(/;$/, ");", code)
        }
        return code
    }
    if (original ~ /^ +(\} )?while \(.*\)( \{|;)?$/) {
        sub(/while \(/, "while (!(" number("impatient", original) ") \\&\\& (", code)
        if (!sub(/\) \{$/, ")) {", code) && !sub(/\);$/, "));", code))
            sub(/\)$/, "))", code)
        return code
    }
    return code
}

function count(text, what) { return gsub(what, "", text) }

BEGIN {
    last = first - 1
}
FNR == 1 {
    name = FILENAME
    sub(/.*\//, "", name)
}
/kName = "/ {
    lock = $0
    sub(/.*kName = "/, "", lock)
    sub(/".*/, "", lock)
}
# Not part of taking or releasing a lock, or of a negative control only: left as they are.
skip != "" {
    print
    if (index($0, skip "}") == 1) skip = ""
    next
}
/if constexpr \(.*published\) \{$/ || (/(reset_cpu|at_rest|erase_if|empty|word)\(.*\{$/ && !/word_/) {
    match($0, /^ */)
    skip = substr($0, 1, RLENGTH)
    print
    next
}
/(reset_cpu|at_rest|[^a-z]word)\(.*\}$/ || /^ *(\/\/|#|static_assert|template|using|static constexpr)/ {
    print
    next
}
{
    code = $0
    sub(/ *\/\/.*$/, "", code)
    if (held == "")
        line = FNR
    held = held code " "
    if (count(held, "\\(") > count(held, "\\)"))
        next
    sub(/ $/, "", held)
    gsub(/   +/, " ", held)
    print held == "" ? "" : mutate("        " substr(held, match(held, /[^ ]/)))
    held = ""
}
