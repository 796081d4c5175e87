# SPDX-License-Identifier: BSD-2-Clause
#
# kernel/sync on the host: every lock on threads and futexes; under ThreadSanitizer with the preset host-tsan.

find_package(Threads REQUIRED)

add_executable(locks_test test_locks.cpp)
target_include_directories(locks_test PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_features(locks_test PRIVATE cxx_std_20)
target_link_libraries(locks_test PRIVATE spinkick_warnings GTest::gtest_main Threads::Threads)
gtest_discover_tests(locks_test PROPERTIES LABELS host TIMEOUT 120)

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
