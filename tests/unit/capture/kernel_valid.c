/*
 * The kernel's rules for attr.config, one after the other.
 */
#include "tests/unit/capture/kernel_valid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct leaf14 {
	uint32_t ebx0, eax1, ebx1, model;
};

static struct leaf14 leaf14_of(const struct sysfs_machine *m, const struct sysfs_cpus *kind)
{
	struct cpuid_leaf l[] = {{.leaf = 0x14}, {.leaf = 0x14, .subleaf = 1}, {.leaf = 1}};
	uint32_t signature;

	assert_int_equal(m->reader.read(m->reader.userdata, kind->first, l, 3), 0);
	signature = l[2].eax;
	return (struct leaf14){l[0].ebx, l[1].eax, l[1].ebx,
			       (signature >> 4 & 0xf) | (signature >> 12 & 0xf0)};
}

static bool listed(uint32_t set, uint64_t config, unsigned shift)
{
	return (set >> (config >> shift & 0xf) & 1) != 0;
}

static bool psb_cyc_ok(const struct leaf14 *l, uint64_t config)
{
	if ((config & (RTIT_CYC | RTIT_CYC_THRESH | RTIT_PSB_PERIOD)) == 0)
		return true;
	if ((l->ebx0 & 1 << 1) == 0)
		return false;
	if ((config & RTIT_PSB_PERIOD) != 0 && !listed(l->ebx1 >> 16, config, 24))
		return false;
	return (config & RTIT_CYC_THRESH) == 0 || listed(l->ebx1 & 0xffff, config, 19);
}

static bool mtc_ok(const struct leaf14 *l, uint64_t config)
{
	if ((config & (RTIT_MTC | RTIT_MTC_PERIOD)) == 0)
		return true;
	return (l->ebx0 & 1 << 3) != 0 && listed(l->eax1 >> 16, config, 14);
}

static bool ptwrite_ok(const struct leaf14 *l, uint64_t config)
{
	if ((config & (RTIT_PTW | RTIT_FUP_ON_PTW)) == 0)
		return true;
	return (l->ebx0 & 1 << 4) != 0 && (config & RTIT_PTW) != 0;
}

static bool branch_ok(const struct leaf14 *l, uint64_t config)
{
	bool broadwell =
		l->model == 0x3d || l->model == 0x47 || l->model == 0x4f || l->model == 0x56;

	if ((config & RTIT_PT) == 0)
		return (config & RTIT_BRANCH) == 0;
	return !broadwell || (config & RTIT_BRANCH) != 0;
}

static uint64_t known_bits(const struct sysfs_machine *m)
{
	uint64_t old = RTIT_PT | RTIT_CYC | RTIT_PWR_EVT | RTIT_FUP_ON_PTW | RTIT_MTC | RTIT_TSC |
		       RTIT_NORETCOMP | RTIT_PTW | RTIT_BRANCH | RTIT_MTC_PERIOD | RTIT_CYC_THRESH |
		       RTIT_PSB_PERIOD;

	/* Since 5.17. */
	return pmu_find_term(&m->pmu, "event") != NULL ? old | RTIT_EVENT | RTIT_NOTNT : old;
}

bool kernel_valid(const struct sysfs_machine *m, uint64_t config)
{
	if ((config & ~known_bits(m)) != 0)
		return false;
	for (size_t i = 0; i < m->n_kinds; i++) {
		struct leaf14 l = leaf14_of(m, &m->cpus[i]);

		if (!psb_cyc_ok(&l, config) || !mtc_ok(&l, config) || !ptwrite_ok(&l, config) ||
		    !branch_ok(&l, config))
			return false;
		if ((config & RTIT_PWR_EVT) != 0 && (l.ebx0 & 1 << 5) == 0)
			return false;
		if ((config & RTIT_EVENT) != 0 && (l.ebx0 & 1 << 7) == 0)
			return false;
		if ((config & RTIT_NOTNT) != 0 && (l.ebx0 & 1 << 8) == 0)
			return false;
	}
	return true;
}
