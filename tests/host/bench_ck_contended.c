// SPDX-License-Identifier: BSD-2-Clause
//
// The peers of bench_contended.cpp: the same loop over ConcurrencyKit's locks, in C, since ck's headers are C.

#include "tests/host/bench_ck_contended.h"

#include <ck_spinlock.h>
#include <stdatomic.h>

__attribute__((noinline)) void contended_work(uint64_t units) {
    for (; units != 0; --units)
        atomic_signal_fence(memory_order_seq_cst); // the loop stays a loop
}

#define CK_CONTEND(name, LOCK, UNLOCK)                                                                                 \
    uint64_t name(const uint32_t* stop, uint64_t units) {                                                              \
        uint64_t count = 0;                                                                                            \
        for (; __atomic_load_n(stop, __ATOMIC_RELAXED) == 0; ++count) {                                                \
            LOCK;                                                                                                      \
            contended_work(units);                                                                                     \
            UNLOCK;                                                                                                    \
            contended_work(units);                                                                                     \
        }                                                                                                              \
        return count;                                                                                                  \
    }

static ck_spinlock_fas_t fas __attribute__((aligned(64))) = CK_SPINLOCK_FAS_INITIALIZER;
static ck_spinlock_ticket_t ticket __attribute__((aligned(64))) = CK_SPINLOCK_TICKET_INITIALIZER;
static ck_spinlock_mcs_t mcs __attribute__((aligned(64))) = CK_SPINLOCK_MCS_INITIALIZER;
static _Thread_local ck_spinlock_mcs_context_t mcs_node __attribute__((aligned(64)));

CK_CONTEND(ck_fas_contend, ck_spinlock_fas_lock(&fas), ck_spinlock_fas_unlock(&fas))
CK_CONTEND(ck_ticket_contend, ck_spinlock_ticket_lock(&ticket), ck_spinlock_ticket_unlock(&ticket))
CK_CONTEND(ck_mcs_contend, ck_spinlock_mcs_lock(&mcs, &mcs_node), ck_spinlock_mcs_unlock(&mcs, &mcs_node))
