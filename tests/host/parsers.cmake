# SPDX-License-Identifier: BSD-2-Clause
#
# Host tests of the parts that need no machine: text, report, command line, histogram, firmware and loader tables. The
# sources are the kernel's own files; console_capture.cpp stands for the console.

add_executable(parsers_test
    ${PROJECT_SOURCE_DIR}/kernel/command_line.cpp
    ${PROJECT_SOURCE_DIR}/kernel/json.cpp
    ${PROJECT_SOURCE_DIR}/kernel/log.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/registry.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/report.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/runner.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/selection.cpp
    ${PROJECT_SOURCE_DIR}/kernel/test/test.cpp
    ${PROJECT_SOURCE_DIR}/kernel/text.cpp
    console_capture.cpp
    fake_machine.cpp
    test_command_line.cpp
    test_histogram.cpp
    test_json.cpp
    test_runner.cpp
    test_text.cpp)
target_include_directories(parsers_test PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_features(parsers_test PRIVATE cxx_std_20)
target_link_libraries(parsers_test PRIVATE spinkick_warnings GTest::gtest_main)
gtest_discover_tests(parsers_test PROPERTIES LABELS host)
