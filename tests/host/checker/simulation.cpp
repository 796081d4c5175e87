// SPDX-License-Identifier: BSD-2-Clause
#include "tests/host/checker/simulation.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/host/checker/fibre.hpp"

extern "C" char
    __data_start[]; // the linker's: initialised and zeroed data of this program, where the locks keep theirs
extern "C" char _end[];

namespace spinkick::checker {
namespace {

/// The same in every run, so that what a lock makes of its own address (a hash) is the same in a replay.
constexpr std::uintptr_t kArenaAddress = 0x2000'0000'0000;
constexpr std::size_t kArenaSize = 48 * 1024;

/// A CPU that has looked this often and seen nothing change will not find out by looking. More than any bounded wait of
/// a lock, because these may end by their bound.
constexpr unsigned kPatience = 1100;

/// Of Region::is_statistic.
constexpr std::uint8_t kUnknown = 0;
constexpr std::uint8_t kNoStatistic = 1;
constexpr std::uint8_t kStatistic = 2;

constexpr std::uint32_t kMostEarlyReads = 2;

Simulation* the_simulation = nullptr;

bool overlap(std::uintptr_t a, std::size_t a_size, std::uintptr_t b, std::size_t b_size) {
    return a < b + b_size && b < a + a_size;
}

bool acquires(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
}

bool touches_memory(OpKind kind) { return kind <= OpKind::fetch_and; }

/// A store with seq_cst is an exchange on this machine.
bool is_rmw(const Op& op) {
    return (op.kind >= OpKind::exchange && op.kind <= OpKind::fetch_and) ||
           (op.kind == OpKind::store && op.order == std::memory_order_seq_cst);
}

std::uint64_t peek(std::uintptr_t address, unsigned size) {
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const void*>(address), size);
    return value;
}

/// Puts those bytes of the `from` that lie in the `into` there.
void overlay(std::uint64_t& into, std::uintptr_t into_at, unsigned into_size, std::uint64_t from,
             std::uintptr_t from_at, unsigned from_size) {
    for (unsigned byte = 0; byte < from_size; ++byte) {
        const std::uintptr_t at = from_at + byte;
        if (at < into_at || at >= into_at + into_size)
            continue;
        const unsigned shift = static_cast<unsigned>(at - into_at) * 8;
        into = (into & ~(std::uint64_t{0xff} << shift)) | ((from >> (byte * 8)) & 0xff) << shift;
    }
}

__extension__ using Wide = unsigned __int128;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<Wide>(a ^ 0x9e37'79b9'7f4a'7c15u) * (b ^ 0xd1b5'4a32'd192'ed03u);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) {
    const auto* bytes = static_cast<const std::byte*>(data);
    std::uint64_t hash = seed;
    std::uint64_t words[2] = {};
    for (; size >= sizeof words; size -= sizeof words, bytes += sizeof words) {
        std::memcpy(words, bytes, sizeof words);
        hash = mix(hash + words[0], words[1] ^ (hash << 32 | hash >> 32));
    }
    words[0] = words[1] = 0;
    std::memcpy(words, bytes, size);
    return mix(hash + words[0], words[1] ^ size ^ (hash << 32 | hash >> 32));
}

const char* name_of(std::memory_order order) {
    switch (order) {
    case std::memory_order_relaxed:
        return "relaxed";
    case std::memory_order_consume:
        return "consume";
    case std::memory_order_acquire:
        return "acquire";
    case std::memory_order_release:
        return "release";
    case std::memory_order_acq_rel:
        return "acq_rel";
    case std::memory_order_seq_cst:
        return "seq_cst";
    }
    return "?";
}

} // namespace

std::string to_string(const Choices& schedule) {
    std::string text;
    for (const Choice& choice : schedule) {
        text += static_cast<char>(choice.kind);
        text += static_cast<char>('0' + choice.cpu);
    }
    return text;
}

bool parse(const std::string& text, Choices& schedule) {
    schedule.clear();
    for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
        const Choice choice{Choice::Kind{text[at]}, static_cast<std::uint8_t>(text[at + 1] - '0')};
        if (!(choice.is_flush() && choice.entry() < Simulation::kBufferEntries) &&
            std::strchr("sewi", text[at]) == nullptr)
            return false;
        if (choice.cpu >= Simulation::kMaxCpus)
            return false;
        schedule.push_back(choice);
    }
    return text.size() % 2 == 0;
}

// --- from the CPUs ---------------------------------------------------------------------------------------------------

