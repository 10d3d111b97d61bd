/*
 * All that a bundle holds, loaded, and its CPUs walked together. Called by decode.c in
 * ptsnap-decode.
 *
 * Each CPU is walked on its own (walk.c), in batches; the one whose next piece belongs to the
 * earliest turn goes on, up to where another one is earlier. A thread has one turn at a time, so
 * its pieces come in order. One that cannot tell whose its next piece is waits for those that are
 * behind it, and has to make do when there are none.
 */
#include "decoder/worker/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/worker/walk.h"
#include "proto/base.h"
#include "sideband/elf.h"

/* Mappings, in search of the only thread with code. */
#define MAX_LOOKS 65536u

int replay_find(const struct replay *r, uint32_t context, uint64_t address, struct image_code *ret)
{
	const struct context *c = &r->contexts.list[context];

	assert(context < r->contexts.n);
	if (c->space == NULL)
		return IMAGE_UNMAPPED;
	return image_find(r->images, c->space, c->time, address, ret);
}

/* The walks that are not done. */
struct group {
	struct walk **list;
	size_t n;
};

/* The one that has to go on, and in *ret_limit up to where before another one has to. */
static struct walk *first_of(const struct group *g, uint64_t *ret_limit)
{
	struct walk *first = NULL;
	uint64_t least = UINT64_MAX;
	size_t i;

	*ret_limit = UINT64_MAX;
	for (i = 0; i < g->n; i++) {
		uint64_t at = walk_at(g->list[i]);

		if (first != NULL && at >= least) {
			*ret_limit = MIN_OF(*ret_limit, at);
			continue;
		}
		*ret_limit = least;
		least = at;
		first = g->list[i];
	}
	return first;
}

static void leave(struct group *g, const struct walk *w)
{
	size_t i, n = 0;

	for (i = 0; i < g->n; i++)
		if (g->list[i] != w)
			g->list[n++] = g->list[i];
	g->n = n;
}

static int go_together(struct group *g)
{
	while (g->n > 0) {
		uint64_t limit;
		struct walk *w = first_of(g, &limit);
		int r = walk_on(w, limit);

		if (r == WALK_DONE)
			leave(g, w);
		else if (r != 0)
			return r;
	}
	return 0;
}

/* The first one's flow keeps the code for all, so it goes last. */
static void free_walks(struct walk **walks, size_t n)
{
	while (n-- > 0)
		walk_free(walks[n]);
}

/* CPUs [FIRST, FIRST + N) of the manifest; STATS for each, may be NULL. */
static int replay_some(struct replay *r, size_t first, size_t n,
		       const struct replay_consumer *consumer, struct flow_stats *stats)
{
	CLEANUP_FREE struct walk **walks = calloc(n + 1, sizeof(struct walk *));
	CLEANUP_FREE struct walk **left = calloc(n + 1, sizeof(struct walk *));
	struct group group = {.list = left};
	int result = walks == NULL || left == NULL ? -ENOMEM : 0;
	size_t i;

	for (i = 0; i < n && result == 0; i++) {
		turns_forget(&r->turns, first + i);
		result = walk_new(r, first + i, consumer, walks[0], &walks[i]);
		left[i] = walks[i];
		group.n += result == 0;
	}
	if (result == 0)
		result = go_together(&group);
	for (i = 0; i < n && stats != NULL; i++)
		stats[i] = walks != NULL && walks[i] != NULL ? *walk_stats(walks[i])
							     : (struct flow_stats){0};
	if (walks != NULL)
		free_walks(walks, n);
	return result;
}

int replay_all(struct replay *r, const struct replay_consumer *consumer)
{
	return replay_some(r, 0, r->manifest->n_cpus, consumer, consumer->stats);
}

int replay_cpu(struct replay *r, size_t index, const struct replay_consumer *consumer,
	       struct flow_stats *ret)
{
	return replay_some(r, index, 1, consumer, ret);
}

