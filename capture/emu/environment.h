/*
 * COMMAND's environment as it was before the launcher put a prefix on some of it
 * (EMURING_ENV_PREFIX).
 */
#pragma once

#include <stdint.h>

/* The guest's stack pointer at its first instruction: argc, argv, NULL, envp, NULL. */
void environment_restore(uint64_t rsp);
