/*
 * Reads code in the memory of processes through /proc/PID/mem.
 *
 * Pages in a row that are there (/proc/PID/pagemap) become an image. Pages that were never
 * touched are left out, as a read would make them. The process is not stopped and may replace its
 * memory at any time, so memory_copy() reads it.
 *
 * The recorder's list of regions may be old. A region counts only where /proc/PID/maps still has
 * memory without a file, and only in the process that was seen: /proc/PID is held open, and the
 * start time is compared.
 */
#include "daemon/gather/memory_read.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/proc/procfile.h"
#include "capture/proc/procmaps.h"
#include "daemon/record/memory.h"
#include "proto/base.h"
#include "proto/memfd.h"

#define PAGE	       4096u
#define CHUNK	       (1u << 20) /* copied at once */
#define MAPS_MAX       (64u << 20)
#define LOOK	       4096u /* pages that pagemap is asked for at once */
#define MAX_LOOKS      4096u /* at pagemap of one process: 64 GiB that are mapped */
#define MAX_ALL_LOOKS  16384u
#define MAX_IMAGES     512u /* images of one process: each is a descriptor */
#define MAX_ALL_IMAGES 2048u
#define PAGE_PRESENT   (1ull << 63) /* Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_SWAPPED   (1ull << 62)
/* A name of decoder/packet/fault.h. */
#define NOTE_ANONYMOUS "anonymous"

const struct memory_limits memory_default_limits = {
	.process = 64u << 20,
	.all = 256u << 20,
	.map = 64u << 20,
	.maps = 256u << 20,
};

/* Whole pages of memory. */
struct range {
	uint64_t begin, end;
	uint64_t unchanged_ns; /* as of a region */
	bool vdso;
};

struct reader {
	struct source *source;
	struct mounts *mounts;
	const char *proc;
	struct evidence *evidence;
	const struct memory_limits *limits;
	uint64_t left, left_maps; /* bytes that may be read yet */
	size_t images;		  /* images so far */
	uint32_t looks;
	uint64_t omitted, unreadable; /* bytes beyond a limit; processes that may not be read */
	struct memory_copy copy;
	/* The process that is read now. */
	uint32_t pid;
	int dir, mem, pagemap; /* pagemap negative: it cannot be opened */
	struct range pending;  /* not read yet */
	uint64_t process_left;
	size_t process_images;
	uint32_t process_looks;
	bool stuck; /* a read of its memory hangs */
	char *dump; /* owned; the path of its jitdump, which it maps; NULL: there is none */
};

