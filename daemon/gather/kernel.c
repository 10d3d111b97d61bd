/*
 * The kernel's part of a snapshot: modules, symbols and copies of its text, put into the manifest.
 *
 * The text comes from /proc/kcore: exact at a known time, from which the worker goes back and forth
 * by TEXT_POKE records. Where /proc/kcore is closed, vmlinux and the modules' files are handed on;
 * the worker masks what the kernel patches in them. The text of modules that were unloaded since
 * the last look is gone, which a note says.
 */
#include "daemon/gather/evidence.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "capture/kernel/kernel_files.h"
#include "capture/kernel/kernel_text.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"

/* How often the kernel is looked at again because modules came or went meanwhile. */
#define ATTEMPTS 3
/* Limits for BPF programs and trampolines that only records tell of. Most are in /proc/kallsyms. */
#define MAX_MADE      4096u
#define MAX_MADE_SIZE (16u << 20)
#define MAX_RECORDS   65536u

/* Names of decoder/packet/fault.h. */
#define NOTE_GONE	"image-missing"
#define NOTE_UNRELIABLE "kernel-text-unreliable"

struct kernel {
	struct kernel_paths paths;
	char release[65];
	pthread_mutex_t lock; /* of known: two jobs may be here at once */
	struct kernel_modules known;
};

/* One look at the kernel. */
struct kernel_look {
	struct kernel_modules modules;
	struct kernel_symbols symbols;
	int symbols_error, kcore_error; /* 0 or -errno */
	struct kernel_region *regions;	/* owned */
	struct kernel_copy *copies;	/* owned, one for each region; fd -EBADF: see errors */
	int *errors;			/* owned, one for each region: 0 or -errno */
	size_t n;
};

static void kernel_look_done(struct kernel_look *l)
{
	kernel_modules_done(&l->modules);
	kernel_symbols_done(&l->symbols);
	for (size_t i = 0; l->copies && i < l->n; i++)
		close_fd(l->copies[i].fd);
	free(l->regions);
	free(l->copies);
	free(l->errors);
	*l = (struct kernel_look){0};
}

static int look_at_modules(const struct kernel *k, struct kernel_modules *ret)
{
	char path[256];
	int r;

	snprintf(path, sizeof(path), "%s/modules", k->paths.proc);
	r = kernel_modules_read(path, ret);
	/* A kernel without modules has no such file. */
	return r == -ENOMEM ? r : 0;
}

/* Code that the kernel made at run time and, as far as records say, still has. */
struct made {
	struct {
		uint64_t address;
		uint32_t size;
		bool bpf;
	} items[MAX_MADE];
	size_t n, records;
};

/* struct { u64 addr; u32 len; u16 type, flags; char name[]; }: PERF_RECORD_KSYMBOL. */
static void take_ksymbol(struct made *made, const struct perfrecord *record)
{
	struct bytes_in in;
	uint64_t address;
	uint32_t size;
	uint16_t type, flags;
	size_t i = 0;

	bytes_in_init(&in, record->u.raw.bytes, record->u.raw.size);
	address = bytes_get_u64(&in);
	size = bytes_get_u32(&in);
	type = bytes_get_u16(&in);
	flags = bytes_get_u16(&in);
	if (in.bad || size > MAX_MADE_SIZE)
		return;
	while (i < made->n && made->items[i].address != address)
		i++;
	if (i < made->n)
		made->items[i] = made->items[--made->n];
	if (made->n == MAX_MADE || (flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER))
		return;
	made->items[made->n].address = address;
	made->items[made->n].size = size;
	made->items[made->n++].bpf = type == PERF_RECORD_KSYMBOL_TYPE_BPF;
}

static void take_records(struct made *made, const struct bytes_out *sideband)
{
	struct perfrecord record;

	for (size_t at = 0; at < sideband->size && made->records < MAX_RECORDS; at += record.size) {
		int parsed = perfrecord_parse(sideband->data + at, sideband->size - at, &record);

		if (record.size == 0)
			return;
		if (parsed != PERFRECORD_UNKNOWN || record.type != PERF_RECORD_KSYMBOL)
			continue;
		made->records++;
		take_ksymbol(made, &record);
	}
}

static int find_regions(struct kernel_look *l)
{
	free(TAKE_PTR(l->regions));
	l->n = 0;
	return kernel_text_regions(&l->symbols, &l->modules, &l->regions, &l->n);
}

/* Reads the symbols of /proc/kallsyms and of the code that SIDEBAND tells of. */
static int look_at_symbols(struct kernel_look *l, const struct kernel *k,
			   const struct bytes_out *sideband)
{
	CLEANUP_FREE struct made *made = NULL;
	char path[256];
	int r;

	snprintf(path, sizeof(path), "%s/kallsyms", k->paths.proc);
	r = kernel_symbols_read(path, &l->symbols);
	if (r == 0 && l->symbols.hidden)
		r = -EACCES;
	l->symbols_error = r;
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	take_records(made, sideband);
	for (size_t i = 0; r == 0 && i < made->n; i++)
		r = kernel_symbols_add(&l->symbols, made->items[i].bpf ? "bpf" : "trampoline",
				       made->items[i].address, made->items[i].size);
	kernel_symbols_sort(&l->symbols);
	return r == 0 ? find_regions(l) : r;
}

