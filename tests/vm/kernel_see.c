/*
 * Compares kernel text of the recorder or of the worker with the kernel's memory; 85-kernel.sh runs
 * it in the VM.
 *
 * kernel_see image BUNDLE INDEX ADDRESS
 *      checks that member images/INDEX equals the memory at ADDRESS; prints the number of bytes
 * kernel_see file KALLSYMS SECTIONS FILE [MODULE]
 *      checks that the text that the worker makes of FILE equals memory except where it is masked;
 *      prints figures
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sideband/kernel/kernel_file.h"
#include "tests/vm/bundle_member.h"

#define LINKED_AT \
	0xffffffff81000000u /* _text of a kernel that was not moved: CONFIG_PHYSICAL_START */

#ifdef __SANITIZE_ADDRESS__
/* Ends the program at once, and frees nothing. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static int fail(const char *what)
{
	fprintf(stderr, "kernel_see: %s: %s\n", what, strerror(errno));
	return 1;
}

/* Reads SIZE bytes of the kernel's memory; never freed. NULL: see errno. */
static uint8_t *memory(uint64_t address, uint64_t size)
{
	int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	uint8_t *bytes = malloc(size + 1);
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (fd < 0 || !bytes || pread(fd, &h, sizeof(h), 0) != sizeof(h))
		return NULL;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		if (pread(fd, &p, sizeof(p), (off_t)(h.e_phoff + i * sizeof(p))) != sizeof(p))
			return NULL;
		if (p.p_type != PT_LOAD || address < p.p_vaddr ||
		    address - p.p_vaddr >= p.p_memsz || size > p.p_memsz - (address - p.p_vaddr))
			continue;
		for (uint64_t done = 0; done < size;) {
			ssize_t n = pread(fd, bytes + done, size - done,
					  (off_t)(p.p_offset + (address - p.p_vaddr) + done));

			if (n <= 0)
				return NULL;
			done += (uint64_t)n;
		}
		close(fd);
		return bytes;
	}
	errno = EFAULT;
	return NULL;
}

static int image(const char *path, const char *index, const char *at)
{
	uint64_t address = strtoull(at, NULL, 0);
	const uint8_t *bundle, *bytes, *live;
	size_t bundle_size, size, differ = 0;
	char name[64];

	snprintf(name, sizeof(name), "images/%s", index);
	errno = -bundle_load(path, &bundle, &bundle_size);
	if (errno)
		return fail(path);
	errno = -bundle_member(bundle, bundle_size, name, &bytes, &size);
	if (errno)
		return fail(name);
	live = memory(address, size);
	if (!live)
		return fail("/proc/kcore");
	for (size_t i = 0; i < size; i++)
		differ += bytes[i] != live[i];
	printf("%zu\n", size);
	if (differ)
		fprintf(stderr, "%s: %zu bytes of %zu differ\n", name, differ, size);
	return differ > 0;
}

/* --- Files --- */

struct slurped {
	uint8_t *bytes;
	size_t size;
};

static bool slurp(const char *path, struct slurped *ret)
{
	FILE *f = fopen(path, "r");
	size_t capacity = 0, n;

	*ret = (struct slurped){0};
	if (!f)
		return false;
	do {
		capacity = capacity ? 2 * capacity : 1 << 20;
		ret->bytes = realloc(ret->bytes, capacity);
		n = ret->bytes ? fread(ret->bytes + ret->size, 1, capacity - ret->size, f) : 0;
		ret->size += n;
	} while (ret->size == capacity);
	fclose(f);
	return ret->bytes;
}

static ssize_t read_slurped(void *userdata, uint64_t offset, void *to, size_t size)
{
	const struct slurped *s = userdata;

	if (offset >= s->size)
		return 0;
	size = size < s->size - offset ? size : s->size - offset;
	memcpy(to, s->bytes + offset, size);
	return (ssize_t)size;
}

