// SPDX-License-Identifier: BSD-2-Clause
//
// A few CPUs, their store buffers and one memory, stopped before each operation. Whoever explores asks which choices
// there are, takes one, and may save and restore the whole. docs/checker.md says what the models stand for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/sync/events.hpp"
#include "tests/host/checker/machine.hpp"

namespace spinkick::checker {

/// How memory may be reordered.
enum class MemoryModel : std::uint8_t {
    tso, ///< x86: stores in order, every RMW a full barrier whatever order it asks for
    weak ///< as the orders say: relaxed stores overtake, relaxed loads read early, RMWs are barriers where they ask
};

/// What becomes of a kick that finds its target awake.
enum class WakeModel : std::uint8_t {
    sticky, ///< the next halt returns at once (KVM)
    armed   ///< as well, unless a wait begins in between: that one clears it (Xen)
};

/// A promise of the back end that it breaks. Every lock that sleeps must be seen to suffer from it.
enum class MachineFault : std::uint8_t {
    none,
    forgets_kicks,  ///< one that finds its target awake
    drops_kicks,    ///< every second one
    sleeps_through, ///< a sleep goes on after a handler that has used up its kick
};

/// A lock of the list, with its type erased.
struct LockUnderCheck {
    const char* name;
    bool sleeps;
    bool excludes;
    const char* fault; ///< a negative control: how the failure begins that its fault must end in; else nullptr
    std::size_t size;
    void (*construct)(void* where);
    void (*lock)(void*);
    bool (*try_lock)(void*);
    void (*unlock)(void*);
    bool (*at_rest)(); ///< no node, slot or hash entry in use; nullptr if the lock does not say
};

/// The locks of kernel/sync/locks.hpp on the machines of machine.hpp.
[[nodiscard]] const std::vector<LockUnderCheck>& locks_under_check();
/// How long every lock spins before it sleeps: sync::tuning.spin_threshold and byte_timeout.
void set_spin_threshold(unsigned looks);

struct Scenario {
    unsigned cpus = 2;
    unsigned rounds = 1;
    unsigned locks = 1;      ///< CPU c takes lock (c + round) % locks
    bool try_first = false;  ///< odd CPUs call try_lock() and then lock()
    unsigned spurious = 0;   ///< sleeps of each CPU that may end for no reason
    unsigned interrupts = 0; ///< times that each CPU may be interrupted by a handler that takes the last lock
    /// Interrupts come in a sleep only, to CPU 0 only, and the handler waits, spinning, until the last CPU has had its
    /// section: a lock that lets that one wait for CPU 0 stands still for good.
    bool handler_waits = false;
    /// Whoever has had the last section of all frees the lock when its unlock() has returned.
    bool frees = false;
    unsigned threshold = 1;
    MemoryModel memory = MemoryModel::tso;
    WakeModel wake = WakeModel::sticky;
    MachineFault fault = MachineFault::none;
};

/// One thing that may happen next.
struct Choice {
    enum class Kind : char {
        step = 's',       ///< the CPU's operation
        early = 'e',      ///< the same, a load that was satisfied before the last change of its word
        wake = 'w',       ///< the CPU's sleep ends for no reason
        interrupt = 'i',  ///< the CPU's handler runs
        first_flush = 'A' ///< 'A' + n: the nth entry of the CPU's store buffer becomes visible
    };
    Kind kind;
    std::uint8_t cpu;

    [[nodiscard]] bool is_flush() const noexcept { return kind >= Kind::first_flush && kind < Kind{'a'}; }
    [[nodiscard]] unsigned entry() const noexcept { return static_cast<unsigned>(kind) - 'A'; }
    friend bool operator==(Choice, Choice) = default;
};

using Choices = std::vector<Choice>;
[[nodiscard]] std::string to_string(const Choices& schedule);
/// False: not a schedule.
[[nodiscard]] bool parse(const std::string& text, Choices& schedule);

/// A saved simulation.
using Snapshot = std::vector<std::byte>;

class Simulation {
  public:
    static constexpr unsigned kMaxCpus = SpinningChecker::kMaxCpus;
    static constexpr unsigned kBufferEntries = 12;

    Simulation();
    ~Simulation();
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;

    /// Every CPU stands before its first operation.
    void start(const LockUnderCheck& lock, const Scenario& scenario);

    /// What may happen now. Empty: nothing ever will, and failure() says so unless all is well.
    void choices(Choices& out);
    void apply(Choice choice);

    /// The CPU that moved last could go on: to let another one move is a preemption.
    [[nodiscard]] bool is_preemption(Choice choice) const;

    void save(Snapshot& to) const;
    void restore(const Snapshot& from);
    [[nodiscard]] std::uint64_t fingerprint(bool with_last_cpu) const;

    [[nodiscard]] const std::string& failure() const { return failure_; }
    /// Prints each operation as it is done.
    void trace(bool on) { tracing_ = on; }
    /// A lock's memory that changed behind the checker's back; empty if none did.
    [[nodiscard]] std::string untracked_change() const;
    [[nodiscard]] const std::array<std::uint64_t, sync::kLockEvents>& events() const { return events_; }