static uint64_t now(void *userdata)
{
	return source_now_ns(userdata, 0);
}

static int look_at_memory(struct kernel_look *l, const struct kernel *k, struct source *source)
{
	struct kcore kcore;
	char path[256];
	int r;

	snprintf(path, sizeof(path), "%s/kcore", k->paths.proc);
	l->kcore_error = kcore_open(path, &kcore);
	if (l->kcore_error < 0)
		return 0;
	/* Thunks are code without symbols. */
	r = kernel_thunks_find(&kcore, l->regions, l->n, &l->symbols);
	if (r > 0) {
		kernel_symbols_sort(&l->symbols);
		r = find_regions(l);
	}
	if (r == 0) {
		l->copies = calloc(l->n + 1, sizeof(*l->copies));
		l->errors = calloc(l->n + 1, sizeof(*l->errors));
		r = l->copies && l->errors ? 0 : -ENOMEM;
	}
	for (size_t i = 0; l->copies && i < l->n; i++)
		l->copies[i].fd = -EBADF;
	for (size_t i = 0; r == 0 && i < l->n; i++)
		l->errors[i] = kernel_text_copy(&kcore, &l->regions[i], now, source, &l->copies[i]);
	kcore_close(&kcore);
	return r;
}

/* Whether modules came or went since L was made. */
static bool modules_changed(const struct kernel_look *l, const struct kernel *k)
{
	struct kernel_modules again;
	bool changed;

	if (look_at_modules(k, &again) < 0)
		return false;
	changed = again.n != l->modules.n;
	for (size_t i = 0; !changed && i < again.n; i++)
		changed = !kernel_modules_find(&l->modules, &again.items[i]);
	kernel_modules_done(&again);
	return changed;
}

/* 0, -ENOMEM, -E2BIG. */
static int look_at_kernel(const struct kernel *k, struct source *source,
			  const struct bytes_out *sideband, struct kernel_look *ret)
{
	int r = 0;

	for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
		*ret = (struct kernel_look){0};
		r = look_at_modules(k, &ret->modules);
		if (r == 0)
			r = look_at_symbols(ret, k, sideband);
		if (r == 0 && ret->symbols_error == 0)
			r = look_at_memory(ret, k, source);
		if (r < 0 || attempt == ATTEMPTS || !modules_changed(ret, k))
			break;
		kernel_look_done(ret);
	}
	if (r < 0)
		kernel_look_done(ret);
	return r;
}

static int set_text(char **to, const char *text)
{
	free(*to);
	*to = strdup(text);
	return *to ? 0 : -ENOMEM;
}

/* FD is taken over. */
static struct manifest_image *add_image(struct evidence *e, const char *name, const char *kind,
					int fd, uint64_t size)
{
	struct manifest_image *image = evidence_add_image(e, fd, size);
	char path[KERNEL_OWNER_SIZE + 2];

	if (!image)
		return NULL;
	snprintf(path, sizeof(path), "[%s]", name);
	image->pid = MANIFEST_ANY;
	image->elsewhere = fd >= 0;
	image->file_size = fd >= 0 ? size : MANIFEST_ABSENT;
	if (set_text(&image->path, path) < 0 || set_text(&image->kind, kind) < 0)
		return NULL;
	return image;
}

/* BYTES is taken over. */
static int add_text(struct evidence *e, const char *kind, struct bytes_out *bytes, const char *why)
{
	struct manifest_text *text = evidence_add_text(e, bytes);

	if (!text)
		return -ENOMEM;
	text->pid = MANIFEST_ANY;
	if (set_text(&text->kind, kind) < 0)
		return -ENOMEM;
	return why ? set_text(&text->missing, why) : 0;
}

static int add_copy(struct evidence *e, const struct kernel_look *l, size_t i)
{
	const struct kernel_region *region = &l->regions[i];
	struct kernel_copy *copy = &l->copies[i];
	struct manifest_image *image;
	char why[128];

	image = add_image(e, region->name, MANIFEST_IMAGE_KERNEL, take_fd(&copy->fd), region->size);
	if (!image)
		return -ENOMEM;
	image->address = region->address;
	image->read_ns = copy->read_ns;
	if (l->errors[i] == 0 && !copy->changing)
		return 0;
	if (l->errors[i] == 0)
		return manifest_add_note(&e->manifest, NOTE_UNRELIABLE, 1,
					 "the kernel's text was patched while it was copied");
	snprintf(why, sizeof(why), "/proc/kcore: %s", strerror(-l->errors[i]));
	return set_text(&image->missing, why);
}

