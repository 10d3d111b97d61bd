/*
 * Our own vDSO: all 64-bit processes have the same one, at another address.
 */
#pragma once

#include <stdint.h>

/* NULL, and size 0: there is none. The whole mapping, as its MMAP2 record has it: a kernel image,
 * never written. */
const void *vdso_own(uint64_t *ret_size);
