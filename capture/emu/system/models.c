/*
 * The table of processors.
 *
 * Sources: Intel's specification updates, by the errata's names in decoder/packet/errata.h; TSX:
 * the processors whose CPUID leaf 7 has HLE or RTM.
 */
#include "capture/emu/system/models.h"

#include <stddef.h>

#include "capture/emu/machine/pmu.h"
#include "proto/base.h"

struct model model_of(uint32_t family, uint32_t model)
{
	static const struct {
		uint32_t family, model;
		struct model has;
	} models[] = {
		/* Broadwell */
		{6, 0x3d, {true, EMUPMU_BDM70}},
		/* Skylake */
		{6,
		 0x5e,
		 {true,
		  EMUPMU_BDM70 | EMUPMU_SKD007 | EMUPMU_SKD010 | EMUPMU_SKL014 | EMUPMU_SKL168}},
		/* Ice Lake Xeon */
		{6, 0x6a, {true, EMUPMU_BDM70 | EMUPMU_SKL014}},
		/* Sapphire Rapids */
		{6, 0x8f, {true, EMUPMU_BDM70}},
		/* Alder Lake */
		{6, 0x97, {false, EMUPMU_BDM70 | EMUPMU_APL11}},
		/* Sierra Forest */
		{6, 0xaf, {false, EMUPMU_APL11}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (models[i].family == family && models[i].model == model)
			return models[i].has;
	return (struct model){0};
}
