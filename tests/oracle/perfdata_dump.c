/*
 * perfdata_dump FILE: the records of a perf.data as our reader sees them, a line each in the words
 * of `perf script -D', for comparison with it. Compressed ones are among the others.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "ctl/perfdata/import_private.h"
#include "proto/base.h"
#include "proto/perf/perfdata.h"

static void put_mapping(const struct perfrecord *r)
{
	uint32_t prot = r->u.mmap2.prot;

	printf(" %d/%d: [%#" PRIx64 "(%#" PRIx64 ") @ ", (int)r->u.mmap2.pid, (int)r->u.mmap2.tid,
	       r->u.mmap2.addr, r->u.mmap2.len);
	printf(r->u.mmap2.pgoff ? "%#" PRIx64 : "%" PRIx64, r->u.mmap2.pgoff);
	if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		printf(" <");
		for (unsigned i = 0; i < r->u.mmap2.build_id_size; i++)
			printf("%02x", r->u.mmap2.build_id[i]);
		printf(">");
	} else {
		printf(" %02x:%02x %" PRIu64 " %" PRIu64, r->u.mmap2.maj, r->u.mmap2.min,
		       r->u.mmap2.ino, r->u.mmap2.ino_generation);
	}
	printf("]: %c%c%c%c %s", prot & PROT_READ ? 'r' : '-', prot & PROT_WRITE ? 'w' : '-',
	       prot & PROT_EXEC ? 'x' : '-', r->u.mmap2.flags & MAP_SHARED ? 's' : 'p',
	       r->u.mmap2.filename);
}

static void put_switch(const struct perfrecord *r)
{
	bool out = r->misc & PERF_RECORD_MISC_SWITCH_OUT;

	printf(" %s", out ? "OUT" : "IN");
	if (r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
		printf(" preempt");
	if (r->type == PERF_RECORD_SWITCH_CPU_WIDE)
		printf(" %s pid/tid: %d/%d", out ? "next" : "prev",
		       (int)r->u.context_switch.next_prev_pid,
		       (int)r->u.context_switch.next_prev_tid);
}

static void put_body(const struct perfrecord *r)
{
	switch (r->type) {
	case PERF_RECORD_COMM:
		printf("%s: %s:%d/%d", r->misc & PERF_RECORD_MISC_COMM_EXEC ? " exec" : "",
		       r->u.comm.comm, (int)r->u.comm.pid, (int)r->u.comm.tid);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		printf("(%d:%d):(%d:%d)", (int)r->u.task.pid, (int)r->u.task.tid,
		       (int)r->u.task.ppid, (int)r->u.task.ptid);
		break;
	case PERF_RECORD_MMAP2: put_mapping(r); break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE: put_switch(r); break;
	default: break;
	}
}

static int dump(void *userdata, const struct perfdata_record *record)
{
	const struct perfdata *p = userdata;
	const char *name = perfrecord_type_name(record->type);
	struct perfrecord r;

	if (record->type >= 64 || record->type == PERF_RECORD_SAMPLE)
		return 0;
	if (perfdata_parse(p, record, &r) < 0) {
		printf("BAD %" PRIu32 "\n", record->type);
		return 0;
	}
	if (r.cpu != UINT32_MAX)
		printf("%" PRIu32 " ", r.cpu);
	printf("%" PRIu64 " PERF_RECORD_%s", r.time, name ? name : "?");
	/* A MMAP comes as a MMAP2; perf writes them differently. */
	if (record->type != PERF_RECORD_MMAP)
		put_body(&r);
	putchar('\n');
	return 0;
}

static int dump_all(struct perfdata *p)
{
	struct perfdata_record record;
	struct perfdata_error error = {0};
	struct import_zstd *z;
	const uint8_t *bytes;
	uint64_t at = 0;
	size_t size;
	int r;

	if (import_zstd_new(dump, p, &z) < 0)
		return 1;
	while ((r = perfdata_next(p, &at, &record, &error)) == 0) {
		bool packed =
			record.type == PERFDATA_COMPRESSED || record.type == PERFDATA_COMPRESSED2;

		if (!packed)
			dump(p, &record);
		else if (perfdata_parse_compressed(&record, &bytes, &size) < 0 ||
			 import_zstd_feed(z, bytes, size) < 0)
			return 1;
	}
	size = import_zstd_left(z);
	import_zstd_free(z);
	return r != PERFDATA_END || size > 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct perfdata_error error = {0};
	struct perfdata p;
	struct stat st;
	void *map;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return 2;
	r = perfdata_open(map, (size_t)st.st_size, &p, &error);
	if (r != 0) {
		fprintf(stderr, "%s: %d: %s\n", argv[1], r, error.what ? error.what : "");
		return 1;
	}
	r = dump_all(&p);
	perfdata_done(&p);
	return r;
}
