/*
 * What the program must not see of the emulator: changed variables of its environment, the
 * descriptor of its file, the emulator's name, core files and messages on stderr.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Call at the program's first block. COMM: the process' name, as execve would have set it. RSP: the
 * guest's stack pointer at its first instruction. */
void disguise_begin(const char *comm, uint64_t rsp);
/* NATIVE: the next exec runs without the emulator, and gets the limit of core files that the
 * program was given. Not NATIVE: that exec failed; the emulator must write no core file. */
void disguise_native(bool native);
