/*
 * Names as the source has them, of C++, Rust and D, by libiberty. Only in the worker.
 */
#pragma once

#include <stddef.h>

/* Longer names stay as they are, and so do those of which more would become. */
#define DEMANGLE_MAX_NAME 1024u
#define DEMANGLE_MAX_TEXT 4096u

/* The name in the source of NAME (a stranger's), the caller's to free; NULL: NAME is one, or
 * nobody knows. */
char *demangle(const char *name);
