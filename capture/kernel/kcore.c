/*
 * Program headers of /proc/kcore and reads by address. Called by kernel_text.c. The file comes from
 * the kernel (fs/proc/kcore.c, read_kcore) and is trusted as much as that, but a test's may be
 * anything: no length is taken as it stands.
 */
#include "capture/kernel/kcore.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "proto/base.h"

/* One for each piece of RAM that the firmware tells of, and a few more. */
#define MAX_HEADERS 4096u
#define PAGE	    4096u
/* Where the kernel's image may be, arch/x86/include/asm/page_64_types.h; modules are behind it. */
#define IMAGE 0xffffffff80000000u

static int read_at(int fd, void *to, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		done += (size_t)n;
	}
	return 0;
}

static bool is_core_file(const Elf64_Ehdr *h)
{
	return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_type == ET_CORE &&
	       h->e_machine == EM_X86_64 && h->e_phentsize == sizeof(Elf64_Phdr) &&
	       h->e_phnum > 0 && h->e_phnum <= MAX_HEADERS &&
	       h->e_phoff <= INT64_MAX - MAX_HEADERS * sizeof(Elf64_Phdr);
}

/* False: not memory, or not to be believed. */
static bool take_segment(const Elf64_Phdr *p, struct kcore_segment *ret)
{
	*ret = (struct kcore_segment){p->p_vaddr, p->p_memsz, p->p_offset};
	return p->p_type == PT_LOAD && p->p_memsz > 0 && p->p_memsz <= UINT64_MAX - p->p_vaddr &&
	       p->p_memsz <= INT64_MAX && p->p_offset <= INT64_MAX - p->p_memsz;
}

/* The first segment that the image can be in, if there is a page to be read. */
static void find_image(struct kcore *k)
{
	for (size_t i = 0; i < k->n_segments; i++) {
		const struct kcore_segment *s = &k->segments[i];

		if (s->address >= IMAGE && s->size >= PAGE && s->address % PAGE == 0 &&
		    (!k->image || s->address < k->image->address))
			k->image = s;
	}
}

static int read_segments(struct kcore *k)
{
	CLEANUP_FREE Elf64_Phdr *headers = NULL;
	Elf64_Ehdr h;
	int r = read_at(k->fd, &h, sizeof(h), 0);

	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	if (!is_core_file(&h))
		return -EBADMSG;
	headers = calloc(h.e_phnum, sizeof(*headers));
	k->segments = calloc(h.e_phnum, sizeof(*k->segments));
	if (!headers || !k->segments)
		return -ENOMEM;
	r = read_at(k->fd, headers, h.e_phnum * sizeof(*headers), h.e_phoff);
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	for (size_t i = 0; i < h.e_phnum; i++)
		k->n_segments += take_segment(&headers[i], &k->segments[k->n_segments]);
	find_image(k);
	return 0;
}

int kcore_open(const char *path, struct kcore *ret)
{
	int r;

	*ret = (struct kcore){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	if (ret->fd < 0)
		return -errno;
	r = read_segments(ret);
	if (r < 0)
		kcore_close(ret);
	return r;
}

void kcore_close(struct kcore *k)
{
	k->fd = close_fd(k->fd);
	free(TAKE_PTR(k->segments));
	k->n_segments = 0;
	k->image = NULL;
}

/* Before Linux 6.4 memory that is not mapped reads as what was read before it: read_kcore() hands
 * out its buffer of a page whether vread() has filled it or not. So a known page is read before. */
struct reading {
	const struct kcore *kcore;
	uint64_t offset; /* in the file, of what is read */
	uint8_t *to;
	const uint8_t *before; /* what the buffer would still hold: KNOWN, or what TO has */
	uint8_t known[PAGE];
};

static int read_known(struct reading *r)
{
	return read_at(r->kcore->fd, r->known, PAGE, r->kcore->image->offset);
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* SIZE bytes at AT, all of one page, may be those of the page before. */
static int check_page(struct reading *r, size_t at, size_t size)
{
	uint8_t *page = r->to + at;
	int e = 0;

	if (memcmp(page, r->before, size) != 0) {
		r->before = page;
		return 0;
	}
	if (r->before != r->known && is_zero(page, size))
		return 0;
	if (r->before != r->known) {
		e = read_known(r);
		if (e == 0)
			e = read_at(r->kcore->fd, page, size, r->offset + at);
	}
	if (e == 0 && memcmp(page, r->known, size) == 0)
		memset(page, 0, size);
	return e;
}

/* What begins with a page, or is of one alone. */
static int read_pages(struct reading *r, size_t size)
{
	int e = read_known(r);

	r->before = r->known;
	if (e == 0)
		e = read_at(r->kcore->fd, r->to, size, r->offset);
	for (size_t at = 0; at < size && e == 0; at += PAGE)
		e = check_page(r, at, MIN_OF(size - at, (size_t)PAGE));
	return e;
}

static int read_checked(const struct kcore *k, const struct kcore_segment *s, uint64_t address,
			uint8_t *to, size_t size)
{
	size_t first = MIN_OF(size, (size_t)(-address % PAGE));
	struct reading r = {.kcore = k, .offset = s->offset + (address - s->address), .to = to};
	int e = first > 0 ? read_pages(&r, first) : 0;

	r.offset += first;
	r.to += first;
	return e == 0 && size > first ? read_pages(&r, size - first) : e;
}

int kcore_read(const struct kcore *k, uint64_t address, void *to, size_t size)
{
	for (size_t i = 0; i < k->n_segments; i++) {
		const struct kcore_segment *s = &k->segments[i];

		if (address < s->address || address - s->address >= s->size ||
		    size > s->size - (address - s->address))
			continue;
		if (k->image && s->address > k->image->address)
			return read_checked(k, s, address, to, size);
		return read_at(k->fd, to, size, s->offset + (address - s->address));
	}
	return -EFAULT;
}