void perform(Op& op) noexcept { the_simulation->perform(op); }
std::uint32_t current_cpu() noexcept { return the_simulation->current_cpu() % Simulation::kMaxCpus; }
void spin_hint() noexcept { the_simulation->spin_hint(); }
void count_event(sync::LockEvent event, std::uint64_t n) noexcept { the_simulation->count(event, n); }
bool wait_dozes() noexcept { return the_simulation->wait_dozes(); }
bool wait_arms() noexcept { return the_simulation->wait_arms(); }
void mask_interrupts(bool on) noexcept { the_simulation->mask(on); }

Simulation& Simulation::instance() { return *the_simulation; }

void Simulation::perform(Op& op) {
    if (running_ == kMaxCpus) { // the checker itself, before or after a run
        ++direct_accesses_;
        track(op.address);
        if (!failure_.empty())
            return; // perhaps there is nothing at this address
        const std::uint64_t found = peek(op.address, op.size);
        op.result = found;
        std::uint64_t value = op.operand;
        if (op.kind == OpKind::compare_exchange && found != op.expected)
            value = found;
        else if (op.kind == OpKind::fetch_add)
            value = found + op.operand;
        else if (op.kind == OpKind::fetch_sub)
            value = found - op.operand;
        else if (op.kind == OpKind::fetch_or)
            value = found | op.operand;
        else if (op.kind == OpKind::fetch_and)
            value = found & op.operand;
        if (op.kind != OpKind::load && touches_memory(op.kind))
            std::memcpy(reinterpret_cast<void*>(op.address), &value, op.size);
        return;
    }
    if (is_statistic(op))
        return;
    Cpu& cpu = state_.cpus[running_];
    for (;;) {
        cpu.op = &op;
        spinkick_switch_stack(&cpu.stack_pointer, scheduler_);
        if (!cpu.deliver)
            return;
        cpu.deliver = false;
        const bool masked = cpu.masked;
        cpu.masked = true;
        cpu.in_handler = true;
        run_handler();
        cpu.in_handler = false;
        cpu.masked = masked;
        if (op.kind == OpKind::halt && scenario_.fault != MachineFault::sleeps_through)
            return; // a sleep ends by an interrupt
    }
}

void Simulation::spin_hint() {
    if (running_ == kMaxCpus)
        return;
    Cpu& cpu = state_.cpus[running_];
    if (cpu.idle < kPatience)
        ++cpu.idle;
}

void Simulation::count(sync::LockEvent event, std::uint64_t n) {
    events_[static_cast<std::size_t>(event)] += n;
    if (event == sync::LockEvent::lock_corrupt && running_ != kMaxCpus)
        fail("the lock reports a corrupt word or hash (event lock_corrupt)");
}

void Simulation::fibre_entry() {
    Simulation& self = instance();
    self.run_rounds();
    Op end{OpKind::finish, 0, std::memory_order_relaxed, std::memory_order_relaxed, 0, 0, 0, 0};
    self.perform(end);
    std::abort(); // nobody moves a CPU that has finished
}

void Simulation::run_rounds() {
    const unsigned me = running_;
    const unsigned task_locks =
        scenario_.interrupts != 0 && !scenario_.handler_waits ? scenario_.locks - 1 : scenario_.locks;
    for (unsigned round = 0; round < scenario_.rounds; ++round) {
        const unsigned n = (me + round) % task_locks;
        if (!(scenario_.try_first && me % 2 == 1 && lock_.try_lock(lock_at(n))))
            lock_.lock(lock_at(n));
        const bool last = section(n);
        lock_.unlock(lock_at(n));
        if (scenario_.frees && last)
            state_.freed_by = me + 1;
    }
    if (scenario_.handler_waits && me + 1 == scenario_.cpus)
        data_of(0)[2].store(1, std::memory_order_release);
}

void Simulation::run_handler() {
    if (scenario_.handler_waits) {
        while (data_of(0)[2].load(std::memory_order_acquire) == 0)
            spin_hint();
        return;
    }
    const unsigned n = scenario_.locks - 1;
    lock_.lock(lock_at(n));
    section(n);
    lock_.unlock(lock_at(n));
}

bool Simulation::section(unsigned n) {
    if (++state_.inside[n] != 1)
        fail("mutual exclusion: cpu%u comes into the section of lock %u and is not alone", running_, n);
    Atomic<std::uint32_t>* const data = data_of(n);
    const std::uint32_t left = data[0].load(std::memory_order_relaxed);
    const std::uint32_t right = data[1].load(std::memory_order_relaxed);
    if (left != right || left != state_.sections[n])
        fail("mutual exclusion: cpu%u finds %u,%u in the data of lock %u; the %u sections before it left %u,%u",
             running_, left, right, n, state_.sections[n], state_.sections[n], state_.sections[n]);
    data[0].store(left + 1, std::memory_order_relaxed);
    data[1].store(left + 1, std::memory_order_relaxed);
    ++state_.sections[n];
    --state_.inside[n];
    return state_.sections[n] == scenario_.cpus * scenario_.rounds;
}

