/*
 * Packets as ptdump writes them, with its columns and messages. Called by views_packets.c.
 */
#include "decoder/worker/view/packet_line.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/base.h"
#include "proto/decode_options.h"
#include "proto/perf/ptpacket.h"

void packet_line_init(struct packet_line *pl, uint64_t show, const struct estimate_config *config,
		      struct lines *l)
{
	*pl = (struct packet_line){.lines = l, .show = show};
	pl->timed = show & (WORKER_SHOW_TIME | WORKER_SHOW_TCAL);
	estimate_init(&pl->estimate, config);
}

void packet_line_reset(struct packet_line *pl)
{
	estimate_reset(&pl->estimate);
	pl->last_tsc = pl->last_length = pl->ip = 0;
	pl->have_ip = false;
}

void packet_line_say(const struct packet_line *pl, uint64_t offset, const char *what,
		     const char *why)
{
	if (!pl->hidden)
		lines_print(pl->lines, "[%" PRIx64 ": %s%s%s]\n", offset, what,
			    why != NULL ? ": " : "", why != NULL ? why : "");
}

static void say_fault(const struct packet_line *pl, uint64_t offset, const char *what,
		      enum estimate_fault fault)
{
	if (fault != ESTIMATE_OK)
		packet_line_say(pl, offset, what, estimate_text(fault));
}

static void describe_time(struct packet_line *pl, uint64_t offset, struct packet_text *t)
{
	uint64_t tsc, last = pl->last_tsc;
	enum estimate_fault fault = estimate_tsc(&pl->estimate, &tsc);

	snprintf(t->key, sizeof(t->key), "tsc");
	if (fault != ESTIMATE_OK && !(pl->show & WORKER_SHOW_NO_WALL_CLOCK)) {
		say_fault(pl, offset, "error printing time", fault);
		snprintf(t->value, sizeof(t->value), "<unavailable>");
	} else if (!(pl->show & WORKER_SHOW_TIME_DELTA)) {
		snprintf(t->value, sizeof(t->value), "%016" PRIx64, tsc);
	} else {
		snprintf(t->value, sizeof(t->value), "%c%" PRIx64, tsc >= last ? '+' : '-',
			 tsc >= last ? tsc - last : last - tsc);
		pl->last_tsc = tsc;
	}
}

static void describe_length(struct packet_line *pl, uint64_t offset, struct packet_text *t)
{
	const double unit = 1 << ESTIMATE_SHIFT;
	uint64_t length, last = pl->last_length;
	enum estimate_fault fault = estimate_length(&pl->estimate, &length);

	snprintf(t->key, sizeof(t->key), "fcr");
	if (fault != ESTIMATE_OK) {
		say_fault(pl, offset, "error printing time", fault);
		snprintf(t->value, sizeof(t->value), "<unavailable>");
	} else if (!(pl->show & WORKER_SHOW_TIME_DELTA)) {
		snprintf(t->value, sizeof(t->value), "%.3f", (double)length / unit);
	} else {
		snprintf(t->value, sizeof(t->value), "%+.3f",
			 (double)length / unit - (double)last / unit);
		pl->last_length = length;
	}
}

static void say_faults(const struct packet_line *pl, uint64_t offset,
		       const struct estimate_faults *f)
{
	say_fault(pl, offset, "calibration error", f->length);
	say_fault(pl, offset, "error calibrating time", f->calibration);
	say_fault(pl, offset, "error updating time", f->point);
	if (f->uncalibrated)
		packet_line_say(pl, offset, "error updating time: no calibration", NULL);
}

static bool is_timing(const struct packet_line *pl, const struct packet *p)
{
	switch (p->type) {
	case PACKET_TSC:
	case PACKET_CBR:
	case PACKET_TMA:
	case PACKET_MTC: return true;
	case PACKET_CYC: return !(pl->show & WORKER_SHOW_NO_CYC);
	default: return false;
	}
}

