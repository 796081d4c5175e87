# SPDX-License-Identifier: BSD-2-Clause
#
# Reads `objdump -d --no-show-raw-insn` and prints every function with a loop that waits for memory to change and has no spin hint. Of a
# function's control flow only those instructions are kept that load, compare and jump; whatever cycle is left waits and does nothing
# else: it does not count, store, call, or PAUSE.
function only_looks(i) {
    if (text[i] ~ /nopl *0x5350\(/) return 0 # no hint, on request
    if (insn[i] ~ /^(j|nop|cs|data16|set)/) return 1
    if (insn[i] !~ /^(mov|cmp|test)/) return 0
    return !(insn[i] ~ /^mov/ && text[i] ~ /,[^,(]*\([^)]*\)$/) # a store
}

function edge(from, to) {
    if (!(from in kept) || !(to in kept)) return
    next_of[from] = next_of[from] " " to
    ++comes[to]
}

function judge(    i, k, parts, count, queue, head, tail, loads) {
    for (i = 1; i <= n; ++i) if (only_looks(i)) kept[i] = 1
    for (i = 1; i <= n; ++i) {
        if (insn[i] ~ /^j/ && (target[i] in line_of)) edge(i, line_of[target[i]])
        if (insn[i] !~ /^(jmp|ret)/ && i < n) edge(i, i + 1)
    }
    # What can be taken away from the front again and again is on no cycle.
    tail = 0
    for (i in kept) if (!comes[i]) queue[++tail] = i
    for (head = 1; head <= tail; ++head) {
        count = split(next_of[queue[head]], parts, " ")
        delete kept[queue[head]]
        for (k = 1; k <= count; ++k) if (--comes[parts[k]] == 0) queue[++tail] = parts[k]
    }
    # The rest is on a cycle or behind one; only a load that can reach itself waits for something.
    for (i in kept) if (text[i] ~ /\(.*\)/ && insn[i] !~ /^(j|nop|cs|data16)/ && reaches_itself(i)) {
        print name ": " text[i]
        found = 1
        break
    }
}

function reaches_itself(start,    seen, stack, top, at, parts, count, k) {
    stack[top = 1] = start
    while (top > 0) {
        at = stack[top--]
        count = split(next_of[at], parts, " ")
        for (k = 1; k <= count; ++k) {
            if (parts[k] == start) return 1
            if ((parts[k] in kept) && !(parts[k] in seen)) {
                seen[parts[k]] = 1
                stack[++top] = parts[k]
            }
        }
    }
    return 0
}

function forget() {
    n = 0
    split("", line_of)
    split("", text)
    split("", insn)
    split("", target)
    split("", kept)
    split("", next_of)
    split("", comes)
}

/^[0-9a-f]+ <.*>:$/ {
    judge()
    forget()
    name = $0
    sub(/^[0-9a-f]+ </, "", name)
    sub(/>:$/, "", name)
}
/^ *[0-9a-f]+:/ {
    address = $1
    sub(/:/, "", address)
    line_of[address] = ++n
    text[n] = $0
    insn[n] = $2
    target[n] = $3
}
END {
    judge()
    exit found
}
