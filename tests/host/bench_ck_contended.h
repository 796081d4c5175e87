// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Until *stop: takes the lock, works, releases it, works. Returns how often.
uint64_t ck_fas_contend(const uint32_t* stop, uint64_t units);
uint64_t ck_ticket_contend(const uint32_t* stop, uint64_t units);
uint64_t ck_mcs_contend(const uint32_t* stop, uint64_t units);

/// Counted work, the same for both sides: `units` rounds of a loop.
void contended_work(uint64_t units);

#ifdef __cplusplus
}
#endif
