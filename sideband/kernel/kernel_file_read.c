/*
 * Reads the files of a kernel: sections and segments of ELF files, piece by piece, and the ELF file
 * in a bzImage.
 *
 * bzImage (/boot/vmlinuz-*): Documentation/arch/x86/boot.rst, "payload_offset". The last four bytes
 * of the payload are the size that it has unpacked. Distributions pack it with zstd by now. Legacy
 * frames of lz4 take only a few lines. The worker has no library for the other methods.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "proto/base.h"
#include "proto/bytes.h"
#include "sideband/kernel/kernel_file_private.h"

#define MAX_SEGMENTS 4096u
#define MAX_NOTES    65536u
/* Bytes of one piece: ten times the text of the largest kernel. */
#define MAX_BYTES ((uint64_t)512 << 20)
/* These four are for a bzImage. */
#define SETUP_SIZE   0x250u
#define MAX_PAYLOAD  (256u << 20)
#define MAX_UNPACKED (512u << 20)
#define LZ4_LEGACY   0x184c2102u

/* --- ELF --- */

static int read_all(const struct kernel_source *s, uint64_t offset, void *to, size_t size)
{
	size_t done = 0;

	if (offset > s->size || size > s->size - offset)
		return -EBADMSG;
	while (done < size) {
		ssize_t n = s->read(s->userdata, offset + done, (char *)to + done, size - done);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return -EBADMSG;
		done += (size_t)n;
	}
	return 0;
}

int kernel_elf_read(const struct kernel_elf *e, uint64_t offset, uint64_t size, uint8_t **ret)
{
	uint8_t *bytes;
	int r;

	if (size > MAX_BYTES || offset > e->source->size || size > e->source->size - offset)
		return -EBADMSG;
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return -ENOMEM;
	r = read_all(e->source, offset, bytes, (size_t)size);
	if (r < 0) {
		free(bytes);
		return r;
	}
	bytes[size] = 0;
	*ret = bytes;
	return 0;
}

static bool is_known(const Elf64_Ehdr *h)
{
	return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_machine == EM_X86_64 &&
	       (h->e_type == ET_EXEC || h->e_type == ET_DYN || h->e_type == ET_REL) &&
	       (h->e_shnum == 0 || h->e_shentsize == sizeof(Elf64_Shdr)) &&
	       (h->e_phnum == 0 || h->e_phentsize == sizeof(Elf64_Phdr)) &&
	       h->e_phnum <= MAX_SEGMENTS;
}

static int read_tables(struct kernel_elf *e)
{
	const Elf64_Ehdr *h = &e->header;
	uint8_t *bytes;
	int r = kernel_elf_read(e, h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr), &bytes);

	if (r < 0)
		return r;
	e->segments = (Elf64_Phdr *)bytes;
	e->n_segments = h->e_phnum;
	r = kernel_elf_read(e, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr), &bytes);
	if (r < 0)
		return r;
	e->sections = (Elf64_Shdr *)bytes;
	e->n_sections = h->e_shnum;
	if (h->e_shstrndx == SHN_UNDEF || h->e_shstrndx >= e->n_sections)
		return 0;
	r = kernel_elf_read_section(e, h->e_shstrndx, &bytes, &e->names_size);
	if (r == 0)
		e->names = (char *)bytes;
	return r == -ENODATA ? 0 : r;
}

int kernel_elf_open(const struct kernel_source *source, struct kernel_elf *ret)
{
	int r;

	*ret = (struct kernel_elf){.source = source};
	r = read_all(source, 0, &ret->header, sizeof(ret->header));
	if (r == 0)
		r = is_known(&ret->header) ? read_tables(ret) : -EBADMSG;
	if (r < 0)
		kernel_elf_close(ret);
	return r;
}

void kernel_elf_close(struct kernel_elf *e)
{
	free(TAKE_PTR(e->sections));
	free(TAKE_PTR(e->segments));
	free(TAKE_PTR(e->names));
	e->n_sections = e->n_segments = e->names_size = 0;
}

const char *kernel_elf_name(const struct kernel_elf *e, size_t section)
{
	if (section >= e->n_sections || !e->names || e->sections[section].sh_name >= e->names_size)
		return "";
	return e->names + e->sections[section].sh_name;
}

size_t kernel_elf_section(const struct kernel_elf *e, const char *name)
{
	for (size_t i = 1; i < e->n_sections; i++)
		if (strcmp(kernel_elf_name(e, i), name) == 0)
			return i;
	return 0;
}

int kernel_elf_read_section(const struct kernel_elf *e, size_t section, uint8_t **ret,
			    size_t *ret_size)
{
	const Elf64_Shdr *s = &e->sections[section];

	if (section >= e->n_sections || s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL)
		return -ENODATA;
	*ret_size = (size_t)s->sh_size;
	return kernel_elf_read(e, s->sh_offset, s->sh_size, ret);
}

int kernel_elf_read_address(const struct kernel_elf *e, uint64_t address, uint64_t size,
			    uint8_t **ret)
{
	for (size_t i = 0; i < e->n_segments; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz &&
		    size <= p->p_filesz - (address - p->p_vaddr) && p->p_offset <= e->source->size)
			return kernel_elf_read(e, p->p_offset + (address - p->p_vaddr), size, ret);
	}
	return -ENODATA;
}