static unsigned int hex_digit(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The manifest's text was checked: whole bytes, lower case, at most 20. */
static void take_build_id(struct image_source *to, const char *text)
{
	size_t i;

	for (i = 0; text != NULL && text[2 * i] != '\0' && i < sizeof(to->build_id); i++)
		to->build_id[i] =
			(uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
	to->build_id_size = text != NULL ? (uint8_t)i : 0;
}

/* The recorder opens by path what the records know by build id; it does not read files. */
static int check_build_id(struct image_source *to)
{
	struct elf_file *f;
	const uint8_t *id;
	size_t size;
	int r;

	if (to->build_id_size == 0 || to->bytes == NULL)
		return 0;
	r = elf_file_new(to->bytes, to->size, &f);
	if (r < 0)
		return r;
	id = r == 0 ? elf_file_build_id(f, &size) : NULL;
	if (id == NULL || size != to->build_id_size || memcmp(id, to->build_id, size) != 0) {
		to->bytes = NULL;
		to->mismatch = true;
		to->missing = "the file has another build id than what was mapped";
	}
	if (r == 0)
		elf_file_free(f);
	return 0;
}

static int collect_images(struct replay *r)
{
	const struct manifest *m = r->manifest;
	CLEANUP_FREE struct image_source *sources = calloc(m->n_images + 1, sizeof(*sources));
	size_t i;
	int result = 0;

	if (sources == NULL)
		return -ENOMEM;
	for (i = 0; i < m->n_images && result == 0; i++) {
		const struct manifest_image *from = &m->images[i];
		struct image_source *to = &sources[i];

		*to = (struct image_source){
			.path = from->path,
			.maj = from->maj,
			.min = from->min,
			.ino = from->ino,
			.ino_generation = from->ino_generation,
			.offset = from->offset,
			.missing = from->missing,
		};
		to->bytes = bundle_image(r->bundle, i, &to->size);
		take_build_id(to, from->build_id);
		result = check_build_id(to);
	}
	return result < 0 ? result : image_set_new(sources, m->n_images, &r->images);
}

/* 1: it is code; 2: enough was looked at. */
static int find_code(void *userdata, const struct space_mapping *m)
{
	size_t *budget = userdata;

	if (*budget == 0)
		return 2;
	(*budget)--;
	return (m->prot & PROT_EXEC) != 0;
}

/* The only one whose code is known, or *ret_shared: one of the only process. NULL: there are more,
 * or too many to look at. */
static const struct timeline_thread *only_thread(const struct replay *r, bool *ret_shared)
{
	const struct timeline_thread *only = NULL;
	size_t i, budget = MAX_LOOKS;

	for (i = 0; i < timeline_n_threads(r->timeline); i++) {
		const struct timeline_thread *thread = timeline_thread(r->timeline, i);
		const struct space *space = timeline_space(r->timeline, thread->pid, SPACE_NOW - 1);
		int found =
			space == NULL ? 0 : space_foreach(space, SPACE_NOW - 1, find_code, &budget);

		if (found == 2 || (found == 1 && only != NULL && only->pid != thread->pid))
			return NULL;
		if (found == 1) {
			*ret_shared = only != NULL;
			only = thread;
		}
	}
	return only;
}

/* Nothing tells when who ran on that CPU. */
static bool is_untold(const struct replay *r, const struct manifest_cpu *cpu)
{
	return !r->manifest->have_clock || timeline_n_turns(r->timeline, cpu->cpu) == 0;
}

/* A thread's own trace is always its own. A CPU's is that of the only thread, if there is one and
 * nothing tells more. */
static int load_turn(struct replay *r, size_t index)
{
	const struct manifest_cpu *cpu = &r->manifest->cpus[index];
	const struct timeline_thread *thread = NULL;
	bool shared = false;

	if (cpu->tid != MANIFEST_ANY)
		thread = timeline_last_thread(r->timeline, cpu->tid);
	else if (is_untold(r, cpu))
		thread = only_thread(r, &shared);
	if (shared)
		r->process = thread;
	if (thread != NULL && !shared)
		return turns_give(&r->turns, index, thread);
	return turns_load(&r->turns, index, r->timeline, cpu->cpu);
}

static int load_turns(struct replay *r)
{
	const struct manifest *m = r->manifest;
	int result = turns_init(&r->turns, m->n_cpus);
	size_t i;

	for (i = 0; i < m->n_cpus && result == 0; i++)
		result = load_turn(r, i);
	return result == 0 ? turns_link(&r->turns) : result;
}

static int load(struct replay *r)
{
	size_t size;
	const uint8_t *records = bundle_sideband(r->bundle, &size);
	int result = timeline_load(records, size, &r->timeline, &r->bad_records);

	if (result == 0)
		result = collect_images(r);
	if (result == 0)
		result = symbols_new(r->images, &r->symbols);
	if (result == 0)
		result = contexts_init(&r->contexts);
	if (result == 0)
		result = load_turns(r);
	return result;
}

int replay_new(const struct bundle *bundle, struct replay **ret)
{
	struct replay *r = calloc(1, sizeof(*r));
	int result;

	if (r == NULL)
		return -ENOMEM;
	r->bundle = bundle;
	r->manifest = bundle_manifest(bundle);
	tscmap_init(&r->clock, r->manifest);
	result = load(r);
	if (result != 0) {
		replay_free(r);
		return result;
	}
	*ret = r;
	return 0;
}

void replay_free(struct replay *r)
{
	if (r == NULL)
		return;
	symbols_free(r->symbols);
	image_set_free(r->images);
	timeline_free(r->timeline);
	contexts_done(&r->contexts);
	turns_done(&r->turns);
	free(r);
}

void replay_freep(struct replay **r)
{
	replay_free(*r);
}
