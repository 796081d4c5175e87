# SPDX-License-Identifier: BSD-2-Clause
#
# The lock headers under the checker, which takes every schedule of a few CPUs: docs/checker.md.

# A sanitizer would have to be told of each switch of stacks, wants the addresses for itself and would see one thread: its
# time is better spent on the tests that have many.
if(SPINKICK_HOST_SANITIZER)
    return()
endif()
# What is searched are the atomics of the source, which another compiler does not change; one search is minutes.
if(SPINKICK_PRESET STREQUAL "clang")
    return()
endif()

add_library(checker_core OBJECT
    checker/simulation.cpp checker/explorer.cpp checker/main.cpp checker/fibre.S)
target_include_directories(checker_core PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_features(checker_core PRIVATE cxx_std_20)
target_link_libraries(checker_core PRIVATE spinkick_warnings)
target_compile_options(checker_core PRIVATE -O2)

add_executable(check_locks checker/locks_under_check.cpp)
target_include_directories(check_locks PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_features(check_locks PRIVATE cxx_std_20)
target_compile_options(check_locks PRIVATE -O2)
target_link_libraries(check_locks PRIVATE spinkick_warnings checker_core ${CMAKE_DL_LIBS})
set_target_properties(check_locks PROPERTIES ENABLE_EXPORTS ON) # names for the locations in a printed schedule

# The default run: every lock, 0.15 seconds at most for each scenario. The longer one has the label of its
# evidence; --long takes hours.
add_test(NAME checker.locks COMMAND check_locks --seconds 0.15)
set_tests_properties(checker.locks PROPERTIES LABELS host TIMEOUT 1200)
add_test(NAME checker.locks_long COMMAND check_locks --seconds 2)
set_tests_properties(checker.locks_long PROPERTIES LABELS evidence-3 TIMEOUT 3600)

# The form of 2014 that loses a wake-up, seen doing so.
add_test(NAME checker.published_may_halt COMMAND check_locks --lock pv-queued-2014-may-halt --seconds 0.5)
set_tests_properties(checker.published_may_halt PROPERTIES LABELS host TIMEOUT 60 PASS_REGULAR_EXPRESSION
    "found, as it must be: pv-queued-2014-may-halt [^:]*: lost wake-up: .*all locks held")

# Faults that locks in use have had, and a ticket lock with too few numbers.
foreach(control IN ITEMS "pv-ticket-tail-flag: use after free" "byte-no-barrier: lost wake-up" "byte-kicks-one: lost wake-up"
                         "ticket-narrow: mutual exclusion")
    string(REGEX MATCH "^[^:]*" lock ${control})
    string(REGEX REPLACE "^[^:]*: " "" fault ${control})
    add_test(NAME checker.finds_${lock} COMMAND check_locks --lock ${lock} --seconds 0.5)
    set_tests_properties(checker.finds_${lock} PROPERTIES LABELS host TIMEOUT 60 PASS_REGULAR_EXPRESSION
        "found, as it must be: ${lock} [^:]*: ${fault}.*all locks held")
endforeach()

# The same headers with faults in them: each must be found, or explained.
set(mutated ${CMAKE_CURRENT_BINARY_DIR}/mutated)
file(GLOB sync_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernel/sync/*)
# The copies are named one by one, or Ninja would take the old ones for good in the run that makes new ones.
set(mutated_copies ${sync_headers})
list(TRANSFORM mutated_copies REPLACE "^${PROJECT_SOURCE_DIR}/" "${mutated}/")
add_custom_command(OUTPUT ${mutated}/mutants.txt BYPRODUCTS ${mutated_copies}
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/checker/make_mutants.sh ${PROJECT_SOURCE_DIR} ${mutated}
    DEPENDS ${sync_headers} checker/make_mutants.sh checker/make_mutants.awk
    VERBATIM)
add_custom_target(mutated_headers DEPENDS ${mutated}/mutants.txt)

add_executable(check_mutants checker/locks_under_check.cpp)
add_dependencies(check_mutants mutated_headers)
target_include_directories(check_mutants PRIVATE ${mutated} ${PROJECT_SOURCE_DIR})
target_compile_features(check_mutants PRIVATE cxx_std_20)
target_compile_options(check_mutants PRIVATE -O2
    -include ${CMAKE_CURRENT_LIST_DIR}/checker/mutant_switch.hpp)
target_link_libraries(check_mutants PRIVATE checker_core ${CMAKE_DL_LIBS})
set_target_properties(check_mutants PROPERTIES ENABLE_EXPORTS ON)

add_test(NAME checker.mutants
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/checker/mutate.sh $<TARGET_FILE:check_mutants> ${mutated}/mutants.txt
            ${CMAKE_CURRENT_LIST_DIR}/checker/survivors.txt 0.25)
set_tests_properties(checker.mutants PROPERTIES LABELS evidence-3 TIMEOUT 3600)

# One seeded fault for each claim; each is found in well under a second, every time.
add_test(NAME checker.seeded_bugs
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/checker/find_seeded_bugs.sh $<TARGET_FILE:check_mutants> ${mutated}/mutants.txt
            ${CMAKE_CURRENT_LIST_DIR}/checker/seeded_bugs.txt)
set_tests_properties(checker.seeded_bugs PROPERTIES LABELS host TIMEOUT 600)

# A failure names the command that shows it again: take it at its word.
add_test(NAME checker.replay
    COMMAND check_locks --lock broken --scenario 2x2 --schedule s0s0s0s0s0s0s1s1s1)
set_tests_properties(checker.replay PROPERTIES LABELS host PASS_REGULAR_EXPRESSION
    "store +lock0[+]0 = 0x1, relaxed  into the store buffer.*mutual exclusion: cpu1 finds")
