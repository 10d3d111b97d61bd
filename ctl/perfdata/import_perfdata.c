/*
 * Composes a bundle from a perf.data file.
 *
 * The file is mapped, and a file that is truncated while it is mapped ends ptsnapctl with SIGBUS.
 */
#include "ctl/perfdata/import_perfdata.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/memfd.h"
#include "proto/perf/perfdata.h"

#include "ctl/base/say.h"
#include "ctl/perfdata/import_images.h"
#include "ctl/perfdata/import_kernel.h"
#include "ctl/perfdata/import_private.h"

#define MAGIC_SIZE 8u
#define MAX_FILTER 1024u /* bytes of a filter that are shown */

struct import {
	const char *path, *sysroot;
	const uint8_t *map;
	size_t size;
	struct perfdata data;
	struct perfdata_pt pt;
	struct import_images images;
	struct import_records records;
	struct import_traces traces;
	struct import_zstd *zstd;
	bool cut; /* the file ends within a record */
	struct manifest manifest;
	struct bundle_writer writer;
};

bool import_perfdata_is(int fd)
{
	uint8_t magic[MAGIC_SIZE];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       perfdata_is(magic, sizeof(magic));
}

static int say_damaged(const struct import *i, const struct perfdata_error *error)
{
	return say_error(EXIT_CODE_FAILURE, "%s: damaged at byte 0x%jx: %s", i->path,
			 (uintmax_t)error->offset, error->what);
}

static int say_unusable(const struct import *i, int kind, const struct perfdata_error *error)
{
	switch (kind) {
	case PERFDATA_PIPE:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: written for a pipe, which is not read; record with `perf "
				 "record -o FILE', or convert it: `perf inject -i %s -o FILE'",
				 i->path, i->path);
	case PERFDATA_SWAPPED:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: recorded on a big-endian machine, which has no Intel PT",
				 i->path);
	case PERFDATA_OLD:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: written by a perf that is too old for Intel PT", i->path);
	case PERFDATA_OTHER:
		return say_error(EXIT_CODE_FAILURE, "%s: not a perf.data file", i->path);
	case -EBADMSG: return say_damaged(i, error);
	default: return import_no_memory();
	}
}

/* Finds AUXTRACE_INFO, which describes the trace and is before it, but not always the first record.
 */
static int find_pt(struct import *i)
{
	struct perfdata_record record;
	struct perfdata_error error;
	uint32_t kind = 0;
	uint64_t at = 0;
	int r;

	while ((r = perfdata_next(&i->data, &at, &record, &error)) == 0) {
		if (record.type != PERFDATA_AUXTRACE_INFO)
			continue;
		r = perfdata_parse_pt(&record, &i->pt, &kind);
		if (r == PERFDATA_FOREIGN)
			return say_error(EXIT_CODE_FAILURE,
					 "%s: holds a trace of another kind (%u) than Intel PT",
					 i->path, kind);
		error = (struct perfdata_error){record.offset,
						"the description of the trace is too short"};
		return r == 0 ? 0 : say_damaged(i, &error);
	}
	if (r < 0)
		return say_damaged(i, &error);
	return say_error(EXIT_CODE_FAILURE,
			 "%s: holds no Intel PT; record with `perf record -e intel_pt//u -o FILE'",
			 i->path);
}

static int on_record(void *userdata, const struct perfdata_record *record)
{
	struct import *i = userdata;

	return import_records_add(&i->records, record);
}

static int add_record(struct import *i, const struct perfdata_record *record)
{
	const uint8_t *bytes;
	size_t size;
	int r;

	switch (record->type) {
	case PERFDATA_AUXTRACE: return import_traces_add(&i->traces, record);
	case PERFDATA_COMPRESSED:
	case PERFDATA_COMPRESSED2:
		r = perfdata_parse_compressed(record, &bytes, &size);
		if (r == 0 && !i->zstd)
			r = import_zstd_new(on_record, i, &i->zstd);
		return r == 0 ? import_zstd_feed(i->zstd, bytes, size) : r;
	default: return import_records_add(&i->records, record);
	}
}

