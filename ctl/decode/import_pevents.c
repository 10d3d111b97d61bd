/*
 * Translates perf records of a foreign layout into a bundle's sideband.
 *
 * The clock of the first file that has one becomes the bundle's clock. Times of the other files are
 * converted to it by way of the TSC, from which the file's tsc-offset is subtracted.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#include "ctl/base/say.h"
#include "ctl/decode/raw.h"

#define OTHER_CPU 1u /* the trace is of CPU 0 */

void import_pevents_init(struct import_pevents *i, const struct pevent_options *options)
{
	*i = (struct import_pevents){.options = options};
	import_images_init(&i->images);
	for (size_t n = 0; n < ARRAY_SIZE(i->fds); n++)
		i->fds[n] = -EBADF;
}

void import_pevents_done(struct import_pevents *i)
{
	import_images_done(&i->images);
	for (size_t n = 0; n < ARRAY_SIZE(i->fds); n++)
		close_fd(i->fds[n]);
}

/* Opens a file. *ret_size is the size of the used range. */
static int open_file(struct import_pevents *i, size_t index, uint64_t *ret_size)
{
	const struct pevent_file *f = &i->options->files[index];
	struct stat st;
	uint64_t end;

	i->fds[index] = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (i->fds[index] < 0)
		return say_error(EXIT_CODE_FAILURE, "--pevent: %s: %m", f->path);
	if (fstat(i->fds[index], &st) < 0 || !S_ISREG(st.st_mode))
		return say_error(EXIT_CODE_FAILURE, "--pevent: %s: not a regular file", f->path);
	end = f->end != 0 ? f->end : (uint64_t)st.st_size;
	if (end > (uint64_t)st.st_size || f->begin >= end)
		return say_error(EXIT_CODE_FAILURE,
				 "--pevent: %s has %jd bytes, which do not have %s", f->path,
				 (intmax_t)st.st_size,
				 f->begin || f->end ? "that range" : "a record");
	*ret_size = end - f->begin;
	return 0;
}

static int describe(const struct pevent_file *f, uint64_t size, struct manifest *m)
{
	struct manifest_pevent *p = manifest_add_pevent(m);

	if (!p)
		return import_no_memory();
	p->name = strdup(f->path);
	p->size = size;
	p->secondary = f->secondary;
	p->sample_type = f->sample_type;
	p->time_shift = f->time_shift;
	p->time_mult = f->time_mult;
	p->time_zero = f->time_zero;
	p->tsc_offset = f->tsc_offset;
	if (!m->have_clock && (f->sample_type & PERF_SAMPLE_TIME) && f->time_mult > 0) {
		m->have_clock = true;
		m->time_shift = (uint16_t)f->time_shift;
		m->time_mult = f->time_mult;
		m->time_zero = f->time_zero;
	}
	return p->name ? 0 : import_no_memory();
}

/* Converts a time of F's clock to the bundle's clock, both ways as the kernel says
 * (perf_event_mmap_page, cap_user_time_zero). */
static uint64_t convert_time(uint64_t time, const struct pevent_file *f, const struct manifest *m)
{
	unsigned __int128 tsc;

	if (!m->have_clock || f->time_mult == 0 ||
	    (f->tsc_offset == 0 && f->time_shift == m->time_shift && f->time_mult == m->time_mult &&
	     f->time_zero == m->time_zero))
		return time;
	tsc = ((unsigned __int128)(time - f->time_zero) << f->time_shift) / f->time_mult;
	/* The user may give a negative offset. */
	if ((int64_t)f->tsc_offset < 0)
		tsc += -f->tsc_offset;
	else
		tsc -= MIN_OF(tsc, (unsigned __int128)f->tsc_offset);
	return m->time_zero +
	       (uint64_t)((uint64_t)tsc * (unsigned __int128)m->time_mult >> m->time_shift);
}

/* A relative name is of a file beside the file of records. */
static const char *complete_path(const struct import_pevents *i, const struct pevent_file *f,
				 const char *name, char to[static 2 * PATH_MAX])
{
	char path[PATH_MAX], real[PATH_MAX];

	if (name[0] == '/' || name[0] == '[' || name[0] == '\0' || strstr(name, " (deleted)"))
		return name;
	if (i->options->sysroot) {
		snprintf(to, 2 * PATH_MAX, "/%s", name);
		return to;
	}
	if ((size_t)snprintf(path, sizeof(path), "%s", f->path) >= sizeof(path) ||
	    !realpath(dirname(path), real))
		return name;
	snprintf(to, 2 * PATH_MAX, "%s/%s", real, name);
	return to;
}

/* Whether the record says which thread has its CPU. */
static bool names_thread(const struct perfrecord *r)
{
	switch (r->type) {
	case PERF_RECORD_ITRACE_START: return true;
	case PERF_RECORD_SWITCH: return r->pid != UINT32_MAX;
	case PERF_RECORD_SWITCH_CPU_WIDE: return true;
	case PERF_RECORD_COMM: return r->misc & PERF_RECORD_MISC_COMM_EXEC;
	default: return false;
	}
}

