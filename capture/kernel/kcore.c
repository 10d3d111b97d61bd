/*
 * Reads /proc/kcore: its program headers, and memory by address.
 *
 * The file is the kernel's (fs/proc/kcore.c, read_kcore) and is trusted as the kernel is, but that
 * of a test may hold anything, so every length is checked.
 */
#include "capture/kernel/kcore.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "proto/base.h"

/* There is one for each piece of RAM that the firmware tells of, and a few more. */
#define MAX_HEADERS 4096u
#define PAGE	    4096u
/* The kernel's image lies at or above this address, and modules above the image:
 * arch/x86/include/asm/page_64_types.h. */
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
	for (size_t i = 0; i < h.e_phnum; i++) {
		const Elf64_Phdr *p = &headers[i];

		if (p->p_type == PT_LOAD && p->p_memsz > 0 &&
		    p->p_memsz <= UINT64_MAX - p->p_vaddr && p->p_memsz <= INT64_MAX &&
		    p->p_offset <= INT64_MAX - p->p_memsz)
			k->segments[k->n_segments++] =
				(struct kcore_segment){p->p_vaddr, p->p_memsz, p->p_offset};
	}
	/* The image is in the first segment above IMAGE that has a page to be read. */
	for (size_t i = 0; i < k->n_segments; i++) {
		const struct kcore_segment *s = &k->segments[i];

		if (s->address >= IMAGE && s->size >= PAGE && s->address % PAGE == 0 &&
		    (!k->image || s->address < k->image->address))
			k->image = s;
	}
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

/*
 * Before Linux 6.4, memory that is not mapped reads as the page that was read before it:
 * read_kcore() hands out its buffer of one page whether or not vread() has filled it. The reader
 * therefore reads a known page first, and checks bytes that equal what the buffer held.
 */
struct reading {
	const struct kcore *kcore;
	uint64_t offset; /* in the file, of what is read */
	uint8_t *to;
	const uint8_t *before; /* the page that the kernel's buffer held: KNOWN, or one in TO */
	uint8_t known[PAGE];
};

static int read_known(struct reading *r)
{
	return read_at(r->kcore->fd, r->known, PAGE, r->kcore->image->offset);
}

/* The SIZE bytes at AT, all of one page, may be those of the page before: then they become zeros.
 */
static int check_page(struct reading *r, size_t at, size_t size)
{
	uint8_t *page = r->to + at;
	int e = 0;

	if (memcmp(page, r->before, size) != 0) {
		r->before = page;
		return 0;
	}
	if (r->before != r->known) {
		/* Zeros are right in any case. */
		if (page[0] == 0 && memcmp(page, page + 1, size - 1) == 0)
			return 0;
		e = read_known(r);
		if (e == 0)
			e = read_at(r->kcore->fd, page, size, r->offset + at);
	}
	if (e == 0 && memcmp(page, r->known, size) == 0)
		memset(page, 0, size);
	return e;
}

/* Reads SIZE bytes that begin at a page, or lie in one page. */
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

int kcore_read(const struct kcore *k, uint64_t address, void *to, size_t size)
{
	size_t first = MIN_OF(size, (size_t)(-address % PAGE)); /* up to the next page */
	struct reading r = {.kcore = k, .to = to};
	const struct kcore_segment *s = NULL;
	int e = 0;

	for (size_t i = 0; i < k->n_segments && !s; i++)
		if (address >= k->segments[i].address &&
		    address - k->segments[i].address < k->segments[i].size &&
		    size <= k->segments[i].size - (address - k->segments[i].address))
			s = &k->segments[i];
	if (!s)
		return -EFAULT;
	r.offset = s->offset + (address - s->address);
	if (!k->image || s->address <= k->image->address)
		return read_at(k->fd, to, size, r.offset);
	if (first > 0)
		e = read_pages(&r, first);
	r.offset += first;
	r.to += first;
	return e == 0 && size > first ? read_pages(&r, size - first) : e;
}