static int read_records(struct import *i)
{
	struct perfdata_record record;
	struct perfdata_error error = {0};
	uint64_t at = 0;
	int r, result;

	while ((r = perfdata_next(&i->data, &at, &record, &error)) == 0) {
		result = add_record(i, &record);
		if (result == -ENOMEM)
			return import_no_memory();
		error = (struct perfdata_error){
			record.offset, result == -E2BIG ? "more records than can be decoded"
				       : record.type == PERFDATA_AUXTRACE
					       ? "a trace that is neither a CPU's nor a thread's"
					       : "invalid compressed records"};
		if (result < 0)
			return say_damaged(i, &error);
	}
	i->cut = r == PERFDATA_CUT || (i->zstd && import_zstd_left(i->zstd) > 0);
	return r < 0 ? say_damaged(i, &error) : 0;
}

static int read_file(struct import *i, int fd)
{
	struct perfdata_build_id id;
	struct perfdata_error error;
	uint64_t at = 0;
	struct stat st;
	void *map;
	int r;

	if (fstat(fd, &st) < 0 || st.st_size <= 0)
		return say_error(EXIT_CODE_FAILURE, "%s: the file is empty", i->path);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return say_error(EXIT_CODE_FAILURE, "%s: %m", i->path);
	i->map = map;
	i->size = (size_t)st.st_size;
	r = perfdata_open(i->map, i->size, &i->data, &error);
	if (r != 0)
		return say_unusable(i, r, &error);
	r = find_pt(i);
	if (r != 0)
		return r;
	if (import_records_init(&i->records, &i->data, perfdata_is_timeless(&i->data, &i->pt),
				&i->images) < 0)
		return import_no_memory();
	while (perfdata_next_build_id(&i->data, &at, &id) == 0)
		if ((id.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER &&
		    import_images_add_build_id(&i->images, id.path, id.id, id.size) < 0)
			return import_no_memory();
	return read_records(i);
}

static int copy_string(const struct import *i, unsigned int feature, char **ret)
{
	const char *text = perfdata_string(&i->data, feature);

	if (text)
		*ret = strdup(text);
	return text && !*ret ? import_no_memory() : 0;
}

static int fill_host(const struct import *i, struct manifest *m)
{
	static const char intel[] = "GenuineIntel,";
	/* arch/x86/util/header.c, get_cpuid(): "GenuineIntel,6,94,3" */
	const char *cpuid = perfdata_string(&i->data, PERFDATA_CPUID);
	int r;

	m->cpu_intel = cpuid && strncmp(cpuid, intel, sizeof(intel) - 1) == 0;
	m->have_cpu = m->cpu_intel && sscanf(cpuid + sizeof(intel) - 1, "%9u,%9u,%9u",
					     &m->cpu_family, &m->cpu_model, &m->cpu_stepping) == 3;
	r = copy_string(i, PERFDATA_HOSTNAME, &m->hostname);
	if (r == 0)
		r = copy_string(i, PERFDATA_OSRELEASE, &m->kernel_release);
	if (r == 0)
		r = copy_string(i, PERFDATA_ARCH, &m->machine);
	if (r == 0)
		r = copy_string(i, PERFDATA_CPUDESC, &m->cpu_model_name);
	return r;
}

static void fill_clock(const struct import *i, struct manifest *m)
{
	const struct perfdata_pt *pt = &i->pt;

	m->have_clock = !i->records.timeless && pt->time_shift < 64 && pt->time_mult > 0 &&
			pt->time_mult <= UINT32_MAX;
	if (!m->have_clock)
		return;
	m->time_shift = (uint16_t)pt->time_shift;
	m->time_mult = (uint32_t)pt->time_mult;
	m->time_zero = pt->time_zero;
	/* Reports count times back from the recording's end. */
	if (i->records.last_ns > 0)
		m->perf_ns = i->records.last_ns;
}

/* Whether V is a factor that the manifest can hold. */
static bool is_factor(uint64_t v)
{
	return v > 0 && v <= UINT32_MAX;
}

static int fill_filters(const struct import *i, struct manifest *m)
{
	m->tasks_only = i->traces.tasks;
	if (!i->pt.filter)
		return 0;
	m->address_filter = strndup(i->pt.filter, MAX_FILTER);
	return m->address_filter ? 0 : import_no_memory();
}

static void fill_trace(const struct import *i, struct manifest *m)
{
	const struct perfdata_attr *attr = perfdata_pt_attr(&i->data, &i->pt);

	m->trace_user = !attr || !attr->exclude_user;
	m->trace_kernel = !attr || !attr->exclude_kernel;
	m->mtc_period = UINT32_MAX;
	if (attr) {
		m->pt_config = attr->config;
		m->paused = attr->start_paused;
		m->mtc_period = perfdata_mtc_period(&i->pt, attr->config);
		m->noretcomp = attr->config & i->pt.noretcomp_bit;
	}
	if (is_factor(i->pt.max_nonturbo_ratio))
		m->max_nonturbo_ratio = (uint32_t)i->pt.max_nonturbo_ratio;
	if (is_factor(i->pt.tsc_ctc_n) && is_factor(i->pt.tsc_ctc_d)) {
		m->tsc_art_num = (uint32_t)i->pt.tsc_ctc_n;
		m->tsc_art_den = (uint32_t)i->pt.tsc_ctc_d;
	}
}

static int note(struct import *i, const char *kind, uint64_t count, const char *why)
{
	if (count > 0 && manifest_add_note(&i->manifest, kind, count, why) < 0)
		return import_no_memory();
	return 0;
}

/* Notes what was left out, for the report's gaps. */
static int add_notes(struct import *i)
{
	int r = note(i, "sideband-bad", i->records.bad, "records that do not parse");

	if (r == 0)
		r = note(i, "sideband-bad", i->cut, "the file ends within a record");
	if (r == 0)
		r = note(i, "head", i->traces.cut,
			 "pieces that do not continue the piece before them: left out up to "
			 "their first PSB");
	if (r == 0)
		r = note(i, "trace-missing", i->traces.left_out,
			 "more pieces that do not continue each other than a manifest can hold");
	if (r == 0)
		r = note(i, "snapshot-copy", i->traces.copies,
			 "snapshots of perf record: the trace pauses at places that are not known");
	if (r == 0)
		r = note(i, "image-missing", i->images.dropped,
			 "more files were mapped than are looked for");
	return r;
}

static int write_bundle(struct import *i)
{
	const struct bytes_out *sideband = &i->records.out;
	struct manifest *m = &i->manifest;
	int r;

	if (i->traces.n == 0)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: holds no trace, although it was recorded with Intel PT "
				 "(samples with pieces of it, --aux-sample, are not read)",
				 i->path);
	m->id = strdup("perf.data");
	m->version = strdup(PTSNAP_VERSION);
	m->trigger_kind = strdup("offline");
	m->source = strdup("intel_pt");
	if (!m->id || !m->version || !m->trigger_kind || !m->source)
		return import_no_memory();
	fill_clock(i, m);
	fill_trace(i, m);
	m->unrecorded_cpus = perfdata_unrecorded(&i->data);
	r = fill_host(i, m);
	if (r == 0)
		r = fill_filters(i, m);
	if (r == 0)
		r = import_traces_write(&i->traces, i->path, i->pt.snapshot_mode != 0, m,
					&i->writer);
	if (r == 0)
		r = import_written(bundle_write_member(&i->writer, "sideband", sideband->data,
						       sideband->size));
	if (r == 0)
		r = import_images_write(&i->images, i->sysroot, m, &i->writer);
	if (r == 0)
		r = import_kernel_write(i->path, m, &i->writer);
	if (r == 0)
		r = add_notes(i);
	return r == 0 ? import_written(bundle_write_end(&i->writer, m)) : r;
}

