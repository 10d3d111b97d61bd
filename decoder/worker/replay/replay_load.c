/*
 * Loads what a bundle holds: timeline, images, names, the kernel, turns and clocks.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/packet/fault.h"
#include "decoder/worker/replay/replay_private.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"

/* How the recorder begins the reason why a file could not be opened any more. */
#define GONE "gone:"
/* Mappings that are looked at in search of the only thread with code. */
#define MAX_LOOKS 65536u

/* --- Images of the manifest, as sources of sideband/symbols/image --- */

static unsigned int hex_digit(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

size_t replay_build_id(const char *text, uint8_t *ret, size_t max)
{
	size_t n = 0;

	for (; text && text[2 * n] != '\0' && n < max; n++)
		ret[n] = (uint8_t)(hex_digit(text[2 * n]) << 4 | hex_digit(text[2 * n + 1]));
	return n;
}

static bool is_kind(const struct manifest_image *from, const char *kind)
{
	return from->kind && strcmp(from->kind, kind) == 0;
}

/* Memory belongs to the space that the process had when the memory was read: not to a space before
 * an exec, and not to another process that had the same number before. */
static void take_memory(struct image_source *to, const struct manifest_image *from,
			const struct timeline *timeline)
{
	uint64_t time = from->read_ns == MANIFEST_ABSENT ? SPACE_NOW - 1 : from->read_ns;

	to->memory = is_kind(from, MANIFEST_IMAGE_MEMORY);
	to->vdso = is_kind(from, MANIFEST_IMAGE_VDSO);
	to->pid = from->pid;
	to->address = from->address;
	if (from->pid == MANIFEST_ANY)
		return;
	to->space = timeline_space(timeline, from->pid, time);
	/* No process can have mapped what wraps around. */
	if (from->address == MANIFEST_ABSENT || !to->space)
		to->apart = true;
}

/* A single piece is used where it lies. */
static void take_bytes(struct image_source *to, const struct bundle *bundle, size_t i)
{
	const struct manifest_piece *pieces;

	to->bytes = bundle_image(bundle, i, &to->size);
	if (!to->bytes)
		return;
	pieces = bundle_image_pieces(bundle, i, &to->n_pieces);
	if (to->n_pieces == 1) {
		to->offset = pieces[0].offset;
		to->n_pieces = 0;
	} else {
		to->pieces = pieces;
	}
}

static void take_image(struct image_source *to, const struct bundle *bundle, size_t i,
		       const struct timeline *timeline)
{
	const struct manifest_image *from = &bundle_manifest(bundle)->images[i];

	*to = (struct image_source){
		.path = from->path,
		.maj = from->maj,
		.min = from->min,
		.ino = from->ino,
		.ino_generation = from->ino_generation,
		.missing = from->missing,
		.gone = from->missing && strncmp(from->missing, GONE, strlen(GONE)) == 0,
		.loadable = from->elsewhere,
		.file_size = from->file_size == MANIFEST_ABSENT ? 0 : from->file_size,
		.pid = MANIFEST_ANY,
		.address = from->address,
		.unchanged = from->unchanged_ns,
		.unverified = from->unverified,
	};
	take_bytes(to, bundle, i);
	/* The reader of a kernel file compares the build id itself: the file may be packed. */
	if (!is_kind(from, MANIFEST_IMAGE_KERNEL_FILE))
		to->build_id_size = (uint8_t)replay_build_id(from->build_id, to->build_id,
							     sizeof(to->build_id));
	if (is_kind(from, MANIFEST_IMAGE_MEMORY) || is_kind(from, MANIFEST_IMAGE_VDSO))
		take_memory(to, from, timeline);
	else
		to->apart = from->kind != NULL;
	to->dump = is_kind(from, MANIFEST_IMAGE_JITDUMP);
}

int replay_images(const struct bundle *bundle, const struct timeline *timeline,
		  const struct image_loader *loader, struct image_set **ret)
{
	const struct manifest *m = bundle_manifest(bundle);
	CLEANUP_FREE struct image_source *sources = calloc(m->n_images + 1, sizeof(*sources));

	if (!sources)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_images; i++)
		take_image(&sources[i], bundle, i, timeline);
	return image_set_new(sources, m->n_images, loader, ret);
}

