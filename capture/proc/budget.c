/*
 * Works out the sizes of rings, and describes them.
 */
#include "capture/proc/budget.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "capture/proc/number.h"
#include "capture/proc/procfile.h"
#include "proto/base.h"

#define MEMINFO_MAX	4096
#define LEAST		(64ull << 20)
#define SHARE_OF_MEMORY 16u

uint64_t budget_need(const struct budget_sizes *sizes, size_t n_cpus)
{
	return n_cpus * (2 * sizes->aux + sizes->data + BUDGET_PT_DATA + 2 * (uint64_t)BUDGET_PAGE);
}

/* 8388608 -> "8M". */
static void format_size(uint64_t bytes, char *ret, size_t size)
{
	static const char units[] = "KMG";
	size_t unit = 0;
	uint64_t n = bytes >> 10;

	while (n >= 1024 && n % 1024 == 0 && unit + 2 < sizeof(units)) {
		n >>= 10;
		unit++;
	}
	snprintf(ret, size, "%llu%c", (unsigned long long)n, units[unit]);
}

/* Appends to NOTE if GOT is not ASKED; returns the bytes of NOTE used now. */
static size_t add(char *note, size_t size, size_t used, const char *what, uint64_t asked,
		  uint64_t got)
{
	char from[32], to[32];

	if (asked == got || used >= size)
		return used;
	format_size(asked, from, sizeof(from));
	format_size(got, to, sizeof(to));
	return used + (size_t)snprintf(note + used, size - used, "%s%s ring %s instead of %s",
				       used > 0 ? ", " : "", what, to, from);
}

static void describe(const struct budget_sizes *asked, const struct budget_sizes *got,
		     size_t n_cpus, uint64_t budget, bool single, char *note, size_t size)
{
	char limit[32], need[32];
	size_t used = 0;

	note[0] = '\0';
	used = add(note, size, used, "trace", asked->aux, got->aux);
	used = add(note, size, used, "sideband", asked->data, got->data);
	format_size(budget, limit, sizeof(limit));
	format_size(budget_need(got, n_cpus), need, sizeof(need));
	if (used > 0 && used < size && single && got->aux == BUDGET_SINGLE_ENTRY)
		snprintf(note + used, size - used, " a CPU: this PMU writes to one block only");
	else if (used > 0 && used < size)
		snprintf(note + used, size - used, " a CPU: RingBudget=%s for %zu CPUs", limit,
			 n_cpus);
	else if (budget_need(got, n_cpus) > budget)
		snprintf(note, size,
			 "rings and copy area need %s, which RingBudget=%s does not "
			 "hold, even at their smallest",
			 need, limit);
}

void budget_fit(const struct budget_sizes *asked, size_t n_cpus, uint64_t budget, bool single,
		struct budget_sizes *ret, char *note, size_t size)
{
	assert(size > 0);
	*ret = *asked;
	if (single && ret->aux > BUDGET_SINGLE_ENTRY)
		ret->aux = BUDGET_SINGLE_ENTRY;
	while (budget_need(ret, n_cpus) > budget && ret->aux > BUDGET_MIN_RING)
		ret->aux /= 2;
	while (budget_need(ret, n_cpus) > budget && ret->data > BUDGET_MIN_RING)
		ret->data /= 2;
	describe(asked, ret, n_cpus, budget, single, note, size);
}

uint64_t budget_default(const char *meminfo)
{
	char text[MEMINFO_MAX];
	const char *at;
	uint64_t kib;

	if (procfile_read(AT_FDCWD, meminfo, text, sizeof(text)) < 0)
		return LEAST;
	at = strstr(text, "MemTotal:");
	if (!at)
		return LEAST;
	at += strcspn(at, " ");
	at += strspn(at, " ");
	if (!number_parse(at, 10, UINT64_MAX >> 10, " \n", NULL, &kib))
		return LEAST;
	return MAX_OF(LEAST, (kib << 10) / SHARE_OF_MEMORY);
}