void Simulation::check_freed(unsigned n, const Op& op) {
    if (state_.freed_by != 0 && state_.freed_by != n + 1 && touches_memory(op.kind) &&
        op.address - reinterpret_cast<std::uintptr_t>(lock_at(0)) < lock_.size)
        fail("use after free: cpu%u touches %s after its unlock, and cpu%u, the last holder, has freed it", n,
             location(op.address).c_str(), static_cast<unsigned>(state_.freed_by - 1));
}

// --- one machine -----------------------------------------------------------------------------------------------------

Simulation::Simulation() {
    the_simulation = this;
    (void)locks_under_check();
    void* const arena =
        mmap(reinterpret_cast<void*>(kArenaAddress), kArenaSize + kMaxCpus * kStackSize, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (arena == MAP_FAILED) {
        std::perror("checker: mmap of the CPUs' stacks at a fixed address");
        std::exit(2);
    }
    arena_ = static_cast<std::byte*>(arena);
    stacks_ = arena_ + kArenaSize;
    regions_[0].base = kArenaAddress;
    regions_[0].size = kArenaSize;
    regions_[1].base = reinterpret_cast<std::uintptr_t>(__data_start) & ~(kLine - 1);
    regions_[1].size = (reinterpret_cast<std::uintptr_t>(_end) + kLine - 1) / kLine * kLine - regions_[1].base;
    for (Region& region : regions_) {
        const auto* bytes = reinterpret_cast<const std::byte*>(region.base);
        region.pristine.assign(bytes, bytes + region.size);
        region.tracked.assign(region.size / kLine, false);
        region.is_statistic.assign(region.size / 8, kUnknown);
    }
}

Simulation::~Simulation() {
    munmap(arena_, kArenaSize + kMaxCpus * kStackSize);
    the_simulation = nullptr;
}

void Simulation::start(const LockUnderCheck& lock, const Scenario& scenario) {
    lock_ = lock;
    scenario_ = scenario;
    failure_.clear();
    printed_ = 0;
    running_ = kMaxCpus;
    for (const std::uintptr_t line : lines_)
        for (const Region& region : regions_)
            if (line - region.base < region.size)
                std::memcpy(reinterpret_cast<void*>(line), &region.pristine[line - region.base], kLine);
    set_spin_threshold(scenario.threshold);
    for (Region& region : regions_)
        std::memcpy(region.pristine.data(), reinterpret_cast<const void*>(region.base), region.size);
    std::memset(static_cast<void*>(&state_), 0, sizeof state_);
    for (unsigned n = 0; n < scenario.locks; ++n) {
        lock.construct(lock_at(n));
        new (data_of(n)) Atomic<std::uint32_t>[ 3 ];
        track(reinterpret_cast<std::uintptr_t>(lock_at(n)));
        track(reinterpret_cast<std::uintptr_t>(data_of(n)));
    }
    accesses_when_new_ = accesses_of_a_section(0);
    lock.construct(lock_at(0));
    std::memset(stacks_, 0, kMaxCpus * kStackSize); // what an earlier run has left would tell equal states apart
    for (unsigned cpu = 0; cpu < scenario.cpus; ++cpu) {
        state_.cpus[cpu].stack_pointer = fresh_stack(stack_top(cpu), &Simulation::fibre_entry);
        state_.cpus[cpu].spurious_left = static_cast<std::uint8_t>(scenario.spurious);
        if (!scenario.handler_waits || cpu == 0)
            state_.cpus[cpu].interrupts_left = static_cast<std::uint8_t>(scenario.interrupts);
        resume(cpu);
    }
    settle();
}

void Simulation::resume(unsigned cpu) {
    running_ = cpu;
    spinkick_switch_stack(&scheduler_, state_.cpus[cpu].stack_pointer);
    running_ = kMaxCpus;
    const Op& op = *state_.cpus[cpu].op;
    if (touches_memory(op.kind))
        track(op.address);
}

/// A store goes into the CPU's own buffer, where nobody else sees it: when it does so makes no difference to anybody,
/// so it does at once, and is no choice.
void Simulation::settle() {
    for (unsigned cpu = 0; cpu < scenario_.cpus; ++cpu) {
        Cpu& self = state_.cpus[cpu];
        while (self.op->kind == OpKind::store && !is_rmw(*self.op) && self.buffered < kBufferEntries) {
            const Op& op = *self.op;
            check_freed(cpu, op);
            if (tracing_)
                print_op(cpu, op, "into the store buffer");
            self.buffer[self.buffered++] = {op.address, op.operand, op.size, releases(op.order)};
            self.idle = 0;
            resume(cpu);
        }
    }
}

bool Simulation::must_drain(const Op& op, const Entry& entry) const {
    return is_rmw(op) && (scenario_.memory == MemoryModel::tso || releases(op.order) ||
                          overlap(op.address, op.size, entry.address, entry.size));
}

bool Simulation::drained(const Cpu& cpu) const {
    return std::none_of(cpu.buffer.begin(), cpu.buffer.begin() + cpu.buffered,
                        [&](const Entry& entry) { return must_drain(*cpu.op, entry); });
}

bool Simulation::can_step(unsigned n, unsigned patience) const {
    const Cpu& cpu = state_.cpus[n];
    switch (cpu.op->kind) {
    case OpKind::finish:
        return false;
    case OpKind::halt:
        return cpu.kicked;
    case OpKind::kick:
    case OpKind::arm:
    case OpKind::doze:
        return true;
    case OpKind::store:
        if (!is_rmw(*cpu.op))
            return false; // a full buffer
        break;
    default:
        break;
    }
    return cpu.idle < patience && drained(cpu);
}

/// A flush is offered only when somebody is about to notice: it can be put off past everything else.
void Simulation::add_flushes(unsigned n, bool force, Choices& out) const {
    const Cpu& self = state_.cpus[n];
    const bool tso = scenario_.memory == MemoryModel::tso;
    std::array<bool, kBufferEntries> wanted{};
    for (unsigned k = self.buffered; k-- > 0;) {
        const Entry& entry = self.buffer[k];
        wanted[k] = force || must_drain(*self.op, entry) || (self.op->kind == OpKind::store && k == 0);
        for (unsigned later = k + 1; later < self.buffered && !wanted[k]; ++later)
            wanted[k] = wanted[later] &&
                        (tso || self.buffer[later].release ||
                         overlap(entry.address, entry.size, self.buffer[later].address, self.buffer[later].size));
        for (unsigned other = 0; other < scenario_.cpus && !wanted[k]; ++other) {
            if (other == n)
                continue;
            const Cpu& they = state_.cpus[other];
            wanted[k] =
                touches_memory(they.op->kind) && overlap(entry.address, entry.size, they.op->address, they.op->size);
            for (unsigned their = 0; their < they.buffered && !wanted[k]; ++their)
                wanted[k] = overlap(entry.address, entry.size, they.buffer[their].address, they.buffer[their].size);
        }
    }
    for (unsigned k = 0; k < self.buffered; ++k) {
        bool first = true;
        for (unsigned older = 0; older < k && first; ++older)
            first = !(tso || self.buffer[k].release ||
                      overlap(self.buffer[k].address, self.buffer[k].size, self.buffer[older].address,
                              self.buffer[older].size));
        if (first && wanted[k])
            out.push_back({Choice::Kind{static_cast<char>('A' + k)}, static_cast<std::uint8_t>(n)});
    }
}

void Simulation::choices(Choices& out) {
    out.clear();
    if (!failure_.empty())
        return;
    const auto add_steps = [&](unsigned patience) {
        for (unsigned i = 0; i < scenario_.cpus; ++i) { // the CPU that moved last comes first
            const auto cpu = static_cast<std::uint8_t>((state_.last_cpu + i) % scenario_.cpus);
            if (!can_step(cpu, patience))
                continue;
            out.push_back({Choice::Kind::step, cpu});
            std::uint64_t ignored = 0;
            if (stale_value(state_.cpus[cpu], *state_.cpus[cpu].op, ignored))
                out.push_back({Choice::Kind::early, cpu});
        }
    };
    add_steps(scenario_.threshold + 1);
    for (unsigned cpu = 0; cpu < scenario_.cpus; ++cpu)
        add_flushes(cpu, false, out);
    if (out.empty())
        for (unsigned cpu = 0; cpu < scenario_.cpus; ++cpu)
            add_flushes(cpu, true, out);
    if (out.empty())
        add_steps(kPatience);
    if (out.empty()) {
        check_end();
        return;
    }
    for (unsigned n = 0; n < scenario_.cpus; ++n) {
        const Cpu& cpu = state_.cpus[n];
        const OpKind kind = cpu.op->kind;
        if (kind == OpKind::halt && cpu.spurious_left != 0)
            out.push_back({Choice::Kind::wake, static_cast<std::uint8_t>(n)});
        if (cpu.interrupts_left != 0 && !cpu.in_handler && kind != OpKind::finish &&
            (kind == OpKind::halt || (!cpu.masked && !scenario_.handler_waits)))
            out.push_back({Choice::Kind::interrupt, static_cast<std::uint8_t>(n)});
    }
}

bool Simulation::is_preemption(Choice choice) const {
    if (choice.is_flush() || choice.cpu == state_.last_cpu)
        return false;
    const auto last = static_cast<unsigned>(state_.last_cpu);
    return state_.cpus[last].idle == 0 && can_step(last, 1);
}

void Simulation::apply(Choice choice) {
    Cpu& cpu = state_.cpus[choice.cpu];
    if (choice.is_flush()) {
        flush(choice.cpu, choice.entry());
        return;
    }
    state_.last_cpu = choice.cpu;
    switch (choice.kind) {
    case Choice::Kind::wake:
        --cpu.spurious_left;
        if (tracing_)
            print_op(choice.cpu, *cpu.op, "ends for no reason");
        forget(cpu);
        break;
    case Choice::Kind::interrupt:
        --cpu.interrupts_left;
        cpu.deliver = true;
        cpu.idle = 0;
        if (tracing_)
            print_op(choice.cpu, *cpu.op, "interrupted before");
        break;
    default:
        execute(choice.cpu, choice.kind == Choice::Kind::early);
        break;
    }
    resume(choice.cpu);
    settle();
}

/// Loads from here on see what others have written by now.
void Simulation::forget(Cpu& cpu) {
    cpu.stales = 0;
    cpu.stale.fill({});
}

void Simulation::execute(unsigned n, bool early) {
    Cpu& cpu = state_.cpus[n];
    Op& op = *cpu.op;
    check_freed(n, op);
    switch (op.kind) {
    case OpKind::kick:
        state_.kicks_sent ^= 1;
        // A CPU beyond the scenario's exists and does not care.
        if (op.operand < scenario_.cpus && (scenario_.fault != MachineFault::drops_kicks || state_.kicks_sent != 0) &&
            (scenario_.fault != MachineFault::forgets_kicks || state_.cpus[op.operand].op->kind == OpKind::halt)) {
            state_.cpus[op.operand].kicked = true;
            state_.cpus[op.operand].idle = 0;
        }
        if (tracing_)
            print_op(n, op, "");
        return;
    case OpKind::doze:
        if (tracing_)
            print_op(n, op, "");
        return;
    case OpKind::arm:
        cpu.kicked = false;
        forget(cpu);
        if (tracing_)
            print_op(n, op, "");
        return;
    case OpKind::halt:
        cpu.kicked = false;
        forget(cpu);
        if (tracing_)
            print_op(n, op, "ends by a kick");
        return;
    case OpKind::load:
        if (early) {
            read_early(cpu, op);
        } else {
            op.result = read(cpu, op.address, op.size);
            const auto end = std::remove_if(cpu.stale.begin(), cpu.stale.begin() + cpu.stales, [&](const Stale& stale) {
                return acquires(op.order) || overlap(stale.address, stale.size, op.address, op.size);
            });
            cpu.stales = static_cast<std::uint8_t>(end - cpu.stale.begin());
            std::fill(end, cpu.stale.end(), Stale{});
        }
        if (tracing_)
            print_op(n, op, early ? "satisfied before the last change" : "");
        return;
    default:
        break;
    }
    // A locked instruction.
    const std::uint64_t mask = op.size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (op.size * 8)) - 1;
    const std::uint64_t found = read(cpu, op.address, op.size);
    std::uint64_t value = op.operand;
    std::memory_order order = op.order;
    bool writes = true;
    if (op.kind == OpKind::compare_exchange && found != op.expected) {
        writes = false;
        order = op.failure;
    } else if (op.kind == OpKind::fetch_add) {
        value = (found + op.operand) & mask;
    } else if (op.kind == OpKind::fetch_sub) {
        value = (found - op.operand) & mask;
    } else if (op.kind == OpKind::fetch_or) {
        value = found | op.operand;
    } else if (op.kind == OpKind::fetch_and) {
        value = found & op.operand;
    }
    if (writes)
        write(n, op.address, op.size, value);
    if (acquires(order)) {
        forget(cpu);
    }
    op.result = found;
    if (tracing_)
        print_op(n, op, writes ? "" : "no match");
}