/* --- Since when memory is unchanged --- */

static int by_space(const void *a, const void *b)
{
	const struct replay_unchanged *x = a, *y = b;

	if (x->space != y->space)
		return space_id(x->space) < space_id(y->space) ? -1 : 1;
	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static int load_unchanged(struct replay *r)
{
	r->unchanged = calloc(r->manifest->n_images + 1, sizeof(*r->unchanged));
	if (!r->unchanged)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->manifest->n_images; i++) {
		const struct image_source *s = image_source(r->images, i);

		if (s->memory && s->space && !s->apart && s->unchanged != MANIFEST_ABSENT)
			r->unchanged[r->n_unchanged++] =
				(struct replay_unchanged){s->space, s->unchanged};
	}
	qsort(r->unchanged, r->n_unchanged, sizeof(*r->unchanged), by_space);
	return 0;
}

/* When the first trace begins; 0: not known of each. */
static uint64_t find_begin(const struct replay *r)
{
	uint64_t begin = MANIFEST_ABSENT;

	for (size_t i = 0; i < r->manifest->n_cpus; i++)
		if (r->manifest->cpus[i].bytes > 0)
			begin = MIN_OF(begin, shift_begin_of(r->bundle, i, &r->clocks[i]));
	return begin == MANIFEST_ABSENT ? 0 : begin;
}

int replay_context(struct replay *r, const struct space *space, uint64_t time, uint64_t no_earlier,
		   uint64_t no_later, uint32_t *ret)
{
	const struct jitcode *code = image_jitcode(r->images, space);
	struct context_versions versions = {0};
	const struct replay_unchanged key = {space, no_earlier};
	size_t n = FIRST_WHERE(i, r->n_unchanged, by_space(&r->unchanged[i], &key) > 0);
	uint64_t since = n > 0 && r->unchanged[n - 1].space == space ? r->unchanged[n - 1].ns : 0;

	if (code) {
		versions.likely = jitcode_at(code, time);
		jitcode_within(code, no_earlier, no_later, &versions.first, &versions.last);
	}
	return contexts_intern(&r->contexts, space, time, since, versions, ret);
}

/* --- Turns --- */

/* 1: code; 2: enough was looked at. */
static int find_code(void *userdata, const struct space_mapping *m)
{
	size_t *budget = userdata;

	if (*budget == 0)
		return 2;
	(*budget)--;
	return (m->prot & PROT_EXEC) != 0;
}

/* The only thread whose code is known; with *ret_shared, one of several threads of the only
 * process. NULL: there are more processes, or too many mappings to look at. */
static const struct timeline_thread *only_thread(const struct replay *r, bool *ret_shared)
{
	const struct timeline_thread *only = NULL;
	size_t budget = MAX_LOOKS;

	for (size_t i = 0; i < timeline_n_threads(r->timeline); i++) {
		const struct timeline_thread *thread = timeline_thread(r->timeline, i);
		const struct space *space = timeline_space(r->timeline, thread->pid, SPACE_NOW - 1);
		int found = space ? space_foreach(space, SPACE_NOW - 1, find_code, &budget) : 0;

		if (found == 2 || (found == 1 && only && only->pid != thread->pid))
			return NULL;
		if (found == 1) {
			*ret_shared = only != NULL;
			only = thread;
		}
	}
	return only;
}

/* A thread's own trace is always its own. A CPU's trace is that of the only thread, if there is one
 * and nothing says when threads ran on the CPU. */
static int load_turn(struct replay *r, size_t index)
{
	const struct manifest_cpu *cpu = &r->manifest->cpus[index];
	const struct timeline_thread *thread = NULL;
	bool shared = false;

	if (cpu->tid != MANIFEST_ANY)
		thread = timeline_last_thread(r->timeline, cpu->tid);
	else if (!r->manifest->have_clock || timeline_n_turns(r->timeline, cpu->cpu) == 0)
		thread = only_thread(r, &shared);
	if (shared)
		r->process = thread;
	if (thread && !shared)
		return turns_give(&r->turns, index, thread);
	return turns_load(&r->turns, index, r->timeline, cpu->cpu, r->manifest->horizon_ns);
}

