/*
 * Composes a bundle from raw files.
 *
 * Each distinct file becomes one image, and each --raw-image one MMAP2 record, which names its file
 * by an inode number that we made up. Hundreds of --raw-image of one file so cost one image.
 */
#include "ctl/decode/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/memfd.h"
#include "proto/perf/perfrecord.h"
#include "proto/perf/ptpacket.h"

#include "ctl/base/say.h"

/* Limit of a file that is taken whole, because its symbols may lie outside of the mapped range. */
#define WHOLE_FILE (64ull << 20)
#define ID	   1 /* pid and tid of the only process */

struct file {
	const char *path; /* borrowed */
	int fd;
	uint64_t size;
	uint64_t first, last; /* the used part: offset of the first byte, and behind the last */
};

struct composer {
	const struct raw *raw;
	struct file *files;
	size_t n_files;
	size_t cut;
	struct bundle_writer writer;
	struct manifest manifest;
	struct bytes_out records;
	struct import_pevents pevents;
	bool own_images; /* the images of --raw-image; false: those that perf records map */
};

/* Opens a regular, non-empty file. WHAT is the option that named PATH. */
static int open_file(const char *path, const char *what, struct file *ret)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %s: %m", what, path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close_fd(fd);
		return say_error(EXIT_CODE_FAILURE, "%s: %s: not a regular file", what, path);
	}
	if (st.st_size == 0) {
		close_fd(fd);
		return say_error(EXIT_CODE_FAILURE, "%s: %s: the file is empty", what, path);
	}
	*ret = (struct file){
		.path = path, .fd = fd, .size = (uint64_t)st.st_size, .first = UINT64_MAX};
	return 0;
}

/* Finds the file of IMAGE, or opens a new one. */
static int find_file(struct composer *c, const struct raw_image *image, size_t *ret_index)
{
	int r;

	for (size_t i = 0; i < c->n_files; i++)
		if (strcmp(c->files[i].path, image->path) == 0) {
			*ret_index = i;
			return 0;
		}
	if (c->n_files == MANIFEST_MAX_IMAGES)
		return say_error(EXIT_CODE_USAGE, "more than %u different files in --raw-image",
				 MANIFEST_MAX_IMAGES);
	r = open_file(image->path, "--raw-image", &c->files[c->n_files]);
	if (r == 0)
		*ret_index = c->n_files++;
	return r;
}

/* Marks the range of IMAGE as used, cut at the end of the file. *ret_length is what remains. */
static int use_range(struct composer *c, const struct raw_image *image, struct file *file,
		     uint64_t *ret_length)
{
	uint64_t left, length, end;

	if (image->offset >= file->size)
		return say_error(EXIT_CODE_FAILURE,
				 "--raw-image: %s has %ju bytes, offset 0x%jx is beyond its end",
				 file->path, (uintmax_t)file->size, (uintmax_t)image->offset);
	left = file->size - image->offset;
	length = MIN_OF(left, image->length);
	if (image->length != UINT64_MAX && image->length > left)
		c->cut++;
	if (__builtin_add_overflow(image->vaddr, length - 1, &end))
		return say_error(EXIT_CODE_USAGE,
				 "--raw-image: %s at 0x%jx ends beyond the address space",
				 file->path, (uintmax_t)image->vaddr);
	file->first = MIN_OF(file->first, image->offset);
	file->last = MAX_OF(file->last, image->offset + length);
	*ret_length = length;
	return 0;
}

static int put_record(struct composer *c, struct perfrecord *record)
{
	static const size_t capacity = PERFRECORD_MAX_SIZE;
	CLEANUP_FREE uint8_t *buffer = malloc(capacity);
	size_t size = 0;
	int r;

	record->pid = record->tid = ID;
	if (!buffer)
		return import_no_memory();
	r = perfrecord_compose(record, buffer, capacity, &size);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot describe a mapping: %s", strerror(-r));
	bytes_put_block(&c->records, buffer, size);
	return 0;
}

static int put_mapping(struct composer *c, const struct raw_image *image)
{
	struct perfrecord record = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER};
	uint64_t length = 0;
	size_t index = 0;
	int r = find_file(c, image, &index);

	if (r == 0)
		r = use_range(c, image, &c->files[index], &length);
	if (r != 0)
		return r;
	record.u.mmap2.pid = record.u.mmap2.tid = ID;
	record.u.mmap2.addr = image->vaddr;
	record.u.mmap2.len = length;
	record.u.mmap2.pgoff = image->offset;
	record.u.mmap2.ino = index + 1;
	record.u.mmap2.prot = PROT_READ | PROT_EXEC;
	record.u.mmap2.flags = MAP_PRIVATE;
	record.u.mmap2.filename = image->path;
	return put_record(c, &record);
}

/* Describes one process that has mapped all --raw-image from the beginning on. */
static int put_process(struct composer *c)
{
	struct perfrecord comm = {.type = PERF_RECORD_COMM};
	struct perfrecord start = {.type = PERF_RECORD_ITRACE_START};
	int r;

	/* If perf records said that others were lost, only an exec tells the process for certain.
	 */
	if (c->manifest.n_pevents > 0)
		comm.misc = PERF_RECORD_MISC_COMM_EXEC;
	comm.u.comm.pid = comm.u.comm.tid = ID;
	comm.u.comm.comm = "raw";
	start.u.itrace_start.pid = start.u.itrace_start.tid = ID;
	r = put_record(c, &comm);
	if (r == 0)
		r = put_record(c, &start);
	for (size_t i = 0; i < c->raw->n_images && r == 0; i++)
		r = put_mapping(c, &c->raw->images[i]);
	return r;
}