static int put_record(struct import_pevents *i, const struct pevent_file *f,
		      const struct manifest *m, struct perfrecord *r, struct bytes_out *out)
{
	static const size_t capacity = PERFRECORD_MAX_SIZE;
	CLEANUP_FREE uint8_t *buffer = malloc(capacity);
	char path[2 * PATH_MAX];
	size_t size = 0;

	if (!buffer)
		return import_no_memory();
	r->time = convert_time(r->time, f, m);
	if (!f->secondary)
		r->cpu = 0;
	else if (r->cpu == 0 || r->cpu == UINT32_MAX)
		r->cpu = OTHER_CPU;
	i->switches |= !f->secondary && names_thread(r);
	if (r->type == PERF_RECORD_MMAP2) {
		r->u.mmap2.filename = complete_path(i, f, r->u.mmap2.filename, path);
		if ((r->u.mmap2.prot & PROT_EXEC) && import_images_add(&i->images, r) < 0)
			return import_no_memory();
	}
	if (perfrecord_compose(r, buffer, capacity, &size) < 0)
		i->n_bad++;
	else
		bytes_put_block(out, buffer, size);
	return out->error ? say_error(EXIT_CODE_FAILURE, "too many perf records: %s",
				      strerror(-out->error))
			  : 0;
}

static int translate(struct import_pevents *i, const struct pevent_file *f,
		     const struct manifest *m, const uint8_t *bytes, size_t size,
		     struct bytes_out *out)
{
	const struct perfrecord_layout layout = {f->sample_type, true};
	struct perfrecord r;

	for (size_t at = 0; size - at >= sizeof(struct perf_event_header); at += r.size) {
		int parsed, result;

		/* Zeros follow the records at the end of a copied ring. */
		if (memcmp(bytes + at, "\0\0\0", 4) == 0)
			break;
		parsed = perfrecord_parse_as(bytes + at, size - at, &layout, &r);
		if (parsed < 0)
			i->n_bad++;
		if (r.size == 0 || r.size > size - at)
			break;
		/* Kernel mappings name no files with the kernel's code. */
		if (parsed < 0 ||
		    (r.type == PERF_RECORD_MMAP2 &&
		     (r.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL))
			continue;
		result = put_record(i, f, m, &r, out);
		if (result != 0)
			return result;
	}
	return 0;
}

static int read_file(struct import_pevents *i, size_t index, uint64_t size, struct manifest *m,
		     struct bytes_out *out)
{
	const struct pevent_file *f = &i->options->files[index];
	CLEANUP_FREE uint8_t *bytes = malloc(size);
	size_t done = 0;
	ssize_t n = 1;

	if (!bytes)
		return import_no_memory();
	while (done < size && n > 0) {
		n = pread(i->fds[index], bytes + done, size - done, (off_t)(f->begin + done));
		if (n < 0)
			return say_error(EXIT_CODE_FAILURE, "--pevent: %s: %m", f->path);
		done += (size_t)n;
	}
	return translate(i, f, m, bytes, done, out);
}

int import_pevents_read(struct import_pevents *i, struct manifest *m, struct bytes_out *out)
{
	uint64_t sizes[MANIFEST_MAX_PEVENTS];
	int r = 0;

	/* The bundle's clock must be known before the first record is converted. */
	for (size_t n = 0; n < i->options->n_files && r == 0; n++) {
		r = open_file(i, n, &sizes[n]);
		if (r == 0)
			r = describe(&i->options->files[n], sizes[n], m);
	}
	for (size_t n = 0; n < i->options->n_files && r == 0; n++)
		r = read_file(i, n, sizes[n], m, out);
	if (r == 0 && i->n_bad > 0)
		say("--pevent: %ju records do not parse and are left out; does the sample-type "
		    "fit?",
		    (uintmax_t)i->n_bad);
	return r;
}

int import_pevents_write(struct import_pevents *i, bool images, struct manifest *m,
			 struct bundle_writer *w)
{
	int r = 0;

	for (size_t n = 0; n < i->options->n_files && r == 0; n++) {
		const struct pevent_file *f = &i->options->files[n];
		uint64_t copied = 0;
		char name[32];

		snprintf(name, sizeof(name), "pevent/%zu", n);
		r = import_written(bundle_write_file(w, name, i->fds[n], f->begin,
						     m->pevents[n].size, &copied));
		if (r == 0 && copied < m->pevents[n].size)
			r = say_error(EXIT_CODE_FAILURE, "%s: cannot be read to the end", f->path);
	}
	if (r == 0 && images)
		r = import_images_write(&i->images, i->options->sysroot, m, w);
	return r;
}
