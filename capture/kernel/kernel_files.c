/*
 * Opens vmlinux and the modules' files, and reads the build ids and section addresses of the
 * running kernel.
 *
 * Build ids alone tell which file was loaded: an upgrade may keep the name of the release. The
 * decoder compares them, as it is the one that reads ELF. The build ids of the running kernel are
 * in notes that the kernel gives (kernel/ksysfs.c, kernel/module/sysfs.c).
 */
#include "capture/kernel/kernel_files.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/proc/number.h"
#include "proto/base.h"

#define MAX_NOTES    65536u
#define MAX_PROBES   (4u << 20)
#define MAX_SECTIONS (16u << 20)

/* Paths: BEFORE, the release, BEHIND. Files with symbols come first. */
static const struct {
	const char *before, *behind;
} kernels[] = {
	{"/usr/lib/debug/boot/vmlinux-", ""},
	{"/usr/lib/debug/lib/modules/", "/vmlinux"},
	{"/boot/vmlinux-", ""},
	{"/lib/modules/", "/build/vmlinux"},
	{"/boot/vmlinuz-", ""},
	{"/lib/modules/", "/vmlinuz"},
};

static int read_file(const char *path, void *to, size_t size, size_t *ret)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	*ret = 0;
	if (fd < 0)
		return -errno;
	while (*ret < size && (n = read(fd, (char *)to + *ret, size - *ret)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		*ret += (size_t)n;
	}
	return 0;
}

/* --- Build ids --- */

static size_t note_padded(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

size_t kernel_files_build_id(const uint8_t *notes, size_t size, uint8_t ret[KERNEL_FILE_BUILD_ID])
{
	struct bytes_in in;

	bytes_in_init(&in, notes, size);
	while (bytes_in_left(&in) > 0 && !in.bad) {
		uint32_t name_size = bytes_get_u32(&in), desc_size = bytes_get_u32(&in);
		uint32_t type = bytes_get_u32(&in);
		const uint8_t *name = bytes_get_block(&in, note_padded(name_size));
		const uint8_t *desc = bytes_get_block(&in, note_padded(desc_size));

		if (!name || !desc || type != NT_GNU_BUILD_ID || name_size != sizeof("GNU") ||
		    memcmp(name, "GNU", sizeof("GNU")) != 0 || desc_size > KERNEL_FILE_BUILD_ID)
			continue;
		memcpy(ret, desc, desc_size);
		return desc_size;
	}
	return 0;
}

static void read_build_id(const struct kernel_places *p, const char *path, struct kernel_file *f)
{
	CLEANUP_FREE uint8_t *notes = malloc(MAX_NOTES);
	char full[PATH_MAX];
	size_t size;

	snprintf(full, sizeof(full), "%s/%s", p->sys, path);
	if (notes && read_file(full, notes, MAX_NOTES, &size) == 0)
		f->build_id_size = kernel_files_build_id(notes, size, f->build_id);
}

/* --- Files --- */

static int add_file(struct kernel_files *to, const struct kernel_file *f)
{
	if (ARRAY_RESERVE(to->items, to->capacity, to->n + 1) < 0)
		return -ENOMEM;
	to->items[to->n++] = *f;
	return 0;
}

/* Opens the regular file PATH for F. 0 or -errno. */
static int open_file(const char *path, struct kernel_file *f)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	f->size = (uint64_t)st.st_size;
	f->fd = take_fd(&fd);
	return 0;
}

static const char *why_not(int error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR: return "there is no file of it";
	case -EACCES:
	case -EPERM: return "its file may not be read";
	default: return "its file cannot be read";
	}
}

static int add_kernels(struct kernel_files *to, const struct kernel_places *p)
{
	struct kernel_file f = {.name = "kernel", .fd = -1, .why = why_not(-ENOENT)};
	char path[PATH_MAX];
	size_t found = 0;
	int r = 0;

	read_build_id(p, "kernel/notes", &f);
	for (size_t i = 0; i < ARRAY_SIZE(kernels) && r == 0; i++) {
		struct kernel_file one = f;
		int e;

		snprintf(path, sizeof(path), "%s%s%s%s", p->root, kernels[i].before, p->release,
			 kernels[i].behind);
		e = open_file(path, &one);
		if (e == -EACCES || e == -EPERM)
			f.why = why_not(e);
		if (e < 0)
			continue;
		one.why = NULL;
		found++;
		r = add_file(to, &one);
		if (r < 0)
			close_fd(one.fd);
	}
	return r == 0 && found == 0 ? add_file(to, &f) : r;
}

/* --- Modules --- */

/* Whether LINE, "kernel/drivers/virtio/virtio-ring.ko: ...", is that of module NAME; *ret_size is
 * the size of the path. Names have "_" where files may have "-". */
static bool is_of_module(const char *line, const char *name, size_t *ret_size)
{
	size_t size = strcspn(line, ":"), base = size, at = 0;

	while (base > 0 && line[base - 1] != '/')
		base--;
	while (name[at] && base + at < size &&
	       (line[base + at] == name[at] || (line[base + at] == '-' && name[at] == '_')))
		at++;
	*ret_size = size;
	return line[size] == ':' && !name[at] && line[base + at] == '.' &&
	       strncmp(line + base + at, ".ko", 3) == 0;
}

