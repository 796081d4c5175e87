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

include(GoogleTest)

add_executable(test_report
    ${CMAKE_CURRENT_LIST_DIR}/test_report_cascade.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_compare.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_events.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_files.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_follow.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_host_counters.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_judge.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_monitor.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_noise.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_overcommit.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_page.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_post_mortem.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_statistics.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_stream.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_summary.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_trace.cpp
    ${CMAKE_CURRENT_LIST_DIR}/test_report_workloads.cpp)
# As spinkick_report_core: a compilation here is the templates of the libraries.
set_target_properties(test_report PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 7)
target_link_libraries(test_report PRIVATE spinkick_report_core GTest::gtest GTest::gtest_main spinkick_warnings)
gtest_discover_tests(test_report TEST_PREFIX host.report. PROPERTIES LABELS host TIMEOUT 300)

add_executable(make_sample_results ${CMAKE_CURRENT_LIST_DIR}/make_sample_results.cpp)
target_link_libraries(make_sample_results PRIVATE spinkick_report_core spinkick_warnings)

add_test(NAME host.report.command_line
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/report_command_line.sh $<TARGET_FILE:spinkick-report>
            ${CMAKE_CURRENT_LIST_DIR}/junit.xsd $<TARGET_FILE:make_sample_results>)
set_tests_properties(host.report.command_line PROPERTIES LABELS host TIMEOUT 300)

add_test(NAME host.report.page
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/report_page.sh $<TARGET_FILE:spinkick-report> $<TARGET_FILE:make_sample_results>
            ${CMAKE_CURRENT_LIST_DIR}/page_check.js)
# By hand: a browser is 300 MB.
set_tests_properties(host.report.page PROPERTIES LABELS "host;evidence-6" TIMEOUT 600 SKIP_RETURN_CODE 77)

# For files of real runs: tests/platforms/trace_test.sh.
add_executable(check_trace ${CMAKE_CURRENT_LIST_DIR}/check_trace.cpp)
target_link_libraries(check_trace PRIVATE spinkick_report_core spinkick_warnings)