/* A CBR does not move the time, CYC and TMA do not measure cycles. */
static void track_time(struct packet_line *pl, const struct packet *p, uint64_t offset,
		       struct packet_text *t)
{
	struct estimate_faults faults = estimate_packet(&pl->estimate, p);
	uint64_t tsc;

	if (!is_timing(pl, p))
		return;
	say_faults(pl, offset, &faults);
	if ((pl->show & WORKER_SHOW_TCAL) && p->type != PACKET_TMA && p->type != PACKET_CYC)
		describe_length(pl, offset, t);
	if ((pl->show & WORKER_SHOW_TIME) && p->type != PACKET_CBR)
		describe_time(pl, offset, t);
	estimate_tsc(&pl->estimate, &tsc);
	if (!pl->hidden)
		pevent_until(pl->pevent, tsc);
}

static void track_ip(struct packet_line *pl, const struct packet *p, struct packet_text *t)
{
	uint64_t ip;
	bool known = packet_ip(p, &pl->ip, &ip);

	pl->have_ip |= known;
	if (!(pl->show & WORKER_SHOW_LASTIP))
		return;
	snprintf(t->key, sizeof(t->key), "ip");
	if (known)
		snprintf(t->value, sizeof(t->value), "%016" PRIx64, ip);
	else
		snprintf(t->value, sizeof(t->value),
			 pl->have_ip ? "<suppressed>" : "<unavailable>");
}

static void describe_mode(const struct packet *p, struct packet_text *t)
{
	static const char *const modes[] = {"16-bit", "64-bit", "32-bit", "unknown"};

	snprintf(t->key, sizeof(t->key), "em");
	snprintf(t->value, sizeof(t->value), "%s",
		 modes[p->u.mode.bits & (PT_MODE_EXEC_CSL | PT_MODE_EXEC_CSD)]);
}

static bool is_hidden(const struct packet_line *pl, const struct packet *p)
{
	uint64_t hides = WORKER_SHOW_QUIET;

	switch (p->type) {
	case PACKET_PAD: hides |= WORKER_SHOW_NO_PAD; break;
	case PACKET_CYC: hides |= WORKER_SHOW_NO_CYC | WORKER_SHOW_NO_TIMING; break;
	case PACKET_TSC:
	case PACKET_CBR:
	case PACKET_TMA:
	case PACKET_MTC: hides |= WORKER_SHOW_NO_TIMING; break;
	default: break;
	}
	return pl->hidden || (pl->show & hides) != 0;
}

static void put(const struct packet_line *pl, const struct packet *p, const uint8_t *bytes,
		uint64_t offset, const struct packet_text *t)
{
	char text[192];
	size_t n = 0;

	if (!(pl->show & WORKER_SHOW_NO_OFFSET))
		n = (size_t)snprintf(text, sizeof(text), "%016" PRIx64 "  ", offset);
	if (pl->show & WORKER_SHOW_RAW) {
		size_t begin = n;

		for (size_t i = 0; i < p->size && i < PT_MAX_PACKET; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", bytes[i]);
		while (n < begin + 2 * PT_MAX_PACKET + 2)
			text[n++] = ' ';
	}
	n += packet_columns(p, t, text + n, sizeof(text) - n);
	text[n++] = '\n';
	lines_text(pl->lines, text, n);
}

void packet_line_write(struct packet_line *pl, const struct packet *p, const uint8_t *bytes,
		       uint64_t offset)
{
	struct packet_text t;

	packet_describe(p, &t);
	switch (p->type) {
	case PACKET_FUP:
	case PACKET_TIP:
	case PACKET_TIP_PGE:
	case PACKET_TIP_PGD: track_ip(pl, p, &t); break;
	case PACKET_MODE_EXEC:
		if (pl->show & WORKER_SHOW_EXEC_MODE)
			describe_mode(p, &t);
		break;
	default: break;
	}
	if (pl->timed || pl->pevent != NULL)
		track_time(pl, p, offset, &t);
	if (!is_hidden(pl, p))
		put(pl, p, bytes, offset, &t);
}