static int fill_manifest(struct composer *c)
{
	static const uint64_t levels = PT_CONFIG_OS | PT_CONFIG_USER;
	const struct raw *raw = c->raw;
	struct manifest *m = &c->manifest;

	m->id = strdup("raw");
	m->version = strdup(PTSNAP_VERSION);
	m->trigger_kind = strdup("offline");
	m->source = strdup("raw");
	/* The user's sideband is taken for complete, as libipt's tools take it. */
	m->unrecorded_cpus = 0;
	m->have_cpu = m->cpu_intel = raw->have_cpu;
	m->cpu_family = raw->family;
	m->cpu_model = raw->model;
	m->cpu_stepping = raw->stepping;
	/* Without both bits the number is an attr.config, which does not say it. */
	m->trace_user = (raw->pt_config & levels) != PT_CONFIG_OS;
	m->trace_kernel = (raw->pt_config & levels) != PT_CONFIG_USER;
	if (raw->pt_config == MANIFEST_ABSENT)
		m->trace_user = m->trace_kernel = true;
	m->mtc_period = raw->mtc_period;
	m->pt_config = raw->pt_config;
	m->max_nonturbo_ratio = raw->max_nonturbo_ratio;
	m->tsc_art_num = raw->tsc_art_num;
	m->tsc_art_den = raw->tsc_art_den;
	return m->id && m->version && m->trigger_kind && m->source ? 0 : import_no_memory();
}

/* Writes SIZE bytes of FILE from OFFSET on as member NAME. */
static int put_file(struct composer *c, const char *name, const struct file *file, uint64_t offset,
		    uint64_t size)
{
	uint64_t copied = 0;
	int r = import_written(
		bundle_write_file(&c->writer, name, file->fd, offset, size, &copied));

	if (r == 0 && copied < size)
		return say_error(EXIT_CODE_FAILURE, "%s: cannot be read to the end", file->path);
	return r;
}

static int put_trace(struct composer *c)
{
	struct manifest_cpu *cpu;
	struct file file;
	int r = open_file(c->raw->pt_path, "--raw-pt", &file);

	if (r != 0)
		return r;
	cpu = manifest_add_cpu(&c->manifest);
	if (cpu) {
		cpu->cpu = 0;
		cpu->ring_bytes = cpu->bytes = file.size;
		cpu->aux_flags = 0;
		cpu->lost_records = 0;
	}
	r = cpu ? put_file(c, "cpu0.pt", &file, 0, file.size) : import_no_memory();
	close_fd(file.fd);
	return r;
}

static int put_image(struct composer *c, size_t index)
{
	const struct file *file = &c->files[index];
	struct manifest_image *image = manifest_add_image(&c->manifest);
	char name[32];

	if (!image)
		return import_no_memory();
	image->path = strdup(file->path);
	if (!image->path)
		return import_no_memory();
	image->ino = index + 1;
	image->offset = file->size <= WHOLE_FILE ? 0 : file->first;
	image->size = (file->size <= WHOLE_FILE ? file->size : file->last) - image->offset;
	snprintf(name, sizeof(name), "images/%zu", index);
	return put_file(c, name, file, image->offset, image->size);
}

static int put_members(struct composer *c)
{
	int r = put_trace(c);

	if (r == 0)
		r = import_pevents_read(&c->pevents, &c->manifest, &c->records);
	if (r != 0)
		return r;
	c->own_images = !c->pevents.switches;
	if (c->own_images)
		r = put_process(c);
	if (r == 0 && c->records.error)
		r = say_error(EXIT_CODE_FAILURE, "too many mappings: %s",
			      strerror(-c->records.error));
	if (r == 0)
		r = import_written(bundle_write_member(&c->writer, "sideband", c->records.data,
						       c->records.size));
	for (size_t i = 0; i < c->n_files && r == 0; i++)
		r = put_image(c, i);
	if (r == 0)
		r = import_pevents_write(&c->pevents, !c->own_images, &c->manifest, &c->writer);
	return r == 0 ? import_written(bundle_write_end(&c->writer, &c->manifest)) : r;
}

static void composer_done(struct composer *c)
{
	for (size_t i = 0; i < c->n_files; i++)
		close_fd(c->files[i].fd);
	free(c->files);
	import_pevents_done(&c->pevents);
	bytes_out_done(&c->records);
	manifest_done(&c->manifest);
}

int raw_compose(const struct raw *raw, int *ret_fd, size_t *ret_cut)
{
	CLEANUP(composer_done) struct composer c = {.raw = raw};
	CLEANUP_CLOSE int fd = -EBADF;
	int r;

	manifest_init(&c.manifest);
	bytes_out_init(&c.records, 1u << 30);
	import_pevents_init(&c.pevents, &raw->pevents);
	/* At most one file for each option. */
	c.files = calloc(raw->n_images ? raw->n_images : 1, sizeof(*c.files));
	if (!c.files || memfd_new("ptsnap-raw", 0, &fd) < 0)
		return import_no_memory();
	bundle_writer_init(&c.writer, fd);
	r = fill_manifest(&c);
	if (r == 0)
		r = put_members(&c);
	if (r == 0 && memfd_seal(fd) < 0)
		r = import_written(-errno);
	if (r != 0)
		return r;
	*ret_cut = c.cut;
	*ret_fd = take_fd(&fd);
	return 0;
}
