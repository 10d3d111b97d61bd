/*
 * The program's environment as it was before who started the emulator put a prefix on some of it
 * (capture/emu/machine/emustart.h).
 */
#pragma once

#include <stdint.h>

/* The guest's stack pointer at its first instruction: argc, argv, NULL, envp, NULL. */
void environment_restore(uint64_t rsp);
