/*
 * Processor errata that change how a trace must be read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By the number of the erratum in the specification update of the processor that had it first;
 * others have it under other numbers. */
struct errata {
	/* BDM64: a transaction abort right behind a branch: the branch's packet may say where the
	 * abort was instead of where the branch went. */
	bool bdm64;
	/* BDM70, SKD024: a PSB+ may have a FUP though tracing is off, when it is about to be
	 * enabled. */
	bool bdm70;
	/* SKD007: a 2-byte CYC that overflows may swallow the first byte of the OVF behind it. */
	bool skd007;
	/* SKD010: the FUP or TIP.PGE behind an OVF may be missing. */
	bool skd010;
	/* SKD022: VMLAUNCH and VMRESUME that end tracing may have FUP and TIP.PGD, as if they had
	 * not executed. */
	bool skd022;
	/* SKL014: a direct branch out of an address filter may have a TIP.PGD without IP. */
	bool skl014;
	/* SKL168: CYC packets, and an MTC with them, may be missing directly before a PSB. */
	bool skl168;
	/* SKZ84: TMA packets may be a byte longer, with reserved bits set, where a hypervisor
	 * shifts or scales the TSC. */
	bool skz84;
	/* APL11: an OVF may be followed by a TIP.PGD though tracing is off. */
	bool apl11;
	/* APL12: an OVF may be followed by a FUP though tracing is off. */
	bool apl12;
};

#define ERRATA_N 10u

/* The errata of that CPU. Family 0, an unknown CPU: those whose remedy cannot harm a right trace.
 */
struct errata errata_for(uint32_t family, uint32_t model);
/* Whether anything is known about that CPU. */
bool errata_known(uint32_t family, uint32_t model);
/* The names ("BDM64") of those in E, in the order above. Returns how many, at most ERRATA_N. */
size_t errata_list(const struct errata *e, const char *ret_names[static ERRATA_N]);
