/*
 * Numbers about ourselves. Called by status.c before they are shown.
 */
#include "daemon/check/selfstat.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/store/entry.h"

#define USEC_PER_SEC 1000000u

void selfstat_init(struct selfstat *s, uint64_t now_usec)
{
	*s = (struct selfstat){.rss_bytes = ENTRY_ABSENT, .seen_usec = now_usec};
}

static uint64_t cpu_usec(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * USEC_PER_SEC +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* proc(5), /proc/pid/statm: the second number, in pages. */
static uint64_t rss_bytes(const char *statm)
{
	FILE *f = fopen(statm, "re");
	uint64_t pages;
	long size = sysconf(_SC_PAGESIZE);
	int n;

	if (!f)
		return ENTRY_ABSENT;
	n = fscanf(f, "%*u %" SCNu64, &pages);
	fclose(f);
	return n == 1 && size > 0 ? pages * (uint64_t)size : ENTRY_ABSENT;
}

void selfstat_look(struct selfstat *s, uint64_t now_usec, uint64_t records, const char *statm)
{
	s->cpu_usec = cpu_usec();
	s->rss_bytes = rss_bytes(statm);
	if (now_usec < s->seen_usec + USEC_PER_SEC)
		return;
	s->records_per_second =
		(records - s->seen_records) * USEC_PER_SEC / (now_usec - s->seen_usec);
	s->seen_usec = now_usec;
	s->seen_records = records;
}