/* The trace of a CPU was stopped where its sideband has an AUX record (kernel/events/ring_buffer.c,
 * perf_aux_output_end). */
static void note_stops(struct replay *r)
{
	size_t size, at = 0;
	const uint8_t *bytes = bundle_sideband(r->bundle, &size);
	struct perf_event_header header;
	struct perfrecord record;

	for (; at + sizeof(header) <= size; at += header.size) {
		memcpy(&header, bytes + at, sizeof(header));
		if (header.size < sizeof(header))
			return;
		if (header.type != PERF_RECORD_AUX ||
		    perfrecord_parse(bytes + at, size - at, &record) != 0)
			continue;
		for (size_t i = 0; i < r->manifest->n_cpus; i++)
			if (r->manifest->cpus[i].cpu == record.cpu)
				turns_stop(&r->turns, i, record.time);
	}
}

/* What the recorder knows of times in which a CPU was not traced. */
static void note_dark(struct replay *r)
{
	const struct manifest *m = r->manifest;

	for (size_t n = 0; n < m->n_notes; n++) {
		const struct manifest_note *note = &m->notes[n];

		for (size_t i = 0; note->cpu != MANIFEST_ANY && i < m->n_cpus; i++)
			if (m->cpus[i].cpu == note->cpu)
				turns_dark(&r->turns, i,
					   note->since_ns == MANIFEST_ABSENT ? 0 : note->since_ns,
					   note->until_ns == MANIFEST_ABSENT ? SPACE_NOW
									     : note->until_ns);
	}
}

/* The emulated machine records all its CPUs, from when they come. A CPU of a host is recorded a
 * little later than it runs threads again. */
static int note_unseen(struct replay *r)
{
	const struct manifest *m = r->manifest;
	const char *offline = fault_name(FAULT_CPU_OFFLINE);
	int result = 0;

	if (m->source && strcmp(m->source, "emulated") == 0)
		return 0;
	r->partial = m->unrecorded_cpus != 0;
	if (r->partial)
		return turns_unseen(&r->turns, 0, SPACE_NOW);
	for (size_t i = 0; i < m->n_notes && result == 0; i++) {
		const struct manifest_note *note = &m->notes[i];
		uint64_t since = note->since_ns == MANIFEST_ABSENT ? 0 : note->since_ns;

		/* A CPU that is still offline runs nothing. */
		if (strcmp(note->kind, offline) == 0 && note->until_ns != MANIFEST_ABSENT)
			result = turns_unseen(&r->turns, since, note->until_ns);
	}
	return result;
}

static bool is_in_manifest(const struct manifest *m, uint32_t cpu)
{
	for (size_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].cpu == cpu)
			return true;
	return false;
}

/* CPUs without a trace that the sideband tells of. Returns how many of them RET has. */
static size_t find_others(const struct replay *r, uint32_t *ret)
{
	size_t n = 0;

	for (uint32_t cpu = 0; cpu < MANIFEST_MAX_CPUS; cpu++)
		if (timeline_n_turns(r->timeline, cpu) > 0 && !is_in_manifest(r->manifest, cpu))
			ret[n++] = cpu;
	return n;
}

static int load_turns(struct replay *r)
{
	CLEANUP_FREE uint32_t *others = calloc(MANIFEST_MAX_CPUS, sizeof(*others));
	size_t n = r->manifest->n_cpus, n_others = others ? find_others(r, others) : 0;
	int result = others ? turns_init(&r->turns, n + n_others) : -ENOMEM;

	for (size_t i = 0; i < n && result == 0; i++)
		result = load_turn(r, i);
	/* How threads left user code there is not known, and no decode will tell. */
	for (size_t i = 0; i < n_others && result == 0; i++) {
		result = turns_load(&r->turns, n + i, r->timeline, others[i],
				    r->manifest->horizon_ns);
		r->turns.cpus[n + i].passed = TURNS_NONE;
	}
	if (result == 0)
		result = note_unseen(r);
	if (result < 0)
		return result;
	note_stops(r);
	note_dark(r);
	return turns_link(&r->turns);
}