void Simulation::flush(unsigned n, unsigned k) {
    Cpu& cpu = state_.cpus[n];
    const Entry entry = cpu.buffer[k];
    std::copy(cpu.buffer.begin() + k + 1, cpu.buffer.begin() + cpu.buffered, cpu.buffer.begin() + k);
    cpu.buffer[--cpu.buffered] = {};
    if (tracing_)
        std::printf("%5u  cpu%u  .. its store to %s of %#llx becomes visible\n", ++printed_, n,
                    location(entry.address).c_str(), static_cast<unsigned long long>(entry.value));
    write(n, entry.address, entry.size, entry.value);
    settle(); // a store may have waited for the room
}

void Simulation::write(unsigned n, std::uintptr_t address, unsigned size, std::uint64_t value) {
    const std::uint64_t before = peek(address, size);
    std::memcpy(reinterpret_cast<void*>(address), &value, size);
    for (unsigned c = 0; c < scenario_.cpus; ++c) {
        Cpu& cpu = state_.cpus[c];
        if (c == n) {
            const auto end = std::remove_if(cpu.stale.begin(), cpu.stale.begin() + cpu.stales, [&](const Stale& old) {
                return overlap(old.address, old.size, address, size);
            });
            cpu.stales = static_cast<std::uint8_t>(end - cpu.stale.begin());
            std::fill(end, cpu.stale.end(), Stale{});
        }
        if (before == value)
            continue;
        cpu.idle = 0;
        if (c == n || scenario_.memory == MemoryModel::tso || cpu.stales == cpu.stale.size() ||
            cpu.op->kind == OpKind::finish)
            continue;
        const bool known = std::any_of(cpu.stale.begin(), cpu.stale.begin() + cpu.stales,
                                       [&](const Stale& old) { return old.address == address && old.size == size; });
        if (!known)
            cpu.stale[cpu.stales++] = {address, before, size, 0};
    }
}

