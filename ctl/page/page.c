/*
 * Items of a call stream to records of the page.
 */
#include "ctl/page/page.h"

#include <assert.h>
#include <string.h>

#include "proto/base.h"
#include "proto/memfd.h"

#include "ctl/page/page_private.h"

enum record {
	RECORD_TITLE = 1,
	RECORD_HEAD,
	RECORD_THREAD,
	RECORD_FUNCTION,
	RECORD_LANE,
	RECORD_ON,
	RECORD_OFF,
	RECORD_GAP,
	RECORD_MARK,
	RECORD_END,
	RECORD_LOOKED,
	RECORD_SUSPECT,
	RECORD_OCCASION,
	RECORD_BEGIN = 0x10,
	RECORD_FINISH = 0x20,
	RECORD_HAS_WIDTH = 8,
};

/* What was written of a thread. */
struct lane {
	uint64_t last;	 /* time of the last event */
	uint64_t hidden; /* frames that are open and left out; they are the innermost ones */
	uint32_t depth;	 /* frames that are open and shown */
};

struct page {
	struct pack pack;
	struct lane *lanes; /* by the thread's number */
	size_t n_lanes, lanes_capacity;
	uint64_t first, max_frames;
	uint32_t thread, cpu; /* of the last RECORD_LANE */
	bool has_head, has_lane, ended;
	struct page_told told;
};

int page_new(int fd, const char *title, uint64_t max_frames, struct page **ret)
{
	struct page *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	r = pack_init(&p->pack, fd);
	if (r < 0) {
		free(p);
		return r;
	}
	p->max_frames = max_frames;
	r = memfd_write_all(fd, page_web_head, strlen(page_web_head));
	if (r < 0) {
		page_freep(&p);
		return r;
	}
	pack_byte(&p->pack, RECORD_TITLE);
	pack_text(&p->pack, title);
	*ret = p;
	return 0;
}

void page_freep(struct page **p)
{
	if (!*p)
		return;
	pack_done(&(*p)->pack);
	free((*p)->lanes);
	free(*p);
	*p = NULL;
}

static int find_lane(struct page *p, uint32_t thread, struct lane **ret)
{
	if (thread > PAGE_MAX_NUMBER)
		return -EBADMSG;
	if (ARRAY_RESERVE(p->lanes, p->lanes_capacity, (size_t)thread + 1) < 0)
		return -ENOMEM;
	while (p->n_lanes <= thread)
		p->lanes[p->n_lanes++] = (struct lane){.last = p->first};
	*ret = &p->lanes[thread];
	return 0;
}

/* Says which thread and CPU the next record belongs to. */
static void put_lane(struct page *p, const struct callstream_item *item)
{
	if (p->has_lane && p->thread == item->thread && p->cpu == item->cpu)
		return;
	pack_byte(&p->pack, RECORD_LANE);
	pack_number(&p->pack, item->thread);
	pack_number(&p->pack, item->cpu);
	p->has_lane = true;
	p->thread = item->thread;
	p->cpu = item->cpu;
}

/* Writes the time of ITEM as the distance from the lane's last event. */
static void put_delta(struct page *p, struct lane *lane, const struct callstream_item *item)
{
	uint64_t time = item->time;

	if (time < lane->last) {
		p->told.repaired++;
		time = lane->last;
	}
	pack_number(&p->pack, time - lane->last);
	lane->last = time;
}

static void put_frame(struct page *p, struct lane *lane, const struct callstream_item *item,
		      uint8_t record, uint64_t what)
{
	put_lane(p, item);
	pack_byte(&p->pack, item->width > 0 ? record | RECORD_HAS_WIDTH : record);
	put_delta(p, lane, item);
	pack_number(&p->pack, what);
	if (item->width > 0)
		pack_number(&p->pack, item->width);
}

static void take_begin(struct page *p, struct lane *lane, const struct callstream_item *item)
{
	if (lane->hidden > 0 || lane->depth == PAGE_MAX_DEPTH || p->told.frames == p->max_frames) {
		lane->hidden++;
		p->told.left_out++;
		return;
	}
	lane->depth++;
	p->told.frames++;
	put_frame(p, lane, item, (uint8_t)(RECORD_BEGIN + item->begin), item->function);
}

static void take_finish(struct page *p, struct lane *lane, const struct callstream_item *item)
{
	if (lane->hidden > 0) {
		lane->hidden--;
		return;
	}
	if (lane->depth == 0) {
		p->told.repaired++;
		return;
	}
	lane->depth--;
	put_frame(p, lane, item, (uint8_t)(RECORD_FINISH + item->end), item->insns);
}

static void take_switch(struct page *p, struct lane *lane, const struct callstream_item *item)
{
	bool on = item->kind == CALLSTREAM_ON;

	put_lane(p, item);
	pack_byte(&p->pack, on ? RECORD_ON : RECORD_OFF);
	put_delta(p, lane, item);
	if (!on)
		pack_number(&p->pack, (uint64_t)item->why);
}

/* Gaps and marks may be of no thread, and then have no order: their times count from the first. */
static void put_since_first(struct page *p, uint64_t time)
{
	if (time < p->first)
		p->told.repaired++;
	pack_number(&p->pack, time < p->first ? 0 : time - p->first);
}