/* --- Seams --- */

static int load_seams(struct replay *r)
{
	const struct manifest *m = r->manifest;

	r->seams = calloc(m->n_seams + 1, sizeof(*r->seams));
	if (!r->seams)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_seams; i++) {
		enum fault kind = fault_by_name(m->seams[i].kind);

		r->seams[i].offset = m->seams[i].offset;
		r->seams[i].fault = kind == FAULT_NONE ? FAULT_TRACE_MISSING : kind;
	}
	return 0;
}

const struct flow_seam *replay_seams(const struct replay *r, size_t index, size_t *ret_n)
{
	const struct manifest_seam *first = manifest_seams(r->manifest, index, ret_n);

	return first ? r->seams + (first - r->manifest->seams) : NULL;
}

/* --- All of it --- */

/* Names of code in memory. */
static int load_perf_maps(struct replay *r)
{
	const struct manifest *m = r->manifest;

	for (size_t i = 0; i < m->n_texts; i++) {
		size_t size;
		const void *text = bundle_text(r->bundle, i, &size);
		int result;

		if (!text || strcmp(m->texts[i].kind, MANIFEST_TEXT_PERF_MAP) != 0)
			continue;
		result = symbols_add_map(r->symbols, m->texts[i].pid, text, size);
		if (result != 0)
			return result;
	}
	return 0;
}

static int load(struct replay *r, const struct image_loader *loader)
{
	size_t size;
	const uint8_t *records = bundle_sideband(r->bundle, &size);
	int result = timeline_load(records, size, &r->timeline, &r->bad_records);

	if (result == 0)
		result = replay_images(r->bundle, r->timeline, loader, &r->images);
	if (result == 0)
		result = load_unchanged(r);
	if (result == 0)
		result = load_seams(r);
	if (result == 0)
		result = symbols_new(r->images, &r->symbols);
	if (result == 0)
		result = load_perf_maps(r);
	if (result == 0)
		result = replay_kernel_load(r);
	if (result == 0)
		result = contexts_init(&r->contexts);
	if (result == 0)
		result = load_turns(r);
	return result;
}

int replay_new_with(const struct bundle *bundle, const struct image_loader *loader,
		    int (*clocks)(struct replay *r), struct replay **ret)
{
	struct replay *r = calloc(1, sizeof(*r));
	int result;

	if (!r)
		return -ENOMEM;
	r->bundle = bundle;
	r->manifest = bundle_manifest(bundle);
	tscmap_init(&r->clock, r->manifest);
	result = load(r, loader);
	if (result == 0)
		result = clocks(r);
	if (result != 0) {
		replay_free(r);
		return result;
	}
	r->begin_ns = find_begin(r);
	result = replay_dumps_load(r);
	if (result != 0) {
		replay_free(r);
		return result;
	}
	*ret = r;
	return 0;
}

static int find_clocks(struct replay *r)
{
	return shift_clocks(r->bundle, &r->turns, r->timeline, &r->clock, &r->shift, &r->clocks);
}

int replay_new(const struct bundle *bundle, const struct image_loader *loader, struct replay **ret)
{
	return replay_new_with(bundle, loader, find_clocks, ret);
}

void replay_free(struct replay *r)
{
	if (!r)
		return;
	flow_free(r->code);
	kernel_free(r->kernel);
	symbols_free(r->symbols);
	image_set_free(r->images);
	free(r->unchanged);
	free(r->seams);
	timeline_free(r->timeline);
	contexts_done(&r->contexts);
	turns_done(&r->turns);
	shift_done(&r->shift);
	free(r->clocks);
	free(r);
}

void replay_freep(struct replay **r)
{
	replay_free(*r);
}