/// Byte by byte: the youngest store in the CPU's own buffer, or else memory.
std::uint64_t Simulation::read(const Cpu& cpu, std::uintptr_t address, unsigned size) const {
    std::uint64_t value = peek(address, size);
    for (unsigned k = 0; k < cpu.buffered; ++k)
        overlay(value, address, size, cpu.buffer[k].value, cpu.buffer[k].address, cpu.buffer[k].size);
    return value;
}

bool Simulation::stale_value(const Cpu& cpu, const Op& op, std::uint64_t& value) const {
    if (op.kind != OpKind::load || cpu.stales == 0)
        return false;
    for (unsigned k = 0; k < cpu.buffered; ++k)
        if (overlap(cpu.buffer[k].address, cpu.buffer[k].size, op.address, op.size))
            return false;
    std::uint64_t old = peek(op.address, op.size);
    for (unsigned k = cpu.stales; k-- > 0;) {
        const Stale& stale = cpu.stale[k];
        if (!overlap(stale.address, stale.size, op.address, op.size))
            continue;
        // A loop would read the same old value for ever.
        if (stale.reads == kMostEarlyReads)
            return false;
        // What an acquire binds depends on when its word was written: no words put together from several stores.
        if (acquires(op.order) && (stale.address != op.address || stale.size != op.size))
            return false;
        overlay(old, op.address, op.size, stale.value, stale.address, stale.size);
    }
    if (old == peek(op.address, op.size))
        return false;
    value = old;
    return true;
}