static void import_done(struct import *i)
{
	import_zstd_free(i->zstd);
	import_traces_done(&i->traces);
	import_records_done(&i->records);
	import_images_done(&i->images);
	manifest_done(&i->manifest);
	perfdata_done(&i->data);
	if (i->map)
		munmap((void *)(uintptr_t)i->map, i->size);
}

int import_perfdata(int fd, const char *path, const char *sysroot, bool quiet, int *ret_fd)
{
	CLEANUP(import_done) struct import i = {.path = path, .sysroot = sysroot};
	CLEANUP_CLOSE int bundle = -EBADF;
	int r;

	manifest_init(&i.manifest);
	import_images_init(&i.images);
	r = read_file(&i, fd);
	if (r == 0 && i.data.unfinished && !quiet)
		say("%s: perf record was killed before it finished; decoding what the file has",
		    path);
	if (r == 0 && memfd_new("ptsnap-perf.data", 0, &bundle) < 0)
		r = import_no_memory();
	if (r != 0)
		return r;
	bundle_writer_init(&i.writer, bundle);
	r = write_bundle(&i);
	if (r == 0 && memfd_seal(bundle) < 0)
		r = say_error(EXIT_CODE_FAILURE, "cannot seal the bundle in memory: %m");
	if (r == 0)
		*ret_fd = take_fd(&bundle);
	return r;
}
