// SPDX-License-Identifier: BSD-2-Clause
//
// Included before anything else when the mutated headers are compiled.
#pragma once

/// The mutant that runs; 0 is none. Set by --mutant.
extern unsigned spinkick_mutant;
