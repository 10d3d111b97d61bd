/*
 * The processors that a virtual machine can play, as far as the software PMU differs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct model {
	bool tsx;	 /* a PSB+ has MODE.TSX */
	uint32_t errata; /* EMUPMU_* */
};

/* By CPUID leaf 1. A processor that is not known has no errata. */
struct model model_of(uint32_t family, uint32_t model);