/// The load was satisfied right before the first remembered change of its word. If it acquires, later loads were not
/// satisfied before that, and what had changed by then is seen changed.
void Simulation::read_early(Cpu& cpu, Op& op) {
    if (!stale_value(cpu, op, op.result))
        return;
    const auto begin = cpu.stale.begin();
    auto end = begin + cpu.stales;
    const auto is_read = [&op](const Stale& stale) { return overlap(stale.address, stale.size, op.address, op.size); };
    for (auto stale = begin; stale != end; ++stale)
        if (is_read(*stale))
            ++stale->reads;
    if (acquires(op.order)) {
        end = std::move(std::find_if(begin, end, is_read), end, begin);
        cpu.stales = static_cast<std::uint8_t>(end - begin);
        std::fill(end, cpu.stale.end(), Stale{});
    }
}

/// Nothing will ever move again: is everybody done, and is nothing left behind?
void Simulation::check_end() {
    std::string stuck;
    for (unsigned n = 0; n < scenario_.cpus; ++n) {
        const OpKind kind = state_.cpus[n].op->kind;
        if (kind == OpKind::finish)
            continue;
        stuck += (stuck.empty() ? "cpu" : ", cpu") + std::to_string(n) +
                 (kind == OpKind::halt ? " sleeps and nobody will kick it"
                                       : " spins on " + location(state_.cpus[n].op->address));
    }
    if (!stuck.empty()) {
        fail("%s: %s", stuck.find("sleeps") != std::string::npos ? "lost wake-up" : "no progress", stuck.c_str());
        return;
    }
    if (lock_.at_rest != nullptr && !lock_.at_rest())
        fail("left behind: all CPUs are done, and a node, a slot or a hash entry is still in use");
    for (unsigned n = 0; n < scenario_.locks && failure_.empty(); ++n) {
        if (!lock_.try_lock(lock_at(n))) {
            fail("left behind: all CPUs are done, and try_lock says that lock %u is held", n);
            return;
        }
        lock_.unlock(lock_at(n));
        // Nobody waits any more, so the way back to the fast path must have been found.
        const unsigned now = accesses_of_a_section(n);
        if (now != accesses_when_new_)
            fail("left behind: nobody waits for lock %u, and lock() and unlock() take %u accesses to memory instead of "
                 "%u",
                 n, now, accesses_when_new_);
    }
}

