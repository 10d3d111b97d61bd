/*
 * COMMAND's environment on its way through the emulator: variables that would act on QEMU itself
 * (its dynamic linker, its malloc) travel under a prefix that the launcher puts on and the plugin
 * takes off before the program's first instruction.
 */
#pragma once

#include <stdint.h>

/* Four bytes: taken off by adding 4 to the guest's pointer. No real name begins with a control
 * character. */
#define ENVIRONMENT_PREFIX	"\001pt:"
#define ENVIRONMENT_PREFIX_SIZE 4u

/* The guest's stack pointer at its first instruction: argc, argv, NULL, envp, NULL. */
void environment_restore(uint64_t rsp);
