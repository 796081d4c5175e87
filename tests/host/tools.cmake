# SPDX-License-Identifier: BSD-2-Clause
#
# Tests of spinkick-report. The sanitizer presets do not build it (tools/CMakeLists.txt).
if(NOT TARGET spinkick_report_core)
    return()
endif()
# Both compilers build the tool; one of them runs its tests.
if(SPINKICK_PRESET STREQUAL "clang")
    return()
endif()

find_package(GTest REQUIRED)
include(GoogleTest)

add_executable(test_report
    ${CMAKE_CURRENT_LIST_DIR}/test_report_files.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_follow.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_judge.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_noise.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_post_mortem.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_stream.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_summary.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_trace.cpp)
target_link_libraries(test_report PRIVATE spinkick_report_core GTest::gtest GTest::gtest_main spinkick_warnings)
gtest_discover_tests(test_report TEST_PREFIX host.report. PROPERTIES LABELS host TIMEOUT 300)

add_test(NAME host.report.command_line
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/report_command_line.sh $<TARGET_FILE:spinkick-report>
            ${CMAKE_CURRENT_LIST_DIR}/junit.xsd)
set_tests_properties(host.report.command_line PROPERTIES LABELS host TIMEOUT 60)

# For files of real runs: tests/platforms/trace_test.sh.
add_executable(check_trace ${CMAKE_CURRENT_LIST_DIR}/check_trace.cpp)
target_link_libraries(check_trace PRIVATE spinkick_report_core spinkick_warnings)
