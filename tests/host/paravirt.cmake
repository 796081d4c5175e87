# SPDX-License-Identifier: BSD-2-Clause
#
# Host tests of what the kernel concludes about hypervisors: the leaf scan over faked CPUID data, the probes, the clock page.

# One thread each: there is nothing for ThreadSanitizer to see.
if(SPINKICK_HOST_SANITIZER STREQUAL "thread")
    return()
endif()

set(kernel_sources
    ${PROJECT_SOURCE_DIR}/drivers/xen_console_ring.cpp
    ${PROJECT_SOURCE_DIR}/arch/x86/paravirt/hypervisor.cpp
    ${PROJECT_SOURCE_DIR}/arch/x86/paravirt/probe.cpp
    ${PROJECT_SOURCE_DIR}/kernel/command_line.cpp
    ${PROJECT_SOURCE_DIR}/kernel/log.cpp
    ${PROJECT_SOURCE_DIR}/kernel/text.cpp)
add_executable(paravirt_test ${kernel_sources}
    console_capture.cpp
    test_hypervisor_scan.cpp
    test_probe.cpp
    test_pvclock.cpp
    test_xen_console_ring.cpp)
target_include_directories(paravirt_test PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_features(paravirt_test PRIVATE cxx_std_20)
target_link_libraries(paravirt_test PRIVATE spinkick_warnings GTest::gtest_main)
set_target_properties(paravirt_test PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
set_source_files_properties(${kernel_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
gtest_discover_tests(paravirt_test PROPERTIES LABELS host)
