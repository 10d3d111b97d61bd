/*
 * Reads the recorded machines of tests/sysfs.
 */
#include "tests/unit/capture/sysfs.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

const char *const sysfs_names[] = {
	"broadwell", "broadwell-x",    "skylake",   "cascadelake-x", "icelake",	  "icelake-d",
	"goldmont",  "sapphirerapids", "alderlake", "arrowlake",     "denverton",
};
const size_t sysfs_n_names = ARRAY_SIZE(sysfs_names);

static void path_of(const char *name, const char *what, char *ret)
{
	const char *source = getenv("PTSNAP_SRCDIR");

	snprintf(ret, PATH_MAX, "%s/tests/sysfs/%s/%s", source != NULL ? source : ".", name, what);
}

static int reader_read(void *userdata, uint32_t cpu, struct cpuid_leaf *leaves, size_t n)
{
	const struct sysfs_machine *m = userdata;
	const struct sysfs_cpus *kind = NULL;

	for (size_t i = 0; i < m->n_kinds; i++)
		if (cpu >= m->cpus[i].first && cpu <= m->cpus[i].last)
			kind = &m->cpus[i];
	if (kind == NULL)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		struct cpuid_leaf asked = leaves[i];

		leaves[i] = (struct cpuid_leaf){.leaf = asked.leaf, .subleaf = asked.subleaf};
		for (size_t k = 0; k < kind->n_leaves; k++)
			if (kind->leaves[k].leaf == asked.leaf &&
			    kind->leaves[k].subleaf == asked.subleaf)
				leaves[i] = kind->leaves[k];
	}
	return 0;
}

static void read_line(struct sysfs_machine *m, const char *line)
{
	struct sysfs_cpus *kind;
	struct cpuid_leaf *l;

	if (strncmp(line, "cpus ", 5) == 0) {
		assert_true(m->n_kinds < ARRAY_SIZE(m->cpus));
		kind = &m->cpus[m->n_kinds++];
		assert_int_equal(sscanf(line, "cpus %u-%u", &kind->first, &kind->last), 2);
		return;
	}
	assert_true(m->n_kinds > 0);
	kind = &m->cpus[m->n_kinds - 1];
	assert_true(kind->n_leaves < SYSFS_MAX_LEAVES);
	l = &kind->leaves[kind->n_leaves++];
	assert_int_equal(sscanf(line, "%x.%x %x %x %x %x", &l->leaf, &l->subleaf, &l->eax, &l->ebx,
				&l->ecx, &l->edx),
			 6);
}

void sysfs_read(const char *name, struct sysfs_machine *ret)
{
	char path[PATH_MAX], line[128];
	FILE *file;

	*ret = (struct sysfs_machine){.name = name, .reader = {reader_read, ret}};
	path_of(name, "intel_pt", path);
	assert_int_equal(pmu_read(path, &ret->pmu), 0);
	path_of(name, "cpuid", path);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		read_line(ret, line);
	fclose(file);
}

size_t sysfs_cpus(const struct sysfs_machine *m, struct cpuid *cpus)
{
	uint32_t n = m->cpus[m->n_kinds - 1].last + 1;

	assert_true(n <= SYSFS_MAX_CPUS);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(cpuid_read(&m->reader, i, &cpus[i]), 0);
	return n;
}

void sysfs_complete(const struct sysfs_machine *m, struct pmu *ret)
{
	struct cpulist all = {{0}};

	for (uint32_t cpu = 0; cpu <= m->cpus[m->n_kinds - 1].last; cpu++)
		all.bits[cpu / 64] |= 1ull << cpu % 64;
	/* Adds a CPU that does not exist, as an offline CPU. */
	all.bits[CPULIST_MAX / 64 - 1] = 1;
	*ret = m->pmu;
	assert_int_equal(cpuid_complete_pmu_of(&m->reader, &all, 0, ret), 0);
}
