# SPDX-License-Identifier: BSD-2-Clause
#
# The image: spinkick.elf, linked twice, since its symbol table is made from itself (kernel/symbols.hpp).

find_program(SPINKICK_NM NAMES nm REQUIRED)
find_program(SPINKICK_AWK NAMES awk mawk gawk REQUIRED)

file(GLOB image_sources CONFIGURE_DEPENDS
    boot/*.S boot/*.cpp
    arch/x86/*.S arch/x86/*.cpp arch/x86/paravirt/*.cpp arch/x86/xen_pv/*.S arch/x86/xen_pv/*.cpp
    drivers/*.cpp
    kernel/*.cpp kernel/stress/*.cpp kernel/test/*.cpp
    tests/selftest/*.cpp tests/smp/*.cpp tests/lock/*.cpp tests/paravirt/*.cpp tests/bench/*.cpp tests/trace/*.cpp tests/soak/*.cpp)

# The version as git knows it, in a header that changes only when it does.
set(version_header ${CMAKE_BINARY_DIR}/generated/version.hpp)
add_custom_target(spinkick_version
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${version_header} -DSOURCE=${CMAKE_SOURCE_DIR} -DPRESET=${SPINKICK_PRESET}
            -P ${CMAKE_SOURCE_DIR}/version.cmake
    BYPRODUCTS ${version_header}
    COMMENT "Asking git for the version")

add_library(spinkick_image_flags INTERFACE)
target_include_directories(spinkick_image_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
# -g1: line tables. What a debugger wants beyond them, in each of twenty locks' types, is a third of the time to compile: the
# preset debug has it.
target_compile_options(spinkick_image_flags INTERFACE
    $<$<CONFIG:RelWithDebInfo>:-g1>
    -march=x86-64 -mcmodel=kernel -fno-pic -fno-pie -mno-red-zone -fno-omit-frame-pointer
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build
    $<$<COMPILE_LANGUAGE:CXX>:-ffreestanding -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-stack-protector
    -fno-asynchronous-unwind-tables -fno-unwind-tables -fcf-protection=none
    -msoft-float -mno-mmx -mno-sse -mno-avx>)
# Half of a CPU's stack: one function that takes more runs over its end where a compiler optimises less.
target_compile_options(spinkick_image_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wframe-larger-than=8192>)
# clang 14's assembler writes the build folder into its line tables whatever -ffile-prefix-map says, and the same source
# would give another image in every folder.
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
    target_compile_options(spinkick_image_flags INTERFACE $<$<COMPILE_LANGUAGE:ASM>:-g0>)
endif()
if(SPINKICK_UBSAN_TRAP)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(spinkick_image_flags INTERFACE
            $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=undefined -fsanitize-undefined-trap-on-error>)
    else()
        target_compile_options(spinkick_image_flags INTERFACE
            $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=undefined -fsanitize-trap=undefined -fno-sanitize=function>)
    endif()
endif()

add_library(spinkick_objects OBJECT ${image_sources})
target_link_libraries(spinkick_objects PRIVATE spinkick_warnings spinkick_image_flags)
add_dependencies(spinkick_objects spinkick_version)

set(linker_script ${CMAKE_BINARY_DIR}/linker.ld)
add_custom_command(OUTPUT ${linker_script}
    COMMAND ${CMAKE_C_COMPILER} -E -P -x assembler-with-cpp -I ${CMAKE_SOURCE_DIR} -DLINKER_SCRIPT ${CMAKE_SOURCE_DIR}/linker.ld
            -o ${linker_script}
    DEPENDS linker.ld boot/layout.h)
add_custom_target(spinkick_linker_script DEPENDS ${linker_script})

add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/no_symbols.S
    COMMAND ${SPINKICK_AWK} -f ${CMAKE_SOURCE_DIR}/kernel/symbols.awk /dev/null > ${CMAKE_BINARY_DIR}/no_symbols.S
    DEPENDS kernel/symbols.awk)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/symbols.S
    COMMAND ${SPINKICK_NM} -C -n $<TARGET_FILE:spinkick_first_link> > ${CMAKE_BINARY_DIR}/symbols.txt
    COMMAND ${SPINKICK_AWK} -f ${CMAKE_SOURCE_DIR}/kernel/symbols.awk ${CMAKE_BINARY_DIR}/symbols.txt
            > ${CMAKE_BINARY_DIR}/symbols.S
    DEPENDS spinkick_first_link kernel/symbols.awk)

function(add_image target output symbols)
    add_executable(${target} $<TARGET_OBJECTS:spinkick_objects> ${symbols})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output} LINK_DEPENDS ${linker_script})
    add_dependencies(${target} spinkick_linker_script)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:ASM>:-g0>) # a table, which has no lines to step through
    target_link_options(${target} PRIVATE -nostdlib -static -no-pie -Wl,--no-undefined -Wl,--fatal-warnings -Wl,--build-id=none
        -Wl,-z,max-page-size=4096 -Wl,-z,noexecstack -T ${linker_script})
endfunction()
add_image(spinkick_first_link first_link.elf ${CMAKE_BINARY_DIR}/no_symbols.S)
add_image(spinkick spinkick.elf ${CMAKE_BINARY_DIR}/symbols.S)

# A CD and USB-stick image for BIOS and UEFI. Not in `all`: it needs GRUB's tools.
add_custom_target(iso
    COMMAND ${CMAKE_SOURCE_DIR}/boot/make_iso.sh $<TARGET_FILE:spinkick> ${CMAKE_BINARY_DIR}/spinkick.iso
    DEPENDS spinkick boot/make_iso.sh boot/grub-menu.cfg
    BYPRODUCTS ${CMAKE_BINARY_DIR}/spinkick.iso
    VERBATIM)