unsigned Simulation::accesses_of_a_section(unsigned n) {
    direct_accesses_ = 0;
    lock_.lock(lock_at(n));
    lock_.unlock(lock_at(n));
    return direct_accesses_;
}

void Simulation::fail(const char* format, ...) {
    if (!failure_.empty())
        return;
    char text[400];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    failure_ = text;
}

// --- saving and restoring --------------------------------------------------------------------------------------------

void Simulation::track(std::uintptr_t address) {
    for (Region& region : regions_) {
        if (address - region.base >= region.size)
            continue;
        const std::size_t line = (address - region.base) / kLine;
        if (!region.tracked[line]) {
            region.tracked[line] = true;
            lines_.push_back(region.base + line * kLine);
        }
        return;
    }
    if (address - reinterpret_cast<std::uintptr_t>(stacks_) < kMaxCpus * kStackSize)
        return; // saved with the stack
    fail("an atomic access at %#zx: neither static data, nor a lock, nor a stack", static_cast<std::size_t>(address));
}

/// The time of the last kick (timed_kicks.hpp) decides nothing but what is counted. Taken as it is it would make many
/// states out of one; here nothing is stored in it, and it reads as 0.
bool Simulation::is_statistic(const Op& op) {
    Region& region = regions_[1];
    if (!touches_memory(op.kind) || op.address - region.base >= region.size)
        return false;
    std::uint8_t& known = region.is_statistic[(op.address - region.base) / 8];
    if (known == kUnknown)
        known = location(op.address).starts_with("kicked_at_") ? kStatistic : kNoStatistic;
    return known == kStatistic;
}

void Simulation::save(Snapshot& to) const {
    std::size_t size = state_size() + sizeof(std::size_t) + lines_.size() * kLine;
    for (unsigned cpu = 0; cpu < scenario_.cpus; ++cpu)
        size += static_cast<std::size_t>(stack_top(cpu) - static_cast<std::byte*>(state_.cpus[cpu].stack_pointer));
    to.resize(size);
    std::byte* at = to.data();
    const auto put = [&at](const void* from, std::size_t n) {
        std::memcpy(at, from, n);
        at += n;
    };
    const std::size_t lines = lines_.size();
    put(&lines, sizeof lines);
    put(&state_, state_size());
    for (unsigned cpu = 0; cpu < scenario_.cpus; ++cpu) {
        const auto* sp = static_cast<std::byte*>(state_.cpus[cpu].stack_pointer);
        put(sp, static_cast<std::size_t>(stack_top(cpu) - sp));
    }
    for (const std::uintptr_t line : lines_)
        put(reinterpret_cast<const void*>(line), kLine);
}

void Simulation::restore(const Snapshot& from) {
    const std::byte* at = from.data();
    const auto get = [&at](void* to, std::size_t n) {
        std::memcpy(to, at, n);
        at += n;
    };
    failure_.clear();
    std::size_t lines = 0;
    get(&lines, sizeof lines);
    get(static_cast<void*>(&state_), state_size());
    for (unsigned cpu = 0; cpu < scenario_.cpus; ++cpu) {
        auto* sp = static_cast<std::byte*>(state_.cpus[cpu].stack_pointer);
        get(sp, static_cast<std::size_t>(stack_top(cpu) - sp));
    }
    for (std::size_t k = 0; k < lines_.size(); ++k) {
        if (k < lines) {
            get(reinterpret_cast<void*>(lines_[k]), kLine);
            continue;
        }
        for (const Region& region : regions_) // first touched after the snapshot
            if (lines_[k] - region.base < region.size)
                std::memcpy(reinterpret_cast<void*>(lines_[k]), &region.pristine[lines_[k] - region.base], kLine);
    }
}

