/*
 * The software PMU of a whole machine: far transfers, address ranges, address spaces, events and
 * sleep. Which packets each has: SDM volume 3, "Packet Generation Scenarios", and the packets' own
 * sections.
 */
#include "capture/emu/machine/pmu_private.h"

#define C1 1u /* the C-state of HLT */

static bool is_in(const struct emupmu *p, enum emupmu_range_kind kind, uint64_t ip)
{
	for (unsigned int i = 0; p->with_ranges && i < EMUPMU_RANGES; i++)
		if (p->ranges[i].kind == kind && ip >= p->ranges[i].from && ip <= p->ranges[i].to)
			return true;
	return false;
}

static bool has_filter(const struct emupmu *p)
{
	for (unsigned int i = 0; p->with_ranges && i < EMUPMU_RANGES; i++)
		if (p->ranges[i].kind == EMUPMU_FILTER)
			return true;
	return false;
}

/* The effect of a taken branch or an event that leads to IP. CONTEXT: ContextEn behind it. */
struct landing {
	bool stops;   /* TraceStop */
	bool goes_on; /* PacketEn, but for BranchEn */
};

static struct landing land(const struct emupmu *p, bool context, uint64_t ip)
{
	const bool stops = p->s->enabled && context && is_in(p, EMUPMU_TRACESTOP, ip);

	return (struct landing){
		.stops = stops,
		.goes_on = context && !stops && (!has_filter(p) || is_in(p, EMUPMU_FILTER, ip)),
	};
}

/* A TraceStop that is met during an overflow is told behind it. */
static void trace_stop(struct emupmu *p)
{
	if (p->s->encode.dropping)
		emupmu_resolve_overflow(p, p->s->now, NULL);
	encode_tracestop(&p->encoder);
	p->s->enabled = 0;
	p->s->stopped = 1;
	emupmu_publish(p);
}

/* The transfer begins and ends in traced code: FUP, MODE.Exec, TIP. */
static void stay(struct emupmu *p, const uint64_t *from, const struct emupmu_place *to)
{
	if (!p->branches)
		return;
	emupmu_flush(p);
	if (from)
		encode_ip(&p->encoder, PT_OPC_FUP, *from);
	if (!p->s->mode_known)
		emupmu_write_mode(p);
	encode_ip(&p->encoder, PT_OPC_TIP, to->ip);
	emupmu_after_packet(p);
}

/* The place of an event is that of the branch behind it. Without such a branch, the CFE has a FUP
 * of its own. */
static void tell_event(struct emupmu *p, const struct emupmu_cause *c)
{
	const bool alone = !p->s->flowing || !p->branches;

	emupmu_flush(p);
	if (c->page_fault)
		encode_evd_cr2(&p->encoder, c->cr2);
	encode_cfe(&p->encoder, c->type, c->vector, alone);
	if (alone)
		encode_ip(&p->encoder, PT_OPC_FUP, c->at);
}

static void take_mode(struct emupmu *p, uint8_t mode)
{
	const uint32_t not_64bit = mode ^ PT_MODE_EXEC_CSL;

	if (p->s->not_64bit != not_64bit)
		p->s->mode_known = 0;
	p->s->not_64bit = not_64bit;
}

void emupmu_transfer(struct emupmu *p, const uint64_t *from, const struct emupmu_place *to,
		     const struct emupmu_cause *cause)
{
	const bool context = to->kernel ? p->os : p->user;
	const struct landing l = land(p, context, to->ip);
	const bool ends = p->s->flowing && !l.goes_on;

	if (ends)
		emupmu_now(p);
	if (cause && p->events && p->s->enabled && p->s->context)
		tell_event(p, cause);
	if (ends)
		emupmu_end(p, from, context ? &to->ip : NULL);
	p->s->context = context;
	take_mode(p, to->mode);
	if (p->s->flowing)
		stay(p, from, to);
	else if (l.goes_on)
		emupmu_enter(p, to->ip);
	if (l.stops)
		trace_stop(p);
}

bool emupmu_crosses(struct emupmu *p, uint64_t ip, bool named, bool direct)
{
	const struct landing l = land(p, p->s->context, ip);

	if (p->s->flowing && l.goes_on)
		return false;
	if (p->s->flowing) {
		emupmu_now(p);
		emupmu_end(p, NULL,
			   named && !(direct && emupmu_errs(p, EMUPMU_SKL014)) ? &ip : NULL);
	} else if (l.goes_on) {
		emupmu_enter(p, ip);
	}
	if (l.stops)
		trace_stop(p);
	return true;
}

void emupmu_cr3(struct emupmu *p, uint64_t cr3)
{
	p->s->cr3 = cr3;
	if (!p->s->enabled || !p->os || !p->s->context)
		return;
	emupmu_flush(p);
	encode_pip(&p->encoder, cr3);
	emupmu_after_packet(p);
}

void emupmu_iflag(struct emupmu *p, uint8_t mode, uint64_t ip)
{
	take_mode(p, mode);
	if (!p->events || !p->s->enabled || !p->s->flowing || !p->branches || p->s->mode_known)
		return;
	emupmu_flush(p);
	emupmu_write_mode(p);
	encode_ip(&p->encoder, PT_OPC_FUP, ip);
	emupmu_after_packet(p);
}

void emupmu_halt(struct emupmu *p, uint64_t ip)
{
	const bool here = p->s->flowing && p->branches;

	emupmu_now(p);
	if (!p->s->enabled || !p->power_events)
		return;
	emupmu_flush(p);
	encode_pwre(&p->encoder, C1);
	encode_exstop(&p->encoder, here);
	if (here)
		encode_ip(&p->encoder, PT_OPC_FUP, ip);
	p->s->asleep = 1;
	emupmu_publish(p);
}

void emupmu_awake(struct emupmu *p)
{
	uint64_t tsc = emupmu_advance(p, emupmu_read_clock(p));
	const bool slept = p->s->asleep;

	p->s->asleep = 0;
	if (!p->s->enabled)
		return;
	emupmu_flush(p);
	if (slept)
		encode_pwrx(&p->encoder, C1, PT_PWRX_INTERRUPT);
	emupmu_time_anew(p, tsc);
	emupmu_publish(p);
}