static uint32_t u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Data addresses in instructions: those that change when the kernel is moved, and those in a module
 * that no list of functions gives. */
static bool is_data_field(const uint8_t *ours, const uint8_t *live, uint64_t delta)
{
	bool branch = ours[-1] == 0xe8 || ours[-1] == 0xe9 ||
		      (ours[-2] == 0x0f && (ours[-1] & 0xf0) == 0x80);

	if (delta == 0)
		return u32(ours) == 0 && !branch;
	return u32(live) - u32(ours) == (uint32_t)delta ||
	       u32(ours) - u32(live) == (uint32_t)delta || u64(live) - u64(ours) == delta;
}

/* The reason why a difference at byte I does not matter: 'l': a lock prefix that a single CPU does
 * not need; 'd': data. 0: it matters. */
static char harmless(const struct kernel_file_text *t, const uint8_t *live, size_t i,
		     uint64_t delta)
{
	if ((t->bytes[i] == 0xf0 && live[i] == 0x3e) || (t->bytes[i] == 0x3e && live[i] == 0xf0))
		return 'l';
	for (size_t k = 0; k < 8 && i >= k + 2; k++)
		if (i - k + 8 <= t->size && is_data_field(t->bytes + i - k, live + i - k, delta))
			return 'd';
	return 0;
}

static bool is_masked(const struct kernel_file_text *t, uint64_t address, size_t *at)
{
	while (*at < t->n_masked && t->masked[*at].end <= address)
		++*at;
	return *at < t->n_masked && t->masked[*at].begin <= address;
}

static int compare(const struct kernel_file_text *t, const uint8_t *live, uint64_t delta)
{
	size_t at = 0, masked = 0, changed = 0, locks = 0, data = 0, bad = 0;

	for (size_t i = 0; i < t->size; i++) {
		bool differs = t->bytes[i] != live[i];
		char why = differs ? harmless(t, live, i, delta) : 0;

		if (is_masked(t, t->address + i, &at)) {
			masked++;
			changed += differs;
			continue;
		}
		locks += why == 'l';
		data += why == 'd';
		if (differs && !why && bad++ < 10)
			fprintf(stderr, "0x%" PRIx64 " is %02x, the file has %02x\n",
				t->address + i, live[i], t->bytes[i]);
	}
	printf("bytes=%" PRIu64 " masked=%zu ranges=%zu changed=%zu locks=%zu data=%zu bad=%zu\n",
	       t->size, masked, t->n_masked, changed, locks, data, bad);
	return bad > 0;
}

static int file(char **argv, const char *module)
{
	struct slurped symbols, sections, bytes;
	struct kernel_file f = {.module = module};
	struct kernel_links *links;
	struct kernel_file_text text;
	const uint8_t *live;
	int r;

	if (!slurp(argv[0], &symbols) || !slurp(argv[1], &sections) || !slurp(argv[2], &bytes) ||
	    kernel_links_new((char *)symbols.bytes, symbols.size, &links) < 0)
		return fail(argv[2]);
	f.source = (struct kernel_source){read_slurped, &bytes, bytes.size};
	f.links = links;
	f.sections = (char *)sections.bytes;
	f.sections_size = sections.size;
	r = kernel_file_text(&f, &text);
	if (r != 0) {
		fprintf(stderr, "%s: %s\n", argv[2],
			r < 0 ? strerror(-r) : "no address for its text");
		return 1;
	}
	live = memory(text.address, text.size);
	if (!live)
		return fail("/proc/kcore");
	r = compare(&text, live, module ? 0 : text.address - LINKED_AT);
	kernel_file_text_done(&text);
	kernel_links_free(links);
	return r;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "image") == 0)
		return image(argv[2], argv[3], argv[4]);
	if ((argc == 5 || argc == 6) && strcmp(argv[1], "file") == 0)
		return file(argv + 2, argc == 6 ? argv[5] : NULL);
	fprintf(stderr, "kernel_see: bad usage\n");
	return 2;
}
