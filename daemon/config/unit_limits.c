/*
 * Computes the limits of the services and writes them as drop-ins. ptsnap-generator calls this
 * before anything on the host is up, so only sysfs and /proc are read.
 */
#include "daemon/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/proc/budget.h"
#include "capture/proc/number.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"

/* The program, its threads, the tables of processes and files, the kernel's symbols, and 64 MiB for
 * reports for single users (remake.c). */
#define BASE_BYTES (192ull << 20)
/* The decoder's program and libraries, and room so that its own limit is hit first. */
#define DECODER_SLACK	      (256ull << 20)
#define DECODER_SLACK_SECONDS 30u
/* The recorder gets one part of this many parts of the host's memory. */
#define MEMORY_SHARE 4u

void unit_limits_host(struct unit_limits_host *ret)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
	struct cpulist possible = {0};

	*ret = (struct unit_limits_host){.n_cpus = 1, .budget = budget_default("/proc/meminfo")};
	if (cpulist_read("/sys/devices/system/cpu/possible", &possible) == 0)
		ret->n_cpus = MAX_OF(cpulist_count(&possible), (size_t)1);
	if (pages > 0 && page_size > 0)
		ret->memory = (uint64_t)pages * (uint64_t)page_size;
}

/* No sum overflows: each number is far below 2^60 (4096 CPUs with rings of 512 MiB are 2^42). */
void unit_limits(const struct config *c, const struct unit_limits_host *host,
		 struct unit_limits *ret)
{
	const struct budget_sizes asked = {c->aux_size, c->data_size};
	uint64_t steady, bundle, most;
	struct budget_sizes rings;
	char note[256];

	/* The rings of all CPUs, as large as the budget allows. */
	budget_fit(&asked, host->n_cpus, c->ring_budget ? c->ring_budget : host->budget, false,
		   &rings, note, sizeof(note));
	steady = budget_need(&rings, host->n_cpus) + c->timeline_max + c->queue_bytes + BASE_BYTES;
	/* Memory that a snapshot may take until it is decoded. */
	bundle = host->n_cpus * rings.aux + c->sideband_bytes + UNIT_LIMITS_CODE +
		 REPORT_DEFAULT_LIMIT;
	/* Snapshots that wait, the one that decodes, the one whose bundle is being made, and those
	 * that the disk did not take. */
	most = steady + (c->max_jobs_queued + 2) * bundle +
	       c->store_in_memory * (bundle + c->max_images_bytes);
	if (host->memory)
		most = MIN_OF(most, MAX_OF(steady + 2 * bundle, host->memory / MEMORY_SHARE));
	ret->recorder_high = most;
	/* Above the first limit file pages are reclaimed; at the second one, a process is killed.
	 */
	ret->recorder_max = most + most / 8;
	ret->decoder_max = c->decode_memory + DECODER_SLACK;
	ret->decoder_seconds = c->decode_timeout_usec / 1000000u + DECODER_SLACK_SECONDS;
}

/* Writes TEXT to UNIT/FILE below DIR. 0 or -errno. */
static int write_file(int dir, const char *unit, const char *file, const char *text)
{
	CLEANUP_CLOSE int below = -EBADF, fd = -EBADF;

	if (mkdirat(dir, unit, 0755) < 0 && errno != EEXIST)
		return -errno;
	below = openat(dir, unit, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return -errno;
	fd = openat(below, file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : memfd_write_all(fd, text, strlen(text));
}

#define HEAD                                                                                       \
	"# Made by ptsnap-generator from ptsnapd.conf; made again by \"systemctl "                 \
	"daemon-reload\".\n"                                                                       \
	"# Files with names that sort later, such as those of \"systemctl edit\", are stronger.\n" \
	"[Service]\n"

int unit_limits_write(const struct unit_limits *l, const char *dir)
{
	CLEANUP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[1024];
	int r, other;

	if (fd < 0)
		return -errno;
	snprintf(text, sizeof(text), HEAD "MemoryHigh=%llu\nMemoryMax=%llu\n",
		 (unsigned long long)l->recorder_high, (unsigned long long)l->recorder_max);
	r = write_file(fd, "ptsnapd.service.d", "50-memory.conf", text);
	snprintf(text, sizeof(text), HEAD "MemoryMax=%llu\nRuntimeMaxSec=%llus\n",
		 (unsigned long long)l->decoder_max, (unsigned long long)l->decoder_seconds);
	other = write_file(fd, "ptsnap-decode@.service.d", "50-limits.conf", text);
	return r < 0 ? r : other;
}
