/*
 * Between a target and the replay of its corpus (standalone.c).
 */
#pragma once

/* The result of a target for an input that its first check turns away, so that the rest of the
 * target never sees the input. The replay counts such inputs: a seed that a later format turned
 * away is worth nothing any more. libFuzzer wants 0 (llvm 14, FuzzerLoop.cpp). */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define FUZZ_REJECTED 0
#else
#define FUZZ_REJECTED 1
#endif

/* Prints what the inputs reached. A target may define it; the replay calls it at its end. */
void fuzz_report(void);
