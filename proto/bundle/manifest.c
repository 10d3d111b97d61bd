/*
 * The manifest in memory, and the pieces of images.
 */
#include "proto/bundle/manifest.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/manifest_private.h"
#include "proto/perf/ptpacket.h"

enum manifest_contents manifest_contents(const struct manifest *m)
{
	if (m->pt_config == MANIFEST_ABSENT)
		return MANIFEST_BRANCHES;
	if ((m->pt_config & PT_CONFIG_PT) != 0 && (m->pt_config & PT_CONFIG_BRANCH) == 0)
		return MANIFEST_EVENTS;
	return (m->pt_config & PT_CONFIG_NOTNT) != 0 ? MANIFEST_TARGETS : MANIFEST_BRANCHES;
}

unsigned int manifest_filters(const struct manifest *m)
{
	const uint64_t config = m->pt_config == MANIFEST_ABSENT ? 0 : m->pt_config;
	unsigned int filters = 0;

	if (!m->trace_kernel)
		filters |= MANIFEST_ONLY_USER;
	if (!m->trace_user)
		filters |= MANIFEST_ONLY_KERNEL;
	if (m->tasks_only)
		filters |= MANIFEST_ONLY_TASKS;
	if (m->address_filter || (config & PT_CONFIG_ADDR) != 0)
		filters |= MANIFEST_ONLY_ADDRESSES;
	if ((config & PT_CONFIG_CR3) != 0)
		filters |= MANIFEST_ONLY_CR3;
	if (m->paused)
		filters |= MANIFEST_ONLY_BETWEEN;
	return filters;
}

void manifest_init(struct manifest *m)
{
	*m = (struct manifest){
		.sender_pid = MANIFEST_ABSENT,
		.sender_uid = MANIFEST_ABSENT,
		.realtime_ns = MANIFEST_ABSENT,
		.monotonic_ns = MANIFEST_ABSENT,
		.perf_ns = MANIFEST_ABSENT,
		.tsc = MANIFEST_ABSENT,
		.pt_config = MANIFEST_ABSENT,
		.mtc_period = UINT32_MAX,
		.last_bytes = MANIFEST_ABSENT,
		.last_ns = MANIFEST_ABSENT,
		.previous_stop_ns = MANIFEST_ABSENT,
		.horizon_ns = MANIFEST_ABSENT,
		.unrecorded_cpus = MANIFEST_ABSENT,
		.kernel_start = MANIFEST_ABSENT,
	};
}

static void free_strings(void *object, const struct manifest_field *fields, size_t n_fields)
{
	for (size_t i = 0; i < n_fields; i++)
		if (fields[i].type == MANIFEST_STRING)
			free(*(char **)((char *)object + fields[i].offset));
}

void manifest_done(struct manifest *m)
{
	for (size_t i = 0; i < MANIFEST_N_GROUPS; i++)
		free_strings(m, manifest_groups[i].fields, manifest_groups[i].n_fields);
	for (unsigned id = 0; id < MANIFEST_N_LISTS; id++) {
		const struct manifest_list *l = &manifest_lists[id];
		size_t n;
		char *elements = manifest_elements(m, id, &n);

		for (size_t i = 0; i < n; i++)
			free_strings(elements + i * l->element_size, l->fields, l->n_fields);
		free(elements);
	}
	manifest_init(m);
}

/* Makes room for one more element behind the N elements of a list. False: no memory, or the limit
 * is reached. */
#define HAS_ROOM(list, n, id) ((n) < manifest_lists[id].max && ARRAY_EXTEND((list), (n)) == 0)

struct manifest_cpu *manifest_add_cpu(struct manifest *m)
{
	if (!HAS_ROOM(m->cpus, m->n_cpus, MANIFEST_CPUS))
		return NULL;
	m->cpus[m->n_cpus] = (struct manifest_cpu){
		.tid = MANIFEST_ANY,
		.asked_bytes = MANIFEST_ABSENT,
		.stop_ns = MANIFEST_ABSENT,
		.dark_ns = MANIFEST_ABSENT,
		.copy_ns = MANIFEST_ABSENT,
		.truncated_ns = MANIFEST_ABSENT,
		.partial_ns = MANIFEST_ABSENT,
		.collision_ns = MANIFEST_ABSENT,
		.stop_order = MANIFEST_ABSENT,
	};
	return &m->cpus[m->n_cpus++];
}

