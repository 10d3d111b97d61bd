/*
 * Which processors have which errata. Sources: Intel's specification updates; the choice of models
 * is libipt's (pt_cpu_errata).
 */
#include "decoder/errata.h"

#include <stddef.h>

#include "proto/base.h"

static bool among(uint32_t model, const uint8_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i] == model)
			return true;
	}
	return false;
}

struct errata errata_for(uint32_t family, uint32_t model)
{
	static const uint8_t psb_fup[] = {
		0x3d, 0x47, 0x4f, 0x56,		    /* Broadwell */
		0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6, /* Skylake to Comet Lake */
		0x55, 0x6a, 0x6c, 0x8f, 0xad, 0xae, 0xcf, 0x66, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7,
		0xa8, 0x97, 0x9a, 0xbf, 0xb7, 0xb5, 0xaa, 0xac, 0xba, 0xcc, 0xbd, 0xc5, 0xc6,
	};
	static const uint8_t ovf_fup[] = {0x5c, 0x5f};
	struct errata e = {0};

	/* A FUP in PSB+ means that tracing is on, TIP.PGE that it was off: where the one follows
	 * the other the FUP is wrong on any processor. */
	e.psb_fup_before_enable = family == 0 || (family == 0x13 && model == 0x01) ||
				  (family == 6 && among(model, psb_fup, ARRAY_SIZE(psb_fup)));
	e.ovf_fup_while_off = family == 6 && among(model, ovf_fup, ARRAY_SIZE(ovf_fup));
	return e;
}
