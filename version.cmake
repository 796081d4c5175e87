# SPDX-License-Identifier: BSD-2-Clause
#
# Writes OUTPUT with the version and the preset; leaves it alone if nothing changed, so that nothing is rebuilt.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --tags
    OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT version)
    set(version "unknown")
endif()
set(text "#pragma once\n#define SPINKICK_VERSION \"${version}\"\n#define SPINKICK_PRESET \"${PRESET}\"\n")
set(old "")
if(EXISTS ${OUTPUT})
    file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
    file(WRITE ${OUTPUT} "${text}")
endif()
