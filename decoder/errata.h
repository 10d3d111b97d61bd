/*
 * Processor errata that change how a trace must be read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct errata {
	/* BDM70, SKD024 and the same elsewhere: "Intel PT PSB+ packets may contain unexpected
	 * packets", a FUP though tracing is off, when it is about to be enabled. */
	bool psb_fup_before_enable;
	/* APL12: an OVF may be followed by a FUP though tracing is off. */
	bool ovf_fup_while_off;
};

/* The errata of that CPU. Family 0, an unknown CPU: those whose remedy cannot harm a right trace.
 */
struct errata errata_for(uint32_t family, uint32_t model);
