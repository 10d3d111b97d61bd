/*
 * The kernel's code of a replay: loaded from manifest, texts and records, or from files of the
 * kernel, and given to flows and names as they need it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay_private.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "sideband/kernel/kernel_file.h"

#define MAX_NAME   64
#define INT3	   0xcc
#define FREE_BYTES 8u /* so many INT3s in a row are free memory */

/* The functions in which a thread switch changes the stack, the first one that exists: the second
 * is for older kernels, arch/x86/entry/entry_64.S and arch/x86/kernel/process_64.c. */
static const char *const switches[] = {"__switch_to", "__switch_to_asm"};

static bool is_kind(const char *kind, const char *wanted)
{
	return kind && strcmp(kind, wanted) == 0;
}

/* --- Files of the kernel (images of kind "kernel-file"), where the recorder could not read the
 * text from memory --- */

struct files {
	struct replay *replay;
	struct kernel_links *links; /* owned */
	const char *sections;
	size_t sections_size;
	bool placed; /* a file of the kernel itself was used: others are not needed */
};

struct reading {
	struct image_set *images;
	uint32_t image;
};

static ssize_t read_image(void *userdata, uint64_t offset, void *to, size_t size)
{
	const struct reading *r = userdata;
	const uint8_t *bytes = image_need(r->images, r->image, offset, size);

	if (!bytes)
		return -ENODATA;
	memcpy(to, bytes, size);
	return (ssize_t)size;
}

static const char *find_text(const struct replay *r, const char *kind, size_t *ret_size)
{
	for (size_t i = 0; i < r->manifest->n_texts; i++) {
		const void *text = bundle_text(r->bundle, i, ret_size);

		if (text && is_kind(r->manifest->texts[i].kind, kind))
			return text;
	}
	*ret_size = 0;
	return "";
}

/* "[virtio]" -> virtio. */
static bool take_name(const char *path, char ret[MAX_NAME])
{
	size_t size = path ? strlen(path) : 0;

	if (size < 3 || size - 2 >= MAX_NAME || path[0] != '[' || path[size - 1] != ']')
		return false;
	memcpy(ret, path + 1, size - 2);
	ret[size - 2] = '\0';
	return true;
}

/* Hands TEXT's bytes over to the kernel. */
static int add_file_text(struct replay *r, size_t image, struct kernel_file_text *text)
{
	struct kernel_piece piece = {.address = text->address,
				     .size = text->size,
				     .read_ns = KERNEL_ABSENT,
				     .image = (uint32_t)image,
				     .bytes = text->bytes};
	int result = kernel_add_piece(r->kernel, &piece);

	if (result == 0)
		text->bytes = NULL;
	for (size_t i = 0; i < text->n_masked && result == 0; i++)
		result = kernel_add_masked(r->kernel, text->masked[i].begin,
					   text->masked[i].end - text->masked[i].begin);
	return result;
}

static int add_file(struct files *f, size_t i)
{
	const struct manifest_image *m = &f->replay->manifest->images[i];
	struct reading reading = {f->replay->images, (uint32_t)i};
	uint8_t build_id[MANIFEST_MAX_BUILD_ID / 2];
	struct kernel_file file = {
		.source = {.read = read_image, .userdata = &reading},
		.build_id = build_id,
		.build_id_size = replay_build_id(m->build_id, build_id, sizeof(build_id)),
		.links = f->links,
		.sections = f->sections,
		.sections_size = f->sections_size,
	};
	struct kernel_file_text text;
	char name[MAX_NAME];
	int result;

	if (!take_name(m->path, name) || m->missing)
		return 0;
	file.module = strcmp(name, "kernel") == 0 ? NULL : name;
	if (!file.module && f->placed)
		return 0;
	file.source.size = m->file_size != MANIFEST_ABSENT ? m->file_size : m->offset + m->size;
	result = kernel_file_text(&file, &text);
	/* A file that is not what ran, that nobody can make sense of, or that is larger than the
	 * memory is left out. */
	if (result != 0)
		return 0;
	f->placed |= !file.module;
	result = add_file_text(f->replay, i, &text);
	kernel_file_text_done(&text);
	return result;
}

