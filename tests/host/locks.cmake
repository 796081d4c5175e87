# SPDX-License-Identifier: BSD-2-Clause
#
# kernel/sync on the host: every lock on threads and futexes; under ThreadSanitizer with the preset host-tsan.

find_package(Threads REQUIRED)

add_executable(locks_test test_locks.cpp test_locks_2014.cpp)
target_include_directories(locks_test PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_features(locks_test PRIVATE cxx_std_20)
target_link_libraries(locks_test PRIVATE spinkick_warnings GTest::gtest_main Threads::Threads)
gtest_discover_tests(locks_test TEST_PREFIX host.locks. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS host TIMEOUT 300)

add_test(NAME sync.includes COMMAND ${CMAKE_CURRENT_LIST_DIR}/check_sync_includes.sh ${PROJECT_SOURCE_DIR})
# The check itself must be able to fail.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/bad_include/kernel/sync/bad.hpp "#include <vector>\n")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/bad_fence/kernel/sync/bad.hpp "  std::atomic_thread_fence(std::memory_order_seq_cst);\n")
foreach(bad include fence)
    add_test(NAME sync.includes_reports_${bad}
             COMMAND ${CMAKE_CURRENT_LIST_DIR}/check_sync_includes.sh ${CMAKE_CURRENT_BINARY_DIR}/bad_${bad})
    set_tests_properties(sync.includes_reports_${bad} PROPERTIES WILL_FAIL TRUE)
endforeach()
set_tests_properties(sync.includes sync.includes_reports_include sync.includes_reports_fence PROPERTIES LABELS host)

add_executable(directed_yield_test test_directed_yield.cpp)
add_executable(counters_test test_counters.cpp)
foreach(test directed_yield_test counters_test)
    target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_features(${test} PRIVATE cxx_std_20)
    target_link_libraries(${test} PRIVATE spinkick_warnings GTest::gtest_main Threads::Threads)
    gtest_discover_tests(${test} TEST_PREFIX host.locks. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS host TIMEOUT 300)
endforeach()

# Beside ConcurrencyKit. Times are printed by running bench_locks; only instruction counts are a test.
if(NOT SPINKICK_HOST_SANITIZER)
    add_executable(bench_locks bench_locks.cpp bench_ck_pairs.c)
    target_include_directories(bench_locks PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(bench_locks SYSTEM PRIVATE ${CK_INCLUDE_DIR})
    target_compile_options(bench_locks PRIVATE -O2)
    target_compile_features(bench_locks PRIVATE cxx_std_20)
    target_link_libraries(bench_locks PRIVATE spinkick_warnings benchmark::benchmark Threads::Threads)

    add_executable(bench_contended bench_contended.cpp bench_ck_contended.c)
    target_include_directories(bench_contended PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(bench_contended SYSTEM PRIVATE ${CK_INCLUDE_DIR})
    target_compile_options(bench_contended PRIVATE -O2)
    target_compile_features(bench_contended PRIVATE cxx_std_20)
    target_link_libraries(bench_contended PRIVATE spinkick_warnings Threads::Threads)
    # Nothing may run beside it.
    add_test(NAME evidence.contended_throughput COMMAND bench_contended 80)
    set_tests_properties(evidence.contended_throughput PROPERTIES LABELS evidence-6 RUN_SERIAL ON TIMEOUT 600)

    add_executable(bench_recorder bench_recorder.cpp)
    target_include_directories(bench_recorder PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_options(bench_recorder PRIVATE -O2)
    target_compile_features(bench_recorder PRIVATE cxx_std_20)
    target_link_libraries(bench_recorder PRIVATE spinkick_warnings benchmark::benchmark Threads::Threads)
    if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" OR CMAKE_BUILD_TYPE STREQUAL "Release")
        add_test(NAME sync.instructions_against_ck
                 COMMAND ${CMAKE_CURRENT_LIST_DIR}/compare_instructions.sh $<TARGET_FILE:bench_locks>)
        set_tests_properties(sync.instructions_against_ck PROPERTIES LABELS host SKIP_RETURN_CODE 77 TIMEOUT 120)
    endif()
endif()
