/*
 * Processor errata that change how a trace must be read, and which processors have them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An erratum is named by its number in the specification update of the first processor that had it.
 * Other processors have it under other numbers. */
struct errata {
	/* BDM64: if a transaction aborts right behind a branch, the branch's packet may hold the
	 * place of the abort instead of the branch's target. */
	bool bdm64;
	/* BDM70, SKD024: a PSB+ may have a FUP although tracing is off, if tracing is about to be
	 * enabled. */
	bool bdm70;
	/* SKD007: a 2-byte CYC that overflows may swallow the first byte of the OVF behind it. */
	bool skd007;
	/* SKD010: the FUP or TIP.PGE behind an OVF may be missing. */
	bool skd010;
	/* SKD022: a VMLAUNCH or VMRESUME that ends tracing may write FUP and TIP.PGD, as if it had
	 * not executed. */
	bool skd022;
	/* SKL014: the TIP.PGD of a direct branch out of an address filter may have no IP. */
	bool skl014;
	/* SKL168: CYC packets, and an MTC with them, may be missing directly before a PSB. */
	bool skl168;
	/* SKZ84: if a hypervisor shifts or scales the TSC, TMA packets may be a byte longer, with
	 * reserved bits set. */
	bool skz84;
	/* APL11: a TIP.PGD may follow an OVF although tracing is off. */
	bool apl11;
	/* APL12: a FUP may follow an OVF although tracing is off. */
	bool apl12;
};

#define ERRATA_N 10u

/* The errata of a CPU. Family 0 is an unknown CPU: returns the errata whose remedy cannot harm a
 * correct trace. */
struct errata errata_for(uint32_t family, uint32_t model);
/* Whether the CPU is in the table of models. */
bool errata_known(uint32_t family, uint32_t model);
/* Lists the names ("BDM64") of the errata in E, in the order above. Returns their number. */
size_t errata_list(const struct errata *e, const char *ret_names[static ERRATA_N]);
