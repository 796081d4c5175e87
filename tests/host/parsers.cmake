# SPDX-License-Identifier: BSD-2-Clause
#
# Host tests of the parts that need no machine: text, report, command line, histogram, firmware and loader tables. The
# sources are the kernel's own files; console_capture.cpp stands for the console.

# One thread each: there is nothing for ThreadSanitizer to see.
if(SPINKICK_HOST_SANITIZER STREQUAL "thread")
    return()
endif()

set(kernel_sources
    ${PROJECT_SOURCE_DIR}/arch/x86/acpi_tables.cpp
    ${PROJECT_SOURCE_DIR}/arch/x86/low_memory.cpp
    ${PROJECT_SOURCE_DIR}/arch/x86/mp_table.cpp
    ${PROJECT_SOURCE_DIR}/boot/boot_info.cpp
    ${PROJECT_SOURCE_DIR}/boot/memory_map.cpp
    ${PROJECT_SOURCE_DIR}/boot/multiboot2_info.cpp
    ${PROJECT_SOURCE_DIR}/boot/pvh_info.cpp
    ${PROJECT_SOURCE_DIR}/kernel/command_line.cpp
    ${PROJECT_SOURCE_DIR}/kernel/json.cpp
    ${PROJECT_SOURCE_DIR}/kernel/stress/lock_text.cpp
    ${PROJECT_SOURCE_DIR}/kernel/stress/stall_verdict.cpp
    ${PROJECT_SOURCE_DIR}/kernel/log.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/monitor.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/registry.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/report.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/runner.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/selection.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/sync_point.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/test.cpp
    ${PROJECT_SOURCE_DIR}/kernel/text.cpp)
add_executable(parsers_test ${kernel_sources}
    console_capture.cpp
    fake_machine.cpp
    test_acpi_tables.cpp
    test_boot_info.cpp
    test_closed_queue.cpp
    test_command_line.cpp
    test_cpu_features.cpp
    test_flight_recorder.cpp
    test_histogram.cpp
    test_json.cpp
    test_lock_tracking.cpp
    test_low_memory.cpp
    test_memory_map.cpp
    test_monitor.cpp
    test_mp_table.cpp
    test_runner.cpp
    test_stall_verdict.cpp
    test_sync_point.cpp
    test_text.cpp)
target_include_directories(parsers_test PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_features(parsers_test PRIVATE cxx_std_20)
target_link_libraries(parsers_test PRIVATE spinkick_warnings GTest::gtest_main)
# As test_report: a compilation here is the templates of GoogleTest.
set_target_properties(parsers_test PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 9)
set_source_files_properties(${kernel_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
gtest_discover_tests(parsers_test PROPERTIES LABELS host)

add_executable(check_console_lines check_console_lines.cpp)
target_include_directories(check_console_lines PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(check_console_lines PRIVATE spinkick_warnings)
