/*
 * The ordinary instructions, by tables: some six times as fast as by Zydis. Called by insn.c, which
 * asks Zydis for the rest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/insn.h"

/* The instruction that begins at BYTES and lies at IP. False: not for tables, or not within N
 * bytes; *RET is then undefined. */
bool insn_quick_read(enum insn_mode mode, uint64_t ip, const uint8_t *bytes, size_t n,
		     struct insn *ret);
/* The run of insn_read_run, as far as it is for tables and not near the end of the bytes. True: it
 * has ended. */
bool insn_quick_run(enum insn_mode mode, uint64_t ip, const uint8_t *bytes, size_t n,
		    struct insn_run *run);
