// SPDX-License-Identifier: BSD-2-Clause
//
// A wait with and without a spin hint, for the check of bare_loops.awk.
int wait_for(const volatile int& flag);

int wait_for(const volatile int& flag) {
    while (flag == 0) {
#if HINT
        __builtin_ia32_pause();
#endif
    }
    return flag;
}
