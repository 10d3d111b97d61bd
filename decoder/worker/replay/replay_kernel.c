/*
 * Manifest, texts and records -> struct kernel, and its answers as flow and report want them.
 * Called by replay.c, cpu_replay.c and who needs names.
 */
#include "decoder/worker/replay/replay_kernel.h"

#include <string.h>

#include "decoder/worker/replay/replay_kernel_files.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"

/* A place between packets is known to a tick, times are rounded to ns on both sides. */
#define SLACK_TICKS 2u
#define SLACK_NS    1u

/* Where a thread switch changes the stack, in the order in which they are looked for: the second
 * one is what older kernels have, arch/x86/entry/entry_64.S and arch/x86/kernel/process_64.c. */
static const char *const switches[] = {"__switch_to", "__switch_to_asm"};

static bool is_kind(const char *kind, const char *wanted)
{
	return kind != NULL && strcmp(kind, wanted) == 0;
}

/* Text as it was read. */
static int add_image(struct replay *r, size_t i)
{
	const struct manifest_image *m = &r->manifest->images[i];
	struct kernel_piece piece = {.address = m->address,
				     .size = m->file_size,
				     .read_ns = m->read_ns,
				     .image = (uint32_t)i};

	if (!is_kind(m->kind, MANIFEST_IMAGE_KERNEL) || m->address == MANIFEST_ABSENT)
		return 0;
	if (piece.size == MANIFEST_ABSENT)
		piece.size = m->offset + m->size;
	return kernel_add_piece(r->kernel, &piece);
}

static int add_texts(struct replay *r)
{
	const struct manifest *m = r->manifest;
	int result = 0;

	for (size_t i = 0; i < m->n_texts && result == 0; i++) {
		size_t size;
		const void *text = bundle_text(r->bundle, i, &size);

		if (text != NULL && is_kind(m->texts[i].kind, MANIFEST_TEXT_KALLSYMS))
			result = kernel_add_symbols(r->kernel, text, size);
	}
	return result;
}

/* One that contradicts itself is skipped. */
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

static int fill(struct replay *r)
{
	int result = 0;

	for (size_t i = 0; i < r->manifest->n_images && result == 0; i++)
		result = add_image(r, i);
	if (result == 0)
		result = replay_kernel_files(r);
	if (result == 0)
		result = add_texts(r);
	if (result == 0)
		result = add_records(r);
	return result == 0 ? kernel_ready(r->kernel) : result;
}

static bool has_text(const struct manifest *m)
{
	for (size_t i = 0; i < m->n_images; i++)
		if (is_kind(m->images[i].kind, MANIFEST_IMAGE_KERNEL) ||
		    is_kind(m->images[i].kind, MANIFEST_IMAGE_KERNEL_FILE))
			return true;
	return false;
}

int replay_kernel_load(struct replay *r)
{
	const struct manifest *m = r->manifest;
	int result;

	/* Firmware that the kernel calls lies below its text (arch/x86/platform/efi/efi_64.c). */
	r->kernel_start = UINT64_C(1) << 63;
	if (m->kernel_start != 0)
		r->kernel_start = MIN_OF(r->kernel_start, m->kernel_start);
	if (!m->trace_kernel || !has_text(m))
		return 0;
	result = kernel_new(r->images, &r->kernel);
	if (result == 0)
		result = fill(r);
	for (size_t i = 0; i < ARRAY_SIZE(switches) && result == 0 && r->switch_ip == 0; i++)
		r->switch_ip = kernel_symbol_address(r->kernel, switches[i]);
	return result;
}

void replay_kernel_forget(struct replay *r)
{
	kernel_free(r->kernel);
	r->kernel = NULL;
	r->switch_ip = 0;
}

bool replay_is_kernel(const struct replay *r, uint64_t address)
{
	return r->kernel != NULL && address >= r->kernel_start;
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

static uint64_t not_before(const struct tscmap *clock, uint64_t tsc)
{
	uint64_t ns = tscmap_ns(clock, tsc - MIN_OF(tsc, (uint64_t)SLACK_TICKS));

	if (tsc == 0 || ns == MANIFEST_ABSENT)
		return 0;
	return ns - MIN_OF(ns, SLACK_NS + clock->doubt);
}

static uint64_t not_after(const struct tscmap *clock, uint64_t tsc)
{
	uint64_t ns = tsc > UINT64_MAX - SLACK_TICKS ? MANIFEST_ABSENT
						     : tscmap_ns(clock, tsc + SLACK_TICKS);

	return ns > UINT64_MAX - SLACK_NS - clock->doubt ? UINT64_MAX
							 : ns + SLACK_NS + clock->doubt;
}

uint32_t replay_kernel_version(const struct replay *r, const struct tscmap *clock, uint64_t ip,
			       uint64_t tsc_lo, uint64_t tsc_hi, uint32_t *ret_last)
{
	/* An instant stays one. */
	bool instant = tsc_lo == tsc_hi && clock->doubt == 0;
	uint64_t lo = instant ? tscmap_ns(clock, tsc_lo) : not_before(clock, tsc_lo);
	uint64_t hi = instant ? lo : not_after(clock, tsc_hi);

	return kernel_version(r->kernel, ip, lo, hi, ret_last);
}

int replay_kernel_find(const struct replay *r, uint64_t address, struct image_code *ret)
{
	uint32_t last, version = kernel_version(r->kernel, address, UINT64_MAX, UINT64_MAX, &last);
	const struct kernel_piece *piece = kernel_piece_at(r->kernel, address);
	struct kernel_code code;
	int found;

	*ret = (struct image_code){0};
	if (piece == NULL)
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