/* 0 or -ENOMEM. */
static int add_files(struct replay *r)
{
	const struct manifest *m = r->manifest;
	struct files f = {.replay = r};
	const char *symbols;
	size_t size, n = 0;
	int result;

	for (size_t i = 0; i < m->n_images; i++)
		n += is_kind(m->images[i].kind, MANIFEST_IMAGE_KERNEL_FILE);
	if (n == 0)
		return 0;
	symbols = find_text(r, MANIFEST_TEXT_KALLSYMS, &size);
	f.sections = find_text(r, MANIFEST_TEXT_KERNEL_SECTIONS, &f.sections_size);
	result = kernel_links_new(symbols, size, &f.links);
	for (size_t i = 0; i < m->n_images && result == 0; i++)
		if (is_kind(m->images[i].kind, MANIFEST_IMAGE_KERNEL_FILE))
			result = add_file(&f, i);
	kernel_links_free(f.links);
	return result;
}

/* --- Text from memory, names and records --- */

/* Where BPF programs lie, the kernel fills what is free with INT3 (arch/x86/net/bpf_jit_comp.c,
 * jit_fill_hole and bpf_arch_text_invalidate). Programs of seccomp and of socket filters have no
 * records: where such a program ran and was freed, nothing but the INT3s tells. */
static int mask_free(struct replay *r, const struct kernel_piece *piece)
{
	const uint8_t *bytes = image_need(r->images, piece->image, piece->offset, piece->size);
	int result = 0;

	for (uint64_t i = 0, n; bytes && i < piece->size && result == 0; i += n) {
		n = 1;
		while (bytes[i] == INT3 && i + n < piece->size && bytes[i + n] == INT3)
			n++;
		if (n >= FREE_BYTES)
			result = kernel_add_masked(r->kernel, piece->address + i, n);
	}
	return result;
}

static int add_image(struct replay *r, size_t i)
{
	const struct manifest_image *m = &r->manifest->images[i];
	struct kernel_piece piece = {.address = m->address,
				     .size = m->file_size,
				     .read_ns = m->read_ns,
				     .image = (uint32_t)i};
	int result;

	if (!is_kind(m->kind, MANIFEST_IMAGE_KERNEL) || m->address == MANIFEST_ABSENT)
		return 0;
	if (piece.size == MANIFEST_ABSENT)
		piece.size = m->offset + m->size;
	result = kernel_add_piece(r->kernel, &piece);
	if (result == 0 && m->path && strcmp(m->path, "[bpf]") == 0 && !m->missing)
		result = mask_free(r, &piece);
	return result;
}

static int add_symbols(struct replay *r)
{
	const struct manifest *m = r->manifest;
	int result = 0;

	for (size_t i = 0; i < m->n_texts && result == 0; i++) {
		size_t size;
		const void *text = bundle_text(r->bundle, i, &size);

		if (text && is_kind(m->texts[i].kind, MANIFEST_TEXT_KALLSYMS))
			result = kernel_add_symbols(r->kernel, text, size);
	}
	return result;
}

/* A record that contradicts itself is skipped. */
static int add_records(struct replay *r)
{
	size_t size, at = 0;
	const uint8_t *bytes = bundle_sideband(r->bundle, &size);
	struct perfrecord record;

	while (at < size) {
		int parsed = perfrecord_parse(bytes + at, size - at, &record);

		if (parsed < 0 && record.size == 0)
			break;
		if (parsed >= 0 && kernel_add_record(r->kernel, &record) == -ENOMEM)
			return -ENOMEM;
		at += record.size;
	}
	return 0;
}

