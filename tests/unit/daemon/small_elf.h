/*
 * Files that have a build id, as the kernel reads it, and nothing else.
 */
#pragma once

#include <stdint.h>

/* 0; -1 and errno. */
int small_elf_write(const char *path, const uint8_t id[20]);