/* Whether the text is gone, as that of BPF programs can be: it reads as zeros. */
static bool is_zeros(const struct kernel_copy *copy)
{
	char bytes[64];
	ssize_t n = pread(copy->fd, bytes, sizeof(bytes), 0);

	for (ssize_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return n > 0;
}

static int add_files(struct evidence *e, const struct kernel *k, const struct kernel_look *l)
{
	struct kernel_places places = {k->paths.root, k->paths.sys, k->release};
	struct kernel_files files;
	int r = kernel_files_open(&places, &l->modules, &files);

	if (r < 0)
		return r;
	for (size_t i = 0; i < files.n && r == 0; i++) {
		struct kernel_file *f = &files.items[i];
		char build_id[2 * KERNEL_FILE_BUILD_ID + 1] = "";
		struct manifest_image *image =
			add_image(e, f->name, MANIFEST_IMAGE_KERNEL_FILE, take_fd(&f->fd), f->size);

		for (size_t byte = 0; byte < f->build_id_size; byte++)
			snprintf(build_id + 2 * byte, 3, "%02x", f->build_id[byte]);
		r = image ? 0 : -ENOMEM;
		if (r == 0 && *build_id)
			r = set_text(&image->build_id, build_id);
		if (r == 0 && f->why)
			r = set_text(&image->missing, f->why);
	}
	if (r == 0)
		r = add_text(e, MANIFEST_TEXT_KERNEL_SECTIONS, &files.sections,
			     files.sections.size ? NULL : "nothing in /sys/module/*/sections");
	kernel_files_done(&files);
	return r;
}

/* Adds all of L but the list of modules. Texts of L are taken over. 0, -ENOMEM, -E2BIG. */
static int add_look(struct evidence *e, const struct kernel *k, struct kernel_look *l)
{
	const char *missing = NULL;
	char why[160];
	int r;

	if (l->symbols_error) {
		missing = l->symbols_error == -EACCES
				  ? "its addresses are hidden: CAP_SYSLOG, kernel.kptr_restrict"
				  : strerror(-l->symbols_error);
		bytes_out_reset(&l->symbols.text);
	}
	r = add_text(e, MANIFEST_TEXT_KALLSYMS, &l->symbols.text, missing);
	if (l->symbols.first)
		e->manifest.kernel_start = l->symbols.first;
	if (r == 0)
		r = add_text(e, MANIFEST_TEXT_MODULES, &l->modules.text, NULL);
	if (l->symbols_error || l->kcore_error) {
		if (r == 0)
			r = add_files(e, k, l);
	} else {
		for (size_t i = 0; i < l->n && r == 0; i++)
			if (l->copies[i].fd < 0 || l->copies[i].changing ||
			    !is_zeros(&l->copies[i]))
				r = add_copy(e, l, i);
	}
	if (r < 0 || l->symbols_error || l->kcore_error >= 0)
		return r;
	snprintf(why, sizeof(why),
		 "/proc/kcore: %s: the kernel's code is taken from files, but for what it patches",
		 strerror(-l->kcore_error));
	return manifest_add_note(&e->manifest, NOTE_UNRELIABLE, 1, why);
}

int kernel_new(const struct kernel_paths *paths, struct kernel **ret)
{
	static const struct kernel_paths host = {.proc = "/proc", .sys = "/sys", .root = ""};
	struct kernel *k = calloc(1, sizeof(*k));
	struct utsname u;

	if (!k)
		return -ENOMEM;
	k->paths = paths ? *paths : host;
	if (k->paths.release)
		snprintf(k->release, sizeof(k->release), "%s", k->paths.release);
	else if (uname(&u) == 0)
		snprintf(k->release, sizeof(k->release), "%s", u.release);
	if (look_at_modules(k, &k->known) < 0) {
		free(k);
		return -ENOMEM;
	}
	pthread_mutex_init(&k->lock, NULL);
	*ret = k;
	return 0;
}

void kernel_free(struct kernel *k)
{
	if (!k)
		return;
	pthread_mutex_destroy(&k->lock);
	kernel_modules_done(&k->known);
	free(k);
}

/* Adds a note about modules that were unloaded. */
static int note_gone(struct evidence *e, const struct kernel_modules *before,
		     const struct kernel_modules *after)
{
	char why[256] = "modules that were unloaded:";
	size_t used = strlen(why), n = 0;

	for (size_t i = 0; i < before->n; i++) {
		const char *name = before->items[i].name;

		if (kernel_modules_find(after, &before->items[i]))
			continue;
		n++;
		if (used + strlen(name) + 2 < sizeof(why))
			used += (size_t)snprintf(why + used, sizeof(why) - used, " %s", name);
	}
	return n > 0 ? manifest_add_note(&e->manifest, NOTE_GONE, n, why) : 0;
}

int kernel_gather(struct kernel *k, struct source *source, struct evidence *e)
{
	struct kernel_modules before;
	struct kernel_look look;
	int r;

	if (!k || !e->traced || !source->trace_kernel)
		return 0;
	r = look_at_kernel(k, source, &e->sideband, &look);
	if (r < 0)
		return r;
	r = add_look(e, k, &look);
	if (r == 0) {
		/* Compare the modules with those of the last look, and remember them. */
		pthread_mutex_lock(&k->lock);
		before = k->known;
		k->known = look.modules;
		look.modules = (struct kernel_modules){0};
		r = note_gone(e, &before, &k->known);
		pthread_mutex_unlock(&k->lock);
		kernel_modules_done(&before);
	}
	kernel_look_done(&look);
	return r;
}