int replay_kernel_load(struct replay *r)
{
	const struct manifest *m = r->manifest;
	bool has_text = false;
	int result;

	/* Firmware that the kernel calls lies below its text (arch/x86/platform/efi/efi_64.c). */
	r->kernel_start = UINT64_C(1) << 63;
	if (m->kernel_start != 0)
		r->kernel_start = MIN_OF(r->kernel_start, m->kernel_start);
	for (size_t i = 0; i < m->n_images; i++)
		has_text |= is_kind(m->images[i].kind, MANIFEST_IMAGE_KERNEL) ||
			    is_kind(m->images[i].kind, MANIFEST_IMAGE_KERNEL_FILE);
	if (!m->trace_kernel || !has_text)
		return 0;
	result = kernel_new(r->images, &r->kernel);
	for (size_t i = 0; i < m->n_images && result == 0; i++)
		result = add_image(r, i);
	if (result == 0)
		result = add_files(r);
	if (result == 0)
		result = add_symbols(r);
	if (result == 0)
		result = add_records(r);
	if (result == 0)
		result = kernel_ready(r->kernel);
	for (size_t i = 0; i < ARRAY_SIZE(switches) && result == 0 && r->switch_ip == 0; i++)
		r->switch_ip = kernel_symbol_address(r->kernel, switches[i]);
	return result;
}

void replay_kernel_forget(struct replay *r)
{
	assert(!r->code); /* before any replay */
	kernel_free(r->kernel);
	r->kernel = NULL;
	r->switch_ip = 0;
}

/* --- What flows and names ask --- */

bool replay_is_kernel(const struct replay *r, uint64_t address)
{
	return r->kernel && address >= r->kernel_start;
}

int replay_kernel_code(const struct replay *r, uint64_t ip, uint32_t version, struct flow_code *ret)
{
	struct kernel_code code;

	switch (kernel_find(r->kernel, ip, version, &code)) {
	case 0: break;
	case KERNEL_UNRELIABLE: return FAULT_KERNEL_TEXT;
	default: return FAULT_UNMAPPED;
	}
	*ret = (struct flow_code){.bytes = code.bytes,
				  .address = code.address,
				  .size = code.size,
				  .touched = code.touched,
				  .ends = code.ends};
	return 0;
}

uint32_t replay_kernel_version(const struct replay *r, const struct tscmap *clock, uint64_t ip,
			       uint64_t tsc_lo, uint64_t tsc_hi, uint32_t *ret_last)
{
	/* An instant stays one. */
	bool instant = tsc_lo == tsc_hi && clock->doubt == 0;
	uint64_t lo = instant ? tscmap_ns(clock, tsc_lo) : tscmap_not_before(clock, tsc_lo);
	uint64_t hi = instant ? lo : tscmap_not_after(clock, tsc_hi);

	return kernel_version(r->kernel, ip, lo, hi, ret_last);
}

int replay_kernel_find(const struct replay *r, uint64_t address, struct image_code *ret)
{
	uint32_t last, version = kernel_version(r->kernel, address, UINT64_MAX, UINT64_MAX, &last);
	const struct kernel_piece *piece = kernel_piece_at(r->kernel, address);
	struct kernel_code code;
	int found;

	*ret = (struct image_code){0};
	if (!piece)
		return IMAGE_UNMAPPED;
	found = kernel_find(r->kernel, address, version, &code);
	if (found != 0)
		return found == KERNEL_MISSING ? IMAGE_MISSING : IMAGE_UNMAPPED;
	*ret = (struct image_code){.bytes = code.bytes,
				   .address = code.address,
				   .size = code.size,
				   .image = piece->image,
				   .offset = piece->offset + (code.address - piece->address),
				   .map_begin = piece->address,
				   .map_end = piece->address + piece->size,
				   .touched = code.touched};
	return 0;
}

void replay_kernel_symbol(const struct replay *r, uint64_t address, const struct image_code *code,
			  struct symbol *ret)
{
	struct kernel_symbol symbol;

	*ret = (struct symbol){.image = code->image,
			       .offset = code->offset + (address - code->address)};
	if (!kernel_symbol_at(r->kernel, address, &symbol))
		return;
	ret->offset -= address - symbol.address;
	ret->size = symbol.size;
	ret->name = symbol.name;
}