static void take_gap(struct page *p, const struct callstream_item *item)
{
	put_lane(p, item);
	pack_byte(&p->pack, RECORD_GAP);
	put_since_first(p, item->time);
	pack_number(&p->pack, item->width);
	pack_text(&p->pack, item->name);
}

static void take_mark(struct page *p, const struct callstream_item *item)
{
	/* The page has no counters. */
	if (strcmp(item->name, "ipc") == 0)
		return;
	put_lane(p, item);
	pack_byte(&p->pack, RECORD_MARK);
	put_since_first(p, item->time);
	pack_two(&p->pack, item->value);
	pack_text(&p->pack, item->name);
}

static void take_head(struct page *p, const struct callstream_item *item)
{
	p->has_head = true;
	p->first = item->time;
	pack_byte(&p->pack, RECORD_HEAD);
	pack_number(&p->pack, item->time);
	pack_number(&p->pack, item->width);
	pack_number(&p->pack, item->value);
}

static void take_thread(struct page *p, const struct callstream_item *item)
{
	pack_byte(&p->pack, RECORD_THREAD);
	pack_number(&p->pack, item->thread);
	pack_number(&p->pack, item->pid);
	pack_number(&p->pack, item->tid);
	pack_text(&p->pack, item->name);
}

static void take_function(struct page *p, const struct callstream_item *item)
{
	pack_byte(&p->pack, RECORD_FUNCTION);
	pack_number(&p->pack, item->function);
	pack_two(&p->pack, item->address);
	pack_text(&p->pack, item->name);
	pack_text(&p->pack, item->image);
	pack_text(&p->pack, item->file);
	pack_number(&p->pack, item->line);
}

int page_take(struct page *p, const struct callstream_item *item)
{
	struct lane *lane;
	int r;

	if (p->ended || p->has_head == (item->kind == CALLSTREAM_HEAD) ||
	    item->function > PAGE_MAX_NUMBER)
		return -EBADMSG;
	r = find_lane(p, item->thread, &lane);
	if (r < 0)
		return r;
	switch (item->kind) {
	case CALLSTREAM_HEAD:
		take_head(p, item);
		lane->last = p->first;
		break;
	case CALLSTREAM_THREAD: take_thread(p, item); break;
	case CALLSTREAM_FUNCTION: take_function(p, item); break;
	case CALLSTREAM_BEGIN: take_begin(p, lane, item); break;
	case CALLSTREAM_FINISH: take_finish(p, lane, item); break;
	case CALLSTREAM_ON:
	case CALLSTREAM_OFF: take_switch(p, lane, item); break;
	case CALLSTREAM_GAP: take_gap(p, item); break;
	case CALLSTREAM_MARK: take_mark(p, item); break;
	case CALLSTREAM_END:
		p->ended = true;
		p->told.cut = item->cut;
		break;
	case CALLSTREAM_KINDS_N: return -EBADMSG;
	}
	return p->pack.error;
}

int page_set_occasion(struct page *p, const char *text)
{
	if (!p->has_head)
		return -ENODATA;
	pack_byte(&p->pack, RECORD_OCCASION);
	pack_text(&p->pack, text);
	return p->pack.error;
}

int page_looked(struct page *p)
{
	if (!p->has_head)
		return -ENODATA;
	pack_byte(&p->pack, RECORD_LOOKED);
	return p->pack.error;
}

/* What is known of the place of a suspect. */
enum { PLACE_TIME = 1, PLACE_THREAD = 2, PLACE_CPU = 4 };

int page_add_suspect(struct page *p, const struct page_suspect *s)
{
	const uint64_t from = MAX_OF(s->from, p->first), to = MAX_OF(s->to, from);
	/* What ended before the first time has no place here. */
	const bool has_time = s->has_time && s->to >= p->first;

	if (!p->has_head)
		return -ENODATA;
	pack_byte(&p->pack, RECORD_SUSPECT);
	pack_number(&p->pack, (has_time ? PLACE_TIME : 0u) | (s->has_tid ? PLACE_THREAD : 0u) |
				      (s->has_cpu ? PLACE_CPU : 0u));
	pack_number(&p->pack, has_time ? from - p->first : 0);
	pack_number(&p->pack, has_time ? to - p->first : 0);
	pack_number(&p->pack, s->has_tid ? s->tid : 0);
	pack_number(&p->pack, s->has_cpu ? s->cpu : 0);
	pack_text(&p->pack, s->kind);
	pack_text(&p->pack, s->text);
	pack_text(&p->pack, s->function);
	return p->pack.error;
}

int page_finish(struct page *p, struct page_told *told)
{
	int r;

	if (!p->has_head)
		return -ENODATA;
	if (p->ended) {
		pack_byte(&p->pack, RECORD_END);
		pack_number(&p->pack, p->told.frames);
		pack_number(&p->pack, p->told.cut);
		pack_number(&p->pack, p->told.left_out);
		pack_number(&p->pack, p->told.repaired);
	}
	r = pack_finish(&p->pack);
	if (r == 0)
		r = memfd_write_all(p->pack.fd, page_web_tail, strlen(page_web_tail));
	if (r == 0 && told)
		*told = p->told;
	return r;
}