struct manifest_process *manifest_add_process(struct manifest *m)
{
	if (!HAS_ROOM(m->processes, m->n_processes, MANIFEST_PROCESSES))
		return NULL;
	m->processes[m->n_processes] = (struct manifest_process){
		.ppid = MANIFEST_ABSENT,
		.start_ns = MANIFEST_ABSENT,
		.uid = MANIFEST_ABSENT,
		.mount_ns = MANIFEST_ABSENT,
		.ns_pid = MANIFEST_ABSENT,
		.uid_since_ns = MANIFEST_ABSENT,
	};
	return &m->processes[m->n_processes++];
}

struct manifest_image *manifest_add_image(struct manifest *m)
{
	if (!HAS_ROOM(m->images, m->n_images, MANIFEST_IMAGES))
		return NULL;
	m->images[m->n_images] = (struct manifest_image){
		.file_size = MANIFEST_ABSENT,
		.pid = MANIFEST_ANY,
		.address = MANIFEST_ABSENT,
		.read_ns = MANIFEST_ABSENT,
		.unchanged_ns = MANIFEST_ABSENT,
	};
	return &m->images[m->n_images++];
}

struct manifest_text *manifest_add_text(struct manifest *m)
{
	if (!HAS_ROOM(m->texts, m->n_texts, MANIFEST_TEXTS))
		return NULL;
	m->texts[m->n_texts] = (struct manifest_text){.pid = MANIFEST_ANY};
	return &m->texts[m->n_texts++];
}

struct manifest_seam *manifest_add_seam(struct manifest *m)
{
	if (!HAS_ROOM(m->seams, m->n_seams, MANIFEST_SEAMS))
		return NULL;
	m->seams[m->n_seams] = (struct manifest_seam){0};
	return &m->seams[m->n_seams++];
}

const struct manifest_seam *manifest_seams(const struct manifest *m, size_t trace, size_t *ret_n)
{
	size_t first = FIRST_WHERE(i, m->n_seams, m->seams[i].trace >= trace);
	size_t end = FIRST_WHERE(i, m->n_seams, m->seams[i].trace > trace);

	*ret_n = end - first;
	return end > first ? &m->seams[first] : NULL;
}

struct manifest_label *manifest_add_label(struct manifest *m)
{
	if (!HAS_ROOM(m->labels, m->n_labels, MANIFEST_LABELS))
		return NULL;
	m->labels[m->n_labels] = (struct manifest_label){0};
	return &m->labels[m->n_labels++];
}

struct manifest_pevent *manifest_add_pevent(struct manifest *m)
{
	if (!HAS_ROOM(m->pevents, m->n_pevents, MANIFEST_PEVENTS))
		return NULL;
	m->pevents[m->n_pevents] = (struct manifest_pevent){0};
	return &m->pevents[m->n_pevents++];
}

static struct manifest_note *add_note(struct manifest *m)
{
	if (!HAS_ROOM(m->notes, m->n_notes, MANIFEST_NOTES))
		return NULL;
	m->notes[m->n_notes] = (struct manifest_note){
		.cpu = MANIFEST_ANY, .since_ns = MANIFEST_ABSENT, .until_ns = MANIFEST_ABSENT};
	return &m->notes[m->n_notes++];
}

int manifest_add_note_at(struct manifest *m, const struct manifest_note *note)
{
	CLEANUP_FREE char *kind = strdup(note->kind);
	CLEANUP_FREE char *why = note->why ? strdup(note->why) : NULL;
	struct manifest_note *to;

	if (!kind || (note->why && !why))
		return -ENOMEM;
	if (m->n_notes >= MANIFEST_MAX_NOTES)
		return -ENOSPC;
	to = add_note(m);
	if (!to)
		return -ENOMEM;
	*to = *note;
	to->kind = TAKE_PTR(kind);
	to->why = TAKE_PTR(why);
	return 0;
}

int manifest_add_note(struct manifest *m, const char *kind, uint64_t count, const char *why)
{
	const struct manifest_note note = {
		.kind = (char *)kind,
		.count = count,
		.why = (char *)why,
		.cpu = MANIFEST_ANY,
		.since_ns = MANIFEST_ABSENT,
		.until_ns = MANIFEST_ABSENT,
	};

	return manifest_add_note_at(m, &note);
}

