/*
 * Loads the dumps of just-in-time compilers, and brings their times to the perf clock.
 *
 * A dump's times are of CLOCK_MONOTONIC or of the TSC. The manifest has one moment in all clocks,
 * the trigger. The farther from it, the less is known, as CLOCK_MONOTONIC is slewed and the perf
 * clock is not.
 */
#include "decoder/worker/replay/replay_private.h"

#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* The kernel slews a clock by 500 ppm at most (include/linux/timex.h, MAXFREQ). */
#define SLEW 2000u
/* The clocks are not read at once; ns. */
#define READING 1000u

struct dump_clock {
	const struct replay *replay;
	bool tsc, same;		  /* SAME: the perf clock is CLOCK_MONOTONIC */
	uint64_t monotonic, perf; /* ns, at one moment */
};

static void tsc_to_ns(const struct dump_clock *c, uint64_t time, uint64_t *ret_lo, uint64_t *ret_hi)
{
	const struct tscmap *map = &c->replay->clock;
	uint64_t ns = tscmap_ns(map, time & PT_TSC_MASK), slack = TSCMAP_SLACK_NS + map->doubt;

	if (ns == MANIFEST_ABSENT)
		ns = 0;
	*ret_lo = ns > slack ? ns - slack : 0;
	*ret_hi = ns < UINT64_MAX - slack ? ns + slack : UINT64_MAX;
}

static void to_ns(void *userdata, uint64_t time, uint64_t *ret_lo, uint64_t *ret_hi)
{
	const struct dump_clock *c = userdata;
	bool before = time < c->monotonic;
	uint64_t distance = before ? c->monotonic - time : time - c->monotonic, slack, ns;

	if (c->tsc) {
		tsc_to_ns(c, time, ret_lo, ret_hi);
		return;
	}
	*ret_lo = *ret_hi = time;
	if (c->same)
		return;
	slack = READING + c->replay->clock.doubt + distance / SLEW;
	if (before)
		ns = c->perf > distance ? c->perf - distance : 0;
	else
		ns = distance < UINT64_MAX - c->perf ? c->perf + distance : UINT64_MAX;
	*ret_lo = ns > slack ? ns - slack : 0;
	*ret_hi = ns < UINT64_MAX - slack ? ns + slack : UINT64_MAX;
}

/* False: nothing says how the dump's clock and the perf clock are related. */
static bool find_clock(const struct replay *r, const struct jitdump *dump, struct dump_clock *ret)
{
	const struct manifest *m = r->manifest;

	*ret = (struct dump_clock){.replay = r, .tsc = jitdump_has_tsc(dump)};
	if (ret->tsc)
		return r->clock.known;
	ret->same = !m->have_clock && m->clock_is_monotonic;
	ret->monotonic = m->monotonic_ns;
	ret->perf = m->perf_ns;
	if (r->clock.known && m->tsc != MANIFEST_ABSENT)
		ret->perf = tscmap_ns(&r->clock, m->tsc & PT_TSC_MASK);
	return ret->same || (ret->monotonic != MANIFEST_ABSENT && ret->perf != MANIFEST_ABSENT);
}

static int make_code(const struct replay *r, const struct manifest_image *image,
		     const struct jitdump *dump, struct jitcode **ret)
{
	struct dump_clock clock;
	const struct jitcode_clock how = {.ns = to_ns,
					  .userdata = &clock,
					  .begin = r->begin_ns,
					  .complete = image->read_ns == MANIFEST_ABSENT};

	*ret = NULL;
	return find_clock(r, dump, &clock) ? jitcode_new(dump, &how, ret) : 0;
}

static int load_dump(struct replay *r, uint32_t number)
{
	const struct manifest_image *image = &r->manifest->images[number];
	uint64_t time = image->read_ns == MANIFEST_ABSENT ? SPACE_NOW - 1 : image->read_ns;
	const struct image_source *source = image_source(r->images, number);
	uint64_t size = source->file_size ? source->file_size : source->size;
	const struct space *space = timeline_space(r->timeline, image->pid, time);
	const uint8_t *bytes = space && size > 0 ? image_need(r->images, number, 0, size) : NULL;
	struct jitdump *dump;
	struct jitcode *code;
	int result;

	if (!bytes)
		return 0;
	result = jitdump_new(bytes, (size_t)size, &dump);
	if (result != 0)
		return result == JITDUMP_NOT ? 0 : result;
	result = make_code(r, image, dump, &code);
	if (result < 0) {
		jitdump_free(dump);
		return result;
	}
	result = image_add_jit(r->images, number, image->pid, space, dump, code);
	return result == 0 ? symbols_add_dump(r->symbols, image->pid, dump) : result;
}

int replay_dumps_load(struct replay *r)
{
	int result = 0;

	for (uint32_t i = 0; i < r->manifest->n_images && result == 0; i++)
		if (image_source(r->images, i)->dump)
			result = load_dump(r, i);
	return result;
}