static size_t note_padded(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

static size_t find_build_id(const uint8_t *notes, size_t size, uint8_t ret[20])
{
	struct bytes_in in;

	bytes_in_init(&in, notes, size);
	while (bytes_in_left(&in) > 0 && !in.bad) {
		uint32_t name_size = bytes_get_u32(&in), desc_size = bytes_get_u32(&in);
		uint32_t type = bytes_get_u32(&in);
		const uint8_t *name = bytes_get_block(&in, note_padded(name_size));
		const uint8_t *desc = bytes_get_block(&in, note_padded(desc_size));

		if (!name || !desc || type != NT_GNU_BUILD_ID || name_size != sizeof("GNU") ||
		    memcmp(name, "GNU", sizeof("GNU")) != 0 || desc_size > 20)
			continue;
		memcpy(ret, desc, desc_size);
		return desc_size;
	}
	return 0;
}

size_t kernel_elf_build_id(const struct kernel_elf *e, uint8_t ret[20])
{
	size_t found = 0;

	for (size_t i = 1; i < e->n_sections && found == 0; i++) {
		CLEANUP_FREE uint8_t *notes = NULL;
		size_t size;

		if (e->sections[i].sh_type == SHT_NOTE && e->sections[i].sh_size <= MAX_NOTES &&
		    kernel_elf_read_section(e, i, &notes, &size) == 0)
			found = find_build_id(notes, size, ret);
	}
	return found;
}

/* --- bzImage --- */

struct out {
	uint8_t *bytes;
	size_t n, size;
};

static uint32_t le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* A length of LZ4 (github.com/lz4/lz4, doc/lz4_Block_format.md): 15 in the token means that bytes
 * follow; the first that is not 255 is the last. */
static size_t lz4_length(struct bytes_in *in, unsigned token)
{
	size_t length = token;
	uint8_t more = 255;

	while (token == 15 && more == 255 && !in->bad) {
		more = bytes_get_u8(in);
		length += more;
	}
	return length;
}

static int lz4_block(struct bytes_in *in, struct out *out)
{
	while (bytes_in_left(in) > 0) {
		unsigned token = bytes_get_u8(in);
		size_t length = lz4_length(in, token >> 4), distance;
		const uint8_t *literals = bytes_get_block(in, length);

		if (!literals || length > out->size - out->n)
			return -EBADMSG;
		memcpy(out->bytes + out->n, literals, length);
		out->n += length;
		/* The last sequence has no match. */
		if (bytes_in_left(in) == 0)
			return 0;
		distance = bytes_get_u16(in);
		length = lz4_length(in, token & 15) + 4;
		if (in->bad || distance == 0 || distance > out->n || length > out->size - out->n)
			return -EBADMSG;
		/* Byte by byte, as source and target may overlap. */
		for (size_t i = 0; i < length; i++, out->n++)
			out->bytes[out->n] = out->bytes[out->n - distance];
	}
	return 0;
}

static int lz4_unpack(const uint8_t *payload, size_t size, struct out *out)
{
	struct bytes_in in, block;
	int r = 0;

	bytes_in_init(&in, payload, size);
	bytes_get_u32(&in);
	while (r == 0 && out->n < out->size && bytes_in_left(&in) > 4) {
		uint32_t packed = bytes_get_u32(&in);
		const uint8_t *bytes = bytes_get_block(&in, packed);

		if (!bytes)
			return -EBADMSG;
		bytes_in_init(&block, bytes, packed);
		r = lz4_block(&block, out);
	}
	return r;
}

static int zstd_unpack(const uint8_t *payload, size_t size, struct out *out)
{
	size_t packed = ZSTD_findFrameCompressedSize(payload, size), n;

	if (ZSTD_isError(packed) || packed > size)
		return -EBADMSG;
	n = ZSTD_decompress(out->bytes, out->size, payload, packed);
	if (ZSTD_isError(n))
		return -EBADMSG;
	out->n = n;
	return 0;
}

/* Where the payload lies. */
static int find_payload(const struct kernel_elf *file, uint64_t *ret_offset, uint64_t *ret_size)
{
	CLEANUP_FREE uint8_t *setup = NULL;
	int r = kernel_elf_read(file, 0, SETUP_SIZE, &setup);

	if (r < 0)
		return r;
	/* The fields are there since version 2.08 of the boot protocol. */
	if (memcmp(setup + 0x202, "HdrS", 4) != 0 || setup[0x207] < 2 ||
	    (setup[0x207] == 2 && setup[0x206] < 8))
		return -EBADMSG;
	*ret_offset = ((uint64_t)(setup[0x1f1] ? setup[0x1f1] : 4) + 1) * 512 + le32(setup + 0x248);
	*ret_size = le32(setup + 0x24c);
	return *ret_size < 8 || *ret_size > MAX_PAYLOAD ? -EBADMSG : 0;
}

int kernel_file_unpack(const struct kernel_source *source, uint8_t **ret, size_t *ret_size)
{
	struct kernel_elf file = {.source = source}; /* only to read from */
	CLEANUP_FREE uint8_t *payload = NULL;
	struct out out = {0};
	uint64_t offset, size;
	int r = find_payload(&file, &offset, &size);

	if (r == 0)
		r = kernel_elf_read(&file, offset, size, &payload);
	if (r < 0)
		return r;
	out.size = le32(payload + size - 4);
	if (out.size == 0 || out.size > MAX_UNPACKED)
		return -EBADMSG;
	out.bytes = malloc(out.size);
	if (!out.bytes)
		return -ENOMEM;
	if (le32(payload) == LZ4_LEGACY)
		r = lz4_unpack(payload, (size_t)size, &out);
	else if (le32(payload) == ZSTD_MAGICNUMBER)
		r = zstd_unpack(payload, (size_t)size, &out);
	else
		r = -EPROTONOSUPPORT;
	if (r < 0) {
		free(out.bytes);
		return r;
	}
	*ret = out.bytes;
	*ret_size = out.n;
	return 0;
}