void *manifest_elements(const struct manifest *m, enum manifest_list_id id, size_t *ret_n)
{
	switch (id) {
	case MANIFEST_CPUS: *ret_n = m->n_cpus; return m->cpus;
	case MANIFEST_PROCESSES: *ret_n = m->n_processes; return m->processes;
	case MANIFEST_IMAGES: *ret_n = m->n_images; return m->images;
	case MANIFEST_NOTES: *ret_n = m->n_notes; return m->notes;
	case MANIFEST_PEVENTS: *ret_n = m->n_pevents; return m->pevents;
	case MANIFEST_LABELS: *ret_n = m->n_labels; return m->labels;
	case MANIFEST_TEXTS: *ret_n = m->n_texts; return m->texts;
	case MANIFEST_SEAMS: *ret_n = m->n_seams; return m->seams;
	case MANIFEST_N_LISTS: break;
	}
	*ret_n = 0;
	return NULL;
}

void *manifest_add_element(struct manifest *m, enum manifest_list_id id)
{
	switch (id) {
	case MANIFEST_CPUS: return manifest_add_cpu(m);
	case MANIFEST_PROCESSES: return manifest_add_process(m);
	case MANIFEST_IMAGES: return manifest_add_image(m);
	case MANIFEST_NOTES: return add_note(m);
	case MANIFEST_PEVENTS: return manifest_add_pevent(m);
	case MANIFEST_LABELS: return manifest_add_label(m);
	case MANIFEST_TEXTS: return manifest_add_text(m);
	case MANIFEST_SEAMS: return manifest_add_seam(m);
	case MANIFEST_N_LISTS: break;
	}
	return NULL;
}

/* Takes "0x" and up to 16 lower-case digits without leading zeros from *S. */
static bool take_hex(const char **s, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *first;
	uint64_t v = 0;

	if (strncmp(*s, "0x", 2) != 0)
		return false;
	*s += 2;
	for (first = *s; **s && strchr(digits, **s); (*s)++) {
		if (*s - first == 16)
			return false;
		v = v << 4 | (uint64_t)(strchr(digits, **s) - digits);
	}
	*ret = v;
	return *s > first && (*first != '0' || *s == first + 1);
}

int manifest_pieces_parse(const char *text, struct manifest_piece **ret, size_t *ret_n)
{
	CLEANUP_FREE struct manifest_piece *pieces = NULL;
	uint64_t end = 0;
	size_t n = 1;

	for (const char *at = text; *at; at++)
		n += *at == ',';
	if (n > MANIFEST_MAX_PIECES)
		return -E2BIG;
	pieces = calloc(n, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct manifest_piece *p = &pieces[i];

		if (!take_hex(&text, &p->offset) || *text++ != '+' || !take_hex(&text, &p->size))
			return -EBADMSG;
		/* Between two pieces is a gap. */
		if (p->size == 0 || (i > 0 && p->offset <= end))
			return -EBADMSG;
		if (__builtin_add_overflow(p->offset, p->size, &end) || end > INT64_MAX)
			return -EBADMSG;
		if (*text++ != (i + 1 < n ? ',' : '\0'))
			return -EBADMSG;
	}
	*ret = TAKE_PTR(pieces);
	*ret_n = n;
	return 0;
}

/* ",0x" and "+0x" with 16 digits each. */
#define PIECE_TEXT 38u

int manifest_pieces_format(const struct manifest_piece *pieces, size_t n, char **ret)
{
	char *text = malloc(n * PIECE_TEXT + 1);
	size_t used = 0;

	if (!text)
		return -ENOMEM;
	text[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		assert(i == 0 || pieces[i].offset > pieces[i - 1].offset + pieces[i - 1].size);
		used += (size_t)snprintf(text + used, PIECE_TEXT + 1, "%s0x%" PRIx64 "+0x%" PRIx64,
					 i > 0 ? "," : "", pieces[i].offset, pieces[i].size);
	}
	*ret = text;
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct manifest_piece *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

size_t manifest_pieces_join(struct manifest_piece *pieces, size_t n)
{
	size_t valid = 0, kept = 0;
	uint64_t end;

	for (size_t i = 0; i < n; i++)
		if (pieces[i].size > 0 &&
		    !__builtin_add_overflow(pieces[i].offset, pieces[i].size, &end) &&
		    end <= INT64_MAX)
			pieces[valid++] = pieces[i];
	if (valid == 0)
		return 0;
	qsort(pieces, valid, sizeof(*pieces), by_offset);
	for (size_t i = 1; i < valid; i++) {
		struct manifest_piece *last = &pieces[kept];

		if (pieces[i].offset > last->offset + last->size)
			pieces[++kept] = pieces[i];
		else
			last->size = MAX_OF(last->offset + last->size,
					    pieces[i].offset + pieces[i].size) -
				     last->offset;
	}
	return kept + 1;
}