std::uint64_t Simulation::fingerprint(bool with_last_cpu) const {
    const std::size_t skipped = with_last_cpu ? 0 : sizeof state_.last_cpu;
    std::uint64_t hash = hash_bytes(reinterpret_cast<const std::byte*>(&state_) + skipped, state_size() - skipped,
                                    0x5851'f42d'4c95'7f2du);
    for (unsigned cpu = 0; cpu < scenario_.cpus; ++cpu) {
        const auto* sp = static_cast<std::byte*>(state_.cpus[cpu].stack_pointer);
        hash = hash_bytes(sp, static_cast<std::size_t>(stack_top(cpu) - sp), hash);
    }
    std::uint64_t memory = 0; // a sum: lines that nobody has changed do not count, whenever they came to the list
    for (const std::uintptr_t line : lines_) {
        for (const Region& region : regions_) {
            if (line - region.base >= region.size)
                continue;
            const auto* now = reinterpret_cast<const void*>(line);
            if (std::memcmp(now, &region.pristine[line - region.base], kLine) != 0)
                memory += hash_bytes(now, kLine, line);
        }
    }
    return mix(hash, memory);
}

std::string Simulation::untracked_change() const {
    for (const Region& region : regions_) {
        for (std::size_t line = 0; line < region.tracked.size(); ++line) {
            if (region.tracked[line])
                continue;
            const std::uintptr_t at = region.base + line * kLine;
            for (unsigned byte = 0; byte < kLine; ++byte)
                if (reinterpret_cast<const std::byte*>(at)[byte] != region.pristine[line * kLine + byte])
                    return location(at + byte);
        }
    }
    return {};
}

// --- names -----------------------------------------------------------------------------------------------------------

std::string Simulation::location(std::uintptr_t address) const {
    char text[160];
    const std::uintptr_t offset = address - kArenaAddress;
    if (offset < kArenaSize) {
        const auto n = static_cast<unsigned>(offset / kLockStride);
        if (offset % kLockStride >= 128)
            std::snprintf(text, sizeof text, "data%u.%s", n,
                          offset % kLockStride == 128   ? "left"
                          : offset % kLockStride == 132 ? "right"
                                                        : "last_is_done");
        else
            std::snprintf(text, sizeof text, "lock%u+%u", n, static_cast<unsigned>(offset % kLockStride));
        return text;
    }
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(address), &info) == 0 || info.dli_sname == nullptr) {
        std::snprintf(text, sizeof text, "%#zx", static_cast<std::size_t>(address));
        return text;
    }
    int status = 0;
    char* const demangled = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    std::string name = status == 0 ? demangled : info.dli_sname;
    std::free(demangled);
    std::string plain; // without template arguments
    int depth = 0;
    for (const char c : name) {
        depth += c == '<' ? 1 : 0;
        if (depth == 0)
            plain += c;
        depth -= c == '>' ? 1 : 0;
    }
    plain.erase(0, plain.rfind(':') + 1);
    const std::uintptr_t inside = address - reinterpret_cast<std::uintptr_t>(info.dli_saddr);
    std::snprintf(text, sizeof text, "%s+%#zx", plain.c_str(), static_cast<std::size_t>(inside));
    return text;
}

void Simulation::print_op(unsigned cpu, const Op& op, const char* remark) const {
    static constexpr const char* kNames[] = {"load",      "store",    "exchange",  "cmpxchg", "fetch_add",
                                             "fetch_sub", "fetch_or", "fetch_and", "kick",    "arm",
                                             "halt",      "finish",   "doze"};
    auto& printed = const_cast<unsigned&>(printed_);
    std::printf("%5u  cpu%u  %-9s ", ++printed, cpu, kNames[static_cast<unsigned>(op.kind)]);
    const auto operand = static_cast<unsigned long long>(op.operand);
    const auto found = static_cast<unsigned long long>(op.result);
    if (op.kind == OpKind::kick)
        std::printf("cpu%llu", operand);
    else if (op.kind == OpKind::load)
        std::printf("%s: %#llx, %s", location(op.address).c_str(), found, name_of(op.order));
    else if (op.kind == OpKind::store)
        std::printf("%s = %#llx, %s", location(op.address).c_str(), operand, name_of(op.order));
    else if (op.kind == OpKind::compare_exchange)
        std::printf("%s: %#llx, %#llx -> %#llx, %s", location(op.address).c_str(), found,
                    static_cast<unsigned long long>(op.expected), operand, name_of(op.order));
    else if (touches_memory(op.kind))
        std::printf("%s: %#llx, operand %#llx, %s", location(op.address).c_str(), found, operand, name_of(op.order));
    std::printf("%s%s\n", *remark != '\0' ? "  " : "", remark);
}

} // namespace spinkick::checker
