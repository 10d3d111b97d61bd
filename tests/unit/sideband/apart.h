/*
 * This program as packages have it: stripped, with its names in a debug file apart or packed
 * within. For the tests of ELF and symbols.
 */
#pragma once

#include <stdbool.h>

#include "tests/unit/sideband/self.h"

struct apart {
	char directory[64];
	struct file whole;
	struct file stripped; /* without symbols and DWARF, except .dynsym */
	struct file debug;    /* only the symbols and the DWARF */
	struct file packed;   /* stripped, with .gnu_debugdata */
};

/* False: the tools are not installed. */
bool apart_make(struct apart *ret);
void apart_drop(struct apart *a);
