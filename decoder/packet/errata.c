/*
 * The table of processors and their errata.
 *
 * Sources: Intel's specification updates; the choice of models is that of libipt's tests.
 */
#include "decoder/packet/errata.h"

#include "proto/base.h"

enum {
	BDM64 = 1,
	BDM70 = 2,
	SKD007 = 4,
	SKD010 = 8,
	SKD022 = 0x10,
	SKL014 = 0x20,
	SKL168 = 0x40,
	SKZ84 = 0x80,
	APL11 = 0x100,
	APL12 = 0x200
};

#define SKYLAKE	  (BDM70 | SKD007 | SKD010 | SKD022 | SKL014 | SKL168)
#define XEON	  (BDM70 | SKD022 | SKL014 | SKZ84)
#define ICE_LAKE  (BDM70 | SKD022 | SKL014)
#define SAPPHIRE  (BDM70 | SKD022 | SKZ84)
#define HYBRID	  (BDM70 | SKD022 | APL11)
#define BROADWELL (BDM64 | BDM70)

/* clang-format off */
static const struct {
	uint8_t family, model;
	uint16_t has;
} models[] = {
	{6, 0x3d, BROADWELL}, {6, 0x47, BROADWELL}, {6, 0x4f, BROADWELL}, {6, 0x56, BROADWELL},
	/* Skylake to Comet Lake */
	{6, 0x4e, SKYLAKE}, {6, 0x5e, SKYLAKE}, {6, 0x8e, SKYLAKE}, {6, 0x9e, SKYLAKE},
	{6, 0xa5, SKYLAKE}, {6, 0xa6, SKYLAKE},
	/* Skylake and Ice Lake Xeon */
	{6, 0x55, XEON}, {6, 0x6a, XEON}, {6, 0x6c, XEON},
	/* Cannon Lake to Rocket Lake */
	{6, 0x66, ICE_LAKE}, {6, 0x7d, ICE_LAKE}, {6, 0x7e, ICE_LAKE}, {6, 0x8c, ICE_LAKE},
	{6, 0x8d, ICE_LAKE}, {6, 0xa7, ICE_LAKE}, {6, 0xa8, ICE_LAKE},
	/* Sapphire Rapids and later Xeon */
	{6, 0x8f, SAPPHIRE}, {6, 0xad, SAPPHIRE}, {6, 0xae, SAPPHIRE}, {6, 0xcf, SAPPHIRE},
	{19, 0x01, SAPPHIRE},
	/* Alder Lake and later, with two kinds of cores */
	{6, 0x97, HYBRID}, {6, 0x9a, HYBRID}, {6, 0xaa, HYBRID}, {6, 0xac, HYBRID},
	{6, 0xb5, HYBRID}, {6, 0xb7, HYBRID}, {6, 0xba, HYBRID}, {6, 0xbd, HYBRID},
	{6, 0xbf, HYBRID}, {6, 0xc5, HYBRID}, {6, 0xc6, HYBRID}, {6, 0xcc, HYBRID},
	{6, 0xd5, HYBRID}, {18, 0x01, HYBRID}, {18, 0x03, HYBRID},
	/* Goldmont */
	{6, 0x5c, APL11 | APL12}, {6, 0x5f, APL11 | APL12},
	/* Goldmont Plus and later Atoms */
	{6, 0x7a, APL11}, {6, 0x86, APL11}, {6, 0x96, APL11}, {6, 0x9c, APL11}, {6, 0xaf, APL11},
	{6, 0xb6, APL11}, {6, 0xdd, APL11},
};
/* clang-format on */

static uint32_t find(uint32_t family, uint32_t model)
{
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		if (models[i].family == family && models[i].model == model)
			return models[i].has;
	}
	return 0;
}

bool errata_known(uint32_t family, uint32_t model)
{
	return find(family, model) != 0;
}

struct errata errata_for(uint32_t family, uint32_t model)
{
	/* A FUP in a PSB+ says that tracing is on, and a TIP.PGE says that it was off. If the
	 * TIP.PGE follows the FUP, the FUP is wrong on any processor. The same is true of packets
	 * behind an OVF. */
	uint32_t has = family == 0 ? BDM70 | APL11 : find(family, model);

	return (struct errata){
		.bdm64 = (has & BDM64) != 0,
		.bdm70 = (has & BDM70) != 0,
		.skd007 = (has & SKD007) != 0,
		.skd010 = (has & SKD010) != 0,
		.skd022 = (has & SKD022) != 0,
		.skl014 = (has & SKL014) != 0,
		.skl168 = (has & SKL168) != 0,
		.skz84 = (has & SKZ84) != 0,
		.apl11 = (has & APL11) != 0,
		.apl12 = (has & APL12) != 0,
	};
}

size_t errata_list(const struct errata *e, const char *ret_names[static ERRATA_N])
{
	const struct {
		bool has;
		const char *name;
	} all[ERRATA_N] = {
		{e->bdm64, "BDM64"},   {e->bdm70, "BDM70"},   {e->skd007, "SKD007"},
		{e->skd010, "SKD010"}, {e->skd022, "SKD022"}, {e->skl014, "SKL014"},
		{e->skl168, "SKL168"}, {e->skz84, "SKZ84"},   {e->apl11, "APL11"},
		{e->apl12, "APL12"},
	};
	size_t n = 0;

	for (size_t i = 0; i < ERRATA_N; i++) {
		if (all[i].has)
			ret_names[n++] = all[i].name;
	}
	return n;
}