    // From the CPUs, by way of machine.hpp.
    void perform(Op& op);
    void spin_hint();
    void mask(bool on) { state_.cpus[running_].masked = on; }
    void count(sync::LockEvent event, std::uint64_t n);
    [[nodiscard]] bool wait_dozes() const { return scenario_.fault == MachineFault::forgets_kicks; }
    [[nodiscard]] bool wait_arms() const { return scenario_.wake == WakeModel::armed; }
    [[nodiscard]] std::uint32_t current_cpu() const { return running_; }
    [[nodiscard]] static Simulation& instance();

  private:
    struct Entry {
        std::uintptr_t address;
        std::uint64_t value;
        std::uint8_t size;
        bool release;
    };
    /// A word's value before others changed it, still readable by a load that was satisfied early.
    struct Stale {
        std::uintptr_t address;
        std::uint64_t value;
        std::uint32_t size;
        std::uint32_t reads; ///< how often it has been read so
    };
    struct Cpu {
        void* stack_pointer;
        Op* op;
        std::uint16_t idle; ///< spin hints since it saw or made a change
        std::uint8_t buffered;
        std::uint8_t stales;
        bool kicked;
        bool in_handler;
        bool deliver; ///< the handler runs before the operation
        bool masked;  ///< between done() and the sleep, no handler runs
        std::uint8_t spurious_left;
        std::uint8_t interrupts_left;
        std::array<std::uint8_t, 6> unused;
        std::array<Entry, kBufferEntries> buffer;
        std::array<Stale, 4> stale;
    };
    struct State {
        std::uint64_t last_cpu;                ///< first: left out of the fingerprint unless preemptions count
        std::uint64_t kicks_sent;              ///< modulo 2
        std::array<std::uint16_t, 4> inside;   ///< CPUs in the section of each lock
        std::array<std::uint32_t, 4> sections; ///< sections done
        std::uint64_t freed_by;                ///< CPU + 1; 0: the lock has not been freed
        std::array<Cpu, kMaxCpus> cpus;
    };
    struct Region {
        std::uintptr_t base = 0;
        std::size_t size = 0;
        std::vector<std::byte> pristine;
        std::vector<bool> tracked;              ///< by line
        std::vector<std::uint8_t> is_statistic; ///< by 8 bytes: kUnknown, or what has been found out
    };
    static constexpr std::uintptr_t kLine = 64;
    /// Locks this far apart collide in the hash of pv_hash.hpp (of 256 entries, at kArenaAddress). The checker holds
    /// without it, but two locks would never meet in one entry; the mutant that tears the insertion shows whether they
    /// do.
    static constexpr std::size_t kLockStride = 0x2ac0;
    static constexpr std::size_t kStackSize = 32 * 1024;

    static void fibre_entry();
    void run_rounds();
    void run_handler();
    /// True if it was the last one of all.
    bool section(unsigned lock);
    void check_freed(unsigned cpu, const Op& op);
    void resume(unsigned cpu);
    void settle();
    void execute(unsigned cpu, bool early);
    void read_early(Cpu& cpu, Op& op);
    static void forget(Cpu& cpu);
    void flush(unsigned cpu, unsigned entry);
    void write(unsigned cpu, std::uintptr_t address, unsigned size, std::uint64_t value);
    [[nodiscard]] std::uint64_t read(const Cpu& cpu, std::uintptr_t address, unsigned size) const;
    [[nodiscard]] bool stale_value(const Cpu& cpu, const Op& op, std::uint64_t& value) const;
    [[nodiscard]] bool drained(const Cpu& cpu) const;
    [[nodiscard]] bool must_drain(const Op& op, const Entry& entry) const;
    [[nodiscard]] bool can_step(unsigned cpu, unsigned patience) const;
    void add_flushes(unsigned cpu, bool force, Choices& out) const;
    void track(std::uintptr_t address);
    [[nodiscard]] bool is_statistic(const Op& op);
    void check_end();
    [[nodiscard]] unsigned accesses_of_a_section(unsigned lock);
    void fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
    void print_op(unsigned cpu, const Op& op, const char* remark) const;
    [[nodiscard]] std::string location(std::uintptr_t address) const;
    [[nodiscard]] std::byte* stack_top(unsigned cpu) const { return stacks_ + (cpu + 1) * kStackSize; }
    [[nodiscard]] void* lock_at(unsigned n) const { return arena_ + n * kLockStride; }
    [[nodiscard]] Atomic<std::uint32_t>* data_of(unsigned n) const {
        return reinterpret_cast<Atomic<std::uint32_t>*>(arena_ + n * kLockStride + 128);
    }
    [[nodiscard]] std::size_t state_size() const { return offsetof(State, cpus) + scenario_.cpus * sizeof(Cpu); }

    LockUnderCheck lock_{};
    Scenario scenario_;
    State state_{};
    std::byte* arena_ = nullptr;
    std::byte* stacks_ = nullptr;
    void* scheduler_ = nullptr;
    std::uint32_t running_ = kMaxCpus; ///< kMaxCpus: none, operations are done at once
    bool tracing_ = false;
    /// Accesses of the last lock() and unlock() by the checker itself.
    unsigned direct_accesses_ = 0;
    unsigned accesses_when_new_ = 0;
    unsigned printed_ = 0;
    std::string failure_;
    std::array<Region, 2> regions_{};
    std::vector<std::uintptr_t> lines_; ///< tracked lines, in the order in which they were first touched
    std::array<std::uint64_t, sync::kLockEvents> events_{};
};

} // namespace spinkick::checker