static int set_text(const char *text, char **ret)
{
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

/* Adds FD, which has SIZE bytes that lie at ADDRESS in RANGE, as an image. */
static int add_image(struct reader *r, int fd, uint64_t address, uint64_t size,
		     const struct range *range)
{
	struct manifest_image *image = evidence_add_image(r->evidence, fd, size);

	if (!image)
		return -ENOMEM;
	image->size = 0;
	image->elsewhere = true;
	image->file_size = size;
	image->pid = r->pid;
	image->address = address;
	image->read_ns = source_now_ns(r->source, 0);
	image->unchanged_ns =
		range->unchanged_ns == MEMORY_UNKNOWN ? MANIFEST_ABSENT : range->unchanged_ns;
	if (set_text(range->vdso ? "[vdso]" : "//anon", &image->path) < 0)
		return -ENOMEM;
	return set_text(range->vdso ? MANIFEST_IMAGE_VDSO : MANIFEST_IMAGE_MEMORY, &image->kind);
}

/* Adds our own vDSO, which all processes of the same kind have. */
static int add_own_vdso(struct reader *r)
{
	const struct range range = {.unchanged_ns = MEMORY_UNKNOWN, .vdso = true};
	uint64_t size;
	const void *bytes = vdso_own(&size);
	int fd, n;

	if (!bytes)
		return 0;
	n = memfd_new("ptsnap-vdso", 0, &fd);
	if (n == 0)
		n = memfd_write_all(fd, bytes, size);
	if (n < 0) {
		r->unreadable++;
		return 0;
	}
	r->pid = MANIFEST_ANY;
	return add_image(r, fd, MANIFEST_ABSENT, size, &range);
}

/* Copies what can be read of [BEGIN, END), from BEGIN on, to FD. Returns the number of bytes. */
static uint64_t copy_out(struct reader *r, uint64_t begin, uint64_t end, int fd)
{
	uint64_t at = begin;

	while (at < end) {
		ssize_t n = memory_copy(&r->copy, r->mem, at,
					(size_t)MIN_OF(end - at, (uint64_t)CHUNK), fd);

		/* A helper that hangs may still write to FD, so FD is not used. */
		r->stuck = n == -ETIMEDOUT;
		if (r->stuck)
			return 0;
		if (n <= 0)
			break;
		at += (uint64_t)n;
	}
	return at - begin;
}

/* Reads [BEGIN, END) of RANGE, pages that are there, within the limits. Pages that cannot be read
 * all the same are left out. */
static int read_pages(struct reader *r, uint64_t begin, uint64_t end, const struct range *range)
{
	uint64_t room = MIN_OF(r->left, r->process_left), got = 0;
	int fd, n = 0;

	if (r->process_images >= MAX_IMAGES || r->images >= MAX_ALL_IMAGES)
		room = 0;
	if (end - begin > room) {
		r->omitted += end - begin - room;
		end = begin + room;
	}
	for (; begin < end && n == 0 && !r->stuck; begin += MAX_OF(got, (uint64_t)PAGE)) {
		got = 0;
		if (memfd_new("ptsnap-memory", 0, &fd) < 0)
			break;
		got = copy_out(r, begin, end, fd);
		r->left -= MIN_OF(got, r->left);
		r->process_left -= MIN_OF(got, r->process_left);
		if (got > 0) {
			r->images++;
			r->process_images++;
			n = add_image(r, fd, begin, got, range);
		} else {
			close_fd(fd);
		}
		got &= ~(uint64_t)(PAGE - 1);
	}
	return n;
}

/* Reads from pagemap which of N pages from ADDRESS on are there; where it does not say, they are.
 * The kernel may wait for the process's memory here, too, so the helper reads the file. */
static void look_at_pages(struct reader *r, uint64_t address, size_t n, uint64_t ret[static LOOK])
{
	CLEANUP_CLOSE int scratch = -EBADF;
	ssize_t got = -1;

	if (r->pagemap >= 0 && !r->stuck && memfd_new("ptsnap-proc", 0, &scratch) == 0)
		got = memory_copy(&r->copy, r->pagemap, address / PAGE * sizeof(*ret),
				  n * sizeof(*ret), scratch);
	r->stuck |= got == -ETIMEDOUT;
	if (got > 0)
		got = pread(scratch, ret, (size_t)got, 0);
	for (size_t i = got > 0 ? (size_t)got / sizeof(*ret) : 0; i < n; i++)
		ret[i] = PAGE_PRESENT;
}

/* The pages of a vDSO are the kernel's and always there. */
static int read_range(struct reader *r, const struct range *range)
{
	uint64_t pages[LOOK], first = range->begin, at = range->begin, end = range->end;
	int n = 0;

	if (range->vdso)
		return read_pages(r, at, end, range);
	while (at < end && n == 0 && !r->stuck) {
		size_t i, some = (size_t)MIN_OF((end - at) / PAGE, (uint64_t)LOOK);

		/* A process can map far more memory than there is. */
		if (r->process_looks++ >= MAX_LOOKS || r->looks++ >= MAX_ALL_LOOKS) {
			r->omitted += end - at;
			end = at;
			break;
		}
		look_at_pages(r, at, some, pages);
		for (i = 0; i < some && n == 0; i++, at += PAGE) {
			if (pages[i] & (PAGE_PRESENT | PAGE_SWAPPED))
				continue;
			n = first < at ? read_pages(r, first, at, range) : 0;
			first = at + PAGE;
		}
	}
	return n == 0 && first < end ? read_pages(r, first, end, range) : n;
}

/* Whether a mapping is what a region is: the vDSO, or memory without a file. */
static bool is_memory(const struct procmaps_entry *e, bool vdso)
{
	if (vdso)
		return strcmp(e->path, "[vdso]") == 0;
	return e->path[0] == '\0' ||
	       (e->path[0] == '[' && strcmp(e->path, "[vdso]") != 0 &&
		strncmp(e->path, "[vvar", 5) != 0 && strcmp(e->path, "[vsyscall]") != 0) ||
	       strncmp(e->path, "/dev/zero", 9) == 0 || strncmp(e->path, "/anon_hugepage", 14) == 0;
}

static int read_pending(struct reader *r)
{
	struct range p = r->pending;

	r->pending = (struct range){0};
	return p.begin < p.end ? read_range(r, &p) : 0;
}

/* Joins ranges that touch: memory that a compiler made partly writable and partly executable has
 * several mappings and becomes one image. Ranges that differ in what is known of them become one
 * when there are many images already; then less is known of all. */
static int add_range(struct reader *r, struct range range)
{
	bool many = r->process_images >= MAX_IMAGES / 2 || r->images >= MAX_ALL_IMAGES / 2;
	int result;

	if (r->pending.end == range.begin && r->pending.vdso == range.vdso &&
	    (many || r->pending.unchanged_ns == range.unchanged_ns)) {
		r->pending.end = range.end;
		r->pending.unchanged_ns = MAX_OF(r->pending.unchanged_ns, range.unchanged_ns);
		return 0;
	}
	result = read_pending(r);
	r->pending = range;
	return result;
}

/* Copies /proc/PID/maps to a file in memory, by the helper; NULL: it cannot be read. */
static FILE *copy_maps(struct reader *r)
{
	CLEANUP_CLOSE int maps = openat(r->dir, "maps", O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int text = -EBADF;
	uint64_t size = 0;
	ssize_t n = 1;
	FILE *file;

	if (maps < 0 || memfd_new("ptsnap-maps", 0, &text) < 0)
		return NULL;
	for (; n > 0 && size < MAPS_MAX; size += (uint64_t)MAX_OF(n, (ssize_t)0))
		n = memory_copy(&r->copy, maps, size, CHUNK, text);
	r->stuck = n == -ETIMEDOUT;
	file = r->stuck || lseek(text, 0, SEEK_SET) < 0 ? NULL : fdopen(text, "r");
	if (file)
		(void)take_fd(&text);
	return file;
}

/* Reads what lies in REGIONS (in order). Lines that are not a mapping are ignored. */
static int read_mappings(struct reader *r, const struct memory_region *regions, size_t n)
{
	CLEANUP_FREE char *line = NULL;
	struct procmaps_entry e;
	FILE *maps = copy_maps(r);
	size_t size = 0;
	int result = 0;

	if (!maps)
		return 0;
	while (result == 0 && !r->stuck && getline(&line, &size, maps) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (procmaps_parse(line, &e) < 0)
			continue;
		if (!r->dump && memory_dump_is_name(r->dir, e.path))
			r->dump = strdup(e.path);
		for (size_t i = 0; i < n && result == 0; i++) {
			uint64_t begin =
				MAX_OF(e.begin, regions[i].address & ~(uint64_t)(PAGE - 1));
			uint64_t end = MIN_OF(e.end, regions[i].address + regions[i].size);

			end = begin < end ? begin + (end - begin + PAGE - 1) / PAGE * PAGE : begin;
			if (begin < end && is_memory(&e, regions[i].vdso))
				result = add_range(r, (struct range){begin, end,
								     regions[i].unchanged_ns,
								     regions[i].vdso});
		}
	}
	fclose(maps);
	return result == 0 ? read_pending(r) : result;
}

/* Whether nobody can have written to a mapping, as it is now, since it became executable. QEMU maps
 * what its program may execute as readable only. */
static bool is_closed(const struct reader *r, const struct procmaps_entry *e)
{
	bool emulated = strcmp(r->source->ops->name, "emulated") == 0;

	return is_memory(e, false) && e->flags == MAP_PRIVATE && !(e->prot & PROT_WRITE) &&
	       (emulated || (e->prot & PROT_EXEC));
}

/* Looks at the mappings again, behind the reading: memory that is writable now may have been
 * written to since the first look, without a record. The process's images begin at FIRST. */
static void look_again(struct reader *r, size_t first)
{
	struct manifest *m = &r->evidence->manifest;
	uint64_t at = 0; /* [address, AT) of image FIRST is closed */
	CLEANUP_FREE char *line = NULL;
	struct procmaps_entry e;
	size_t size = 0;
	FILE *maps;

	while (first < m->n_images && m->images[first].unchanged_ns == MANIFEST_ABSENT)
		first++;
	maps = first < m->n_images ? copy_maps(r) : NULL;
	while (maps && first < m->n_images && getline(&line, &size, maps) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (procmaps_parse(line, &e) < 0)
			continue;
		for (; first < m->n_images; first++) {
			struct manifest_image *image = &m->images[first];

			at = MAX_OF(at, image->address);
			if (e.end <= at)
				break;
			if (e.begin > at || !is_closed(r, &e))
				image->unchanged_ns = MANIFEST_ABSENT;
			at = e.end;
			if (image->unchanged_ns != MANIFEST_ABSENT &&
			    at - image->address < image->file_size)
				break;
			at = 0;
		}
	}
	if (maps)
		fclose(maps);
	for (; first < m->n_images; first++)
		m->images[first].unchanged_ns = MANIFEST_ABSENT;
}

/* Whether the process in DIR is the one that the loop saw, by its start time. */
static bool is_same(const struct reader *r)
{
	const struct manifest *m = &r->evidence->manifest;
	struct procfile_stat stat;
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);

	if (procfile_stat(r->dir, &stat) < 0)
		return false;
	for (size_t i = 0; i < m->n_processes; i++)
		if (m->processes[i].pid == r->pid && m->processes[i].start_ns != MANIFEST_ABSENT)
			return m->processes[i].start_ns * ticks / 1000000000u == stat.start_ticks;
	return true;
}

/* The dump is read behind the memory, so what the compiler has written down of that is in it. */
static int read_dump(struct reader *r)
{
	const struct memory_dump dump = {r->pid, r->dump, source_now_ns(r->source, 0)};

	return memory_dump_read(r->mounts, r->dir, &dump, r->limits->map, &r->left_maps,
				r->evidence);
}

static int read_process(struct reader *r, const struct memory_region *regions, size_t n)
{
	size_t first = r->evidence->manifest.n_images;
	bool names = false;
	int result;

	if (!is_same(r))
		return 0;
	r->mem = openat(r->dir, "mem", O_RDONLY | O_CLOEXEC);
	if (r->mem < 0) {
		r->unreadable += errno == EACCES || errno == EPERM;
		return 0;
	}
	r->pagemap = openat(r->dir, "pagemap", O_RDONLY | O_CLOEXEC);
	r->process_left = r->limits->process;
	r->process_images = 0;
	r->process_looks = 0;
	r->stuck = false;
	result = read_mappings(r, regions, n);
	look_again(r, first);
	r->unreadable += r->stuck;
	for (size_t i = 0; i < n; i++)
		names |= !regions[i].vdso;
	if (result == 0 && names)
		result = memory_names_read(r->mounts, r->dir, r->pid, r->limits->map, &r->left_maps,
					   r->evidence);
	if (result == 0 && r->dump)
		result = read_dump(r);
	free(r->dump);
	r->dump = NULL;
	r->mem = close_fd(r->mem);
	r->pagemap = close_fd(r->pagemap);
	return result == -ENOMEM ? result : 0;
}

static int read_all(struct reader *r)
{
	const struct evidence *e = r->evidence;
	int result = add_own_vdso(r);

	for (size_t i = 0, n; i < e->n_regions && result == 0; i += n) {
		for (n = 1; i + n < e->n_regions && e->regions[i + n].pid == e->regions[i].pid;)
			n++;
		r->pid = e->regions[i].pid;
		if (procfile_process(r->proc, r->pid, &r->dir) < 0)
			continue;
		result = read_process(r, &e->regions[i], n);
		r->dir = close_fd(r->dir);
	}
	return result;
}

int memory_read(struct source *source, const char *proc, const struct memory_limits *limits,
		struct evidence *e)
{
	CLEANUP_FREE struct reader *r = calloc(1, sizeof(*r));
	int result;

	if (!r)
		return -ENOMEM;
	if (!e->traced)
		return 0;
	r->source = source;
	r->proc = proc;
	r->limits = limits;
	r->evidence = e;
	r->left = limits->all;
	r->left_maps = limits->maps;
	r->mem = r->pagemap = -EBADF;
	result = mounts_new(proc, &r->mounts);
	if (result < 0)
		return result;
	memory_copy_init(&r->copy);
	result = read_all(r);
	memory_copy_done(&r->copy);
	mounts_free(r->mounts);
	if (result < 0)
		return result;
	if (r->omitted)
		result = manifest_add_note(&e->manifest, NOTE_ANONYMOUS, r->omitted,
					   "bytes of code in memory that the limits left out");
	if (result != -ENOMEM && r->unreadable)
		result = manifest_add_note(&e->manifest, NOTE_ANONYMOUS, r->unreadable,
					   "processes whose memory could not be read");
	return result == -ENOMEM ? result : 0;
}
