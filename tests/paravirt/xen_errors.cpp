// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: what Xen cannot do it refuses, by the error that its headers name: ports that do not exist, by one or by
// far, vCPUs that do not exist, more ports than a poll takes, a list that is not mapped, a command that nobody knows.
// A call of that kind that succeeds, or that faults, would have done something to somebody.
#include "tests/paravirt/event_ports.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

using namespace event_ports;

constexpr std::uint32_t kNoVcpu = 8191; ///< above what any domain has
constexpr std::uint32_t kFreePort = abi::kPorts - 1;
constexpr std::uint64_t kNoCommand = 99;
constexpr std::uint64_t kUnmapped = 16;

std::uint64_t address_of(const void* object) noexcept { return reinterpret_cast<std::uint64_t>(object); }

std::int64_t result_of(abi::Hypercall call, std::uint64_t command, std::uint64_t a1, std::uint64_t a2 = 0) noexcept {
    const auto result = paravirt::xen_hypercall(call, command, a1, a2);
    constexpr std::int64_t kFaulted = -0x1000;
    return result.fault.happened ? kFaulted - result.fault.vector : result.value;
}

std::int64_t port_call(std::uint64_t command, std::uint32_t port) noexcept {
    const abi::evtchn_port argument{port};
    return event_call(command, &argument);
}
std::int64_t poll_list(const std::uint32_t* ports, std::uint32_t count) noexcept {
    const abi::sched_poll argument{address_of(ports), count, 0, 1}; // a time out that is over: it cannot sleep
    return result_of(abi::Hypercall::sched_op, abi::SCHEDOP_poll, address_of(&argument));
}

struct Call {
    const char* name;
    std::int64_t error;
    const char* error_name;
    std::int64_t (*make)() noexcept;
};
#define SPINKICK_REFUSED(name, error, ...)                                                                             \
    Call {                                                                                                             \
        name, abi::XEN_##error, #error, []() noexcept -> std::int64_t { __VA_ARGS__; }                                 \
    }
constexpr std::array kCalls = {
    SPINKICK_REFUSED("EVTCHNOP_send to port 0", EINVAL, return port_call(abi::EVTCHNOP_send, 0)),
    SPINKICK_REFUSED("EVTCHNOP_send to a free port", EINVAL, return port_call(abi::EVTCHNOP_send, kFreePort)),
    SPINKICK_REFUSED("EVTCHNOP_send to port 4096", EINVAL, return port_call(abi::EVTCHNOP_send, abi::kPorts)),
    SPINKICK_REFUSED("EVTCHNOP_send to port 2^32-1", EINVAL, return port_call(abi::EVTCHNOP_send, ~0u)),
    SPINKICK_REFUSED("EVTCHNOP_close of a free port", EINVAL, return port_call(abi::EVTCHNOP_close, kFreePort)),
    SPINKICK_REFUSED("EVTCHNOP_unmask of port 2^32-1", EINVAL, return port_call(abi::EVTCHNOP_unmask, ~0u)),
    SPINKICK_REFUSED("EVTCHNOP_bind_ipi for a vCPU that is not there", ENOENT,
                     const abi::evtchn_bind_ipi bind{kNoVcpu, 0};
                     return event_call(abi::EVTCHNOP_bind_ipi, &bind)),
    SPINKICK_REFUSED("EVTCHNOP_bind_vcpu of an IPI port", EINVAL,
                     const abi::evtchn_bind_vcpu bind{paravirt::Xen::port_of(machine::this_cpu()), 0};
                     return event_call(abi::EVTCHNOP_bind_vcpu, &bind)),
    SPINKICK_REFUSED("EVTCHNOP_bind_vcpu to a vCPU that is not there", ENOENT,
                     const abi::evtchn_bind_vcpu bind{kFreePort, kNoVcpu};
                     return event_call(abi::EVTCHNOP_bind_vcpu, &bind)),
    SPINKICK_REFUSED("an unknown EVTCHNOP", ENOSYS, return port_call(kNoCommand, 0)),
    SPINKICK_REFUSED("SCHEDOP_poll of port 4096", EINVAL, const std::uint32_t port = abi::kPorts;
                     return poll_list(&port, 1)),
    SPINKICK_REFUSED("SCHEDOP_poll of 129 ports", EINVAL, const std::uint32_t port = 1; return poll_list(&port, 129)),
    SPINKICK_REFUSED("SCHEDOP_poll of a list that is not mapped", EFAULT,
                     return poll_list(reinterpret_cast<const std::uint32_t*>(kUnmapped), 1)),
    SPINKICK_REFUSED("an unknown SCHEDOP", ENOSYS,
                     return result_of(abi::Hypercall::sched_op, kNoCommand, address_of(&kNoCommand))),
    SPINKICK_REFUSED("VCPUOP_is_up of a vCPU that is not there", ENOENT,
                     return result_of(abi::Hypercall::vcpu_op, abi::VCPUOP_is_up, kNoVcpu)),
    SPINKICK_REFUSED("VCPUOP_send_nmi to a vCPU that is not there", ENOENT,
                     return result_of(abi::Hypercall::vcpu_op, abi::VCPUOP_send_nmi, kNoVcpu)),
};
#undef SPINKICK_REFUSED

void run(test::TestContext& context) {
    for (const auto& call : kCalls)
        if (const auto result = call.make(); result != -call.error)
            context.fail("%s returns %ld, expected %s (%ld)", call.name, result, call.error_name, -call.error);
    if (context.status() == test::Status::none)
        context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "paravirt.bad_arguments_are_refused",
               .backend = paravirt::Xen::kName,
               .claim = "a hypercall with a port, vCPU or command that does not exist returns its error",
               .needs = test::Backend::xen,
               .run = run}};
constinit const test::TestGroup xen_errors_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(xen_errors_group);

} // namespace spinkick::paravirt_tests
