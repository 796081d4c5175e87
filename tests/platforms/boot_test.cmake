# SPDX-License-Identifier: BSD-2-Clause
#
# One line of the configuration table (tests/CMakeLists.txt) as a CTest: run-qemu.sh under expect_exit.sh.

set(run_qemu ${PROJECT_SOURCE_DIR}/run-qemu.sh)
set(expect_exit ${PROJECT_SOURCE_DIR}/tests/platforms/expect_exit.sh)

# add_boot_test(NAME name PLATFORM platform [SMP n[,topology]] [CPU model] [ARGS "kernel arguments"] [TIMEOUT seconds]
#               [OPTIONS run-qemu.sh's other options...] [EXTRA QEMU arguments...] [LABELS label...] [NEEDS command-or-path...]
#               [EXPECT exit-code] [SAYS regex...] [SEND signal AFTER regex])
# One boot, or several, of which nothing is left. A platform that does not exist here is a skip with its reason.
function(add_boot_test)
    cmake_parse_arguments(PARSE_ARGV 0 boot "" "NAME;PLATFORM;SMP;CPU;ARGS;TIMEOUT;EXPECT;SEND;AFTER"
                          "OPTIONS;EXTRA;LABELS;NEEDS;SAYS")
    if(boot_UNPARSED_ARGUMENTS OR NOT DEFINED boot_NAME OR NOT DEFINED boot_PLATFORM)
        message(FATAL_ERROR "add_boot_test(${ARGV}): NAME and PLATFORM are needed; unknown: ${boot_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT DEFINED boot_TIMEOUT)
        set(boot_TIMEOUT 120)
    endif()
    if(NOT DEFINED boot_EXPECT)
        set(boot_EXPECT 0)
    endif()
    set(name ${boot_PLATFORM}.${boot_NAME})
    set(out ${CMAKE_CURRENT_BINARY_DIR}/runs/${name})

    set(judge ${expect_exit} --exit ${boot_EXPECT} --log ${out}/serial.log)
    foreach(regex IN LISTS boot_SAYS)
        list(APPEND judge --says ${regex})
    endforeach()
    foreach(thing IN LISTS boot_NEEDS)
        list(APPEND judge --needs ${thing})
    endforeach()
    if(boot_SEND)
        list(APPEND judge --send ${boot_SEND} --after ${boot_AFTER})
    endif()

    set(run ${run_qemu} --on ${boot_PLATFORM} --preset ${SPINKICK_PRESET} --out ${out} --timeout ${boot_TIMEOUT})
    foreach(option IN ITEMS SMP CPU)
        if(DEFINED boot_${option})
            string(TOLOWER ${option} word)
            list(APPEND run --${word} ${boot_${option}})
        endif()
    endforeach()
    if(boot_ARGS)
        list(APPEND run --append ${boot_ARGS})
    endif()
    list(APPEND run ${boot_OPTIONS})
    if(boot_EXTRA)
        list(APPEND run -- ${boot_EXTRA})
    endif()

    add_test(NAME ${name} COMMAND ${judge} -- ${run})
    # CTest's limit is only for a runner that does not keep its own; several boots have several times theirs.
    math(EXPR limit "${boot_TIMEOUT} + 360")
    list(FIND boot_OPTIONS --repeat at)
    if(NOT at EQUAL -1)
        math(EXPR limit 1500)
    endif()
    set_tests_properties(${name} PROPERTIES
        LABELS "boot;${boot_PLATFORM};${boot_LABELS}" RESOURCE_LOCK qemu SKIP_RETURN_CODE 77 TIMEOUT ${limit})
endfunction()

# add_usage_test(NAME name EXPECT exit-code SAYS regex OPTIONS option...): an end that needs no boot.
function(add_usage_test)
    cmake_parse_arguments(PARSE_ARGV 0 usage "" "NAME;EXPECT;SAYS" "OPTIONS")
    add_test(NAME usage.${usage_NAME}
             COMMAND ${expect_exit} --exit ${usage_EXPECT} --says ${usage_SAYS} -- ${run_qemu} --preset ${SPINKICK_PRESET}
                     ${usage_OPTIONS})
    set_tests_properties(usage.${usage_NAME} PROPERTIES LABELS usage TIMEOUT 60)
endfunction()


