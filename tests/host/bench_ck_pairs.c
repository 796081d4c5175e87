// SPDX-License-Identifier: BSD-2-Clause
//
// The peers of bench_locks.cpp: the same loop over ConcurrencyKit's locks, in C, since ck's headers are C.

#include <ck_spinlock.h>
#include <stdatomic.h>

#include "tests/host/bench_ck_pairs.h"

#define CK_PAIRS(name, LOCK, UNLOCK)                                                                                   \
    __attribute__((noinline)) void name(uint64_t pairs) {                                                              \
        for (; pairs != 0; --pairs) {                                                                                  \
            LOCK;                                                                                                      \
            UNLOCK;                                                                                                    \
            atomic_signal_fence(memory_order_seq_cst);                                                                 \
        }                                                                                                              \
    }

static ck_spinlock_fas_t fas __attribute__((aligned(64))) = CK_SPINLOCK_FAS_INITIALIZER;
static ck_spinlock_ticket_t ticket __attribute__((aligned(64))) = CK_SPINLOCK_TICKET_INITIALIZER;
static ck_spinlock_mcs_t mcs __attribute__((aligned(64))) = CK_SPINLOCK_MCS_INITIALIZER;
static ck_spinlock_mcs_context_t mcs_node;

CK_PAIRS(ck_fas_pairs, ck_spinlock_fas_lock(&fas), ck_spinlock_fas_unlock(&fas))
CK_PAIRS(ck_ticket_pairs, ck_spinlock_ticket_lock(&ticket), ck_spinlock_ticket_unlock(&ticket))
CK_PAIRS(ck_mcs_pairs, ck_spinlock_mcs_lock(&mcs, &mcs_node), ck_spinlock_mcs_unlock(&mcs, &mcs_node))
