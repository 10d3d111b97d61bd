/*
 * Whether a name of Rust is one that libiberty can be given: for demangle.c.
 */
#pragma once

#include <stdbool.h>

/* The longest name that is looked at. */
#define DEMANGLE_RUST_MAX 1024u

/* Whether NAME, which begins with "_R", is built as the mangler builds them (the "v0" scheme,
 * Rust's RFC 2603), each reference leads to where a part of it begins, and no type binds more
 * lifetimes than a program may. */
bool demangle_rust_is_sound(const char *name);