static void open_module(const struct kernel_places *p, const char *dep, struct kernel_file *f)
{
	char path[PATH_MAX];
	size_t size = 0;
	int r = -ENOENT;

	while (*dep && !is_of_module(dep, f->name, &size)) {
		dep += strcspn(dep, "\n");
		dep += *dep == '\n';
	}
	if (*dep && size > 3 && strncmp(dep + size - 3, ".ko", 3) != 0) {
		f->why = "its file is compressed";
		return;
	}
	if (*dep && snprintf(path, sizeof(path), "%s/lib/modules/%s/%.*s", p->root, p->release,
			     (int)size, dep) < (int)sizeof(path))
		r = open_file(path, f);
	f->why = r < 0 ? why_not(r) : NULL;
}

static int add_module(struct kernel_files *to, const struct kernel_places *p, const char *dep,
		      const struct kernel_module *m)
{
	struct kernel_file f = {.fd = -1};
	char path[PATH_MAX];
	int r;

	memcpy(f.name, m->name, sizeof(f.name));
	snprintf(path, sizeof(path), "module/%s/notes/.note.gnu.build-id", m->name);
	read_build_id(p, path, &f);
	open_module(p, dep, &f);
	r = add_file(to, &f);
	if (r < 0)
		close_fd(f.fd);
	return r;
}

/* Adds "MODULE SECTION 0xADDRESS", unless SECTION has characters that no name of a section has. */
static void add_section(struct kernel_files *to, int dir, const char *module, const char *section)
{
	CLEANUP_CLOSE int fd = openat(dir, section, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char text[64], line[512];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	uint64_t address;
	int size;

	if (n <= 0)
		return;
	text[n] = '\0';
	if (!number_parse(text, 0, UINT64_MAX, "\n", NULL, &address) || address == 0 ||
	    strpbrk(section, " \n"))
		return;
	size = snprintf(line, sizeof(line), "%s %s 0x%llx\n", module, section,
			(unsigned long long)address);
	if (size > 0 && size < (int)sizeof(line))
		bytes_put_block(&to->sections, line, (size_t)size);
}

/* Adds the probes, from lines "ADDRESS  k  FUNCTION+OFFSET ..." (kernel/kprobes.c,
 * show_kprobe_addr). */
static void add_probes(struct kernel_files *to, const struct kernel_places *p)
{
	CLEANUP_FREE char *text = malloc(MAX_PROBES);
	char path[PATH_MAX], line[64];
	uint64_t address;
	size_t size;

	snprintf(path, sizeof(path), "%s/kernel/debug/kprobes/list", p->sys);
	if (!text || read_file(path, text, MAX_PROBES - 1, &size) < 0 || size == MAX_PROBES - 1)
		return;
	text[size] = '\0';
	for (const char *at = text; *at; at += *at == '\n') {
		/* A hidden address: the probes are unknown. */
		if (!number_parse(at, 16, UINT64_MAX, " ", NULL, &address) || address == 0)
			return;
		size = (size_t)snprintf(line, sizeof(line), "* kprobe 0x%llx\n",
					(unsigned long long)address);
		bytes_put_block(&to->sections, line, size);
		at += strcspn(at, "\n");
	}
	bytes_put_block(&to->sections, "* kprobes 0x1\n", strlen("* kprobes 0x1\n"));
}

/* The text of modules.dep, which has a line for each file (depmod(8)); "" if there is none. NULL:
 * no memory. */
static char *read_dep(const struct kernel_places *p)
{
	char path[PATH_MAX];
	char *text = malloc(MAX_SECTIONS);
	size_t size = 0;

	if (!text)
		return NULL;
	snprintf(path, sizeof(path), "%s/lib/modules/%s/modules.dep", p->root, p->release);
	if (read_file(path, text, MAX_SECTIONS - 1, &size) < 0)
		size = 0;
	text[size] = '\0';
	return text;
}

int kernel_files_open(const struct kernel_places *places, const struct kernel_modules *modules,
		      struct kernel_files *ret)
{
	CLEANUP_FREE char *dep = read_dep(places);
	int r;

	*ret = (struct kernel_files){0};
	bytes_out_init(&ret->sections, MAX_SECTIONS);
	r = dep ? add_kernels(ret, places) : -ENOMEM;
	add_probes(ret, places);
	for (size_t i = 0; i < modules->n && r == 0; i++) {
		const char *name = modules->items[i].name;
		char path[PATH_MAX];
		struct dirent *d;
		DIR *dir;

		snprintf(path, sizeof(path), "%s/module/%s/sections", places->sys, name);
		dir = opendir(path);
		while (dir && (d = readdir(dir)))
			if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
				add_section(ret, dirfd(dir), name, d->d_name);
		if (dir)
			closedir(dir);
		r = add_module(ret, places, dep, &modules->items[i]);
	}
	if (r == 0)
		r = ret->sections.error;
	if (r < 0)
		kernel_files_done(ret);
	return r;
}

void kernel_files_done(struct kernel_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		close_fd(f->items[i].fd);
	free(TAKE_PTR(f->items));
	f->n = f->capacity = 0;
	bytes_out_done(&f->sections);
}
