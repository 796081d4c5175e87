// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void ck_fas_pairs(uint64_t pairs);
void ck_ticket_pairs(uint64_t pairs);
void ck_mcs_pairs(uint64_t pairs);

#ifdef __cplusplus
}
#endif
