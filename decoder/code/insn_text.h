/*
 * The text of one x86 instruction, as an assembler writes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/packet.h"

#define INSN_TEXT_MAX 256u /* bytes of a text, with the 0 */

enum insn_syntax { INSN_ATT, INSN_INTEL };

/* Zydis' decoders and formatter. */
struct insn_text;
/* NULL: no memory. */
struct insn_text *insn_text_new(enum insn_syntax syntax);
void insn_text_freep(struct insn_text **t);

/* Writes the text of the instruction that begins at BYTES and lies at IP to RET; N bytes can be
 * read there. Addresses in the text are absolute. Returns the instruction's length; 0: there is
 * no instruction, or N bytes are not enough for it, and RET is empty. */
size_t insn_text_write(const struct insn_text *t, enum insn_mode mode, uint64_t ip,
		       const uint8_t *bytes, size_t n, char ret[static INSN_TEXT_MAX]);
