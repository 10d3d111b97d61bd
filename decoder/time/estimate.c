/*
 * Estimates the TSC from timing packets, as libipt does.
 *
 * The packets may be a stranger's: sums wrap modulo 2^64, nothing is divided by 0, and there is no
 * memory beyond the struct.
 *
 * An MTC moves the time by whole CTC ticks, a CYC by the cycles since then. The length of a cycle
 * follows from the cycles between two MTCs (without MTCs, two TSCs of PSB+), or from the core to
 * bus ratio.
 */
#include "decoder/time/estimate.h"

#include <stddef.h>

#include "proto/perf/ptpacket.h"

#define MTC_BITS 8u
#define TMA_BITS 16u
#define TMA_MASK ((1u << TMA_BITS) - 1)
#define TSC_BITS 56u

void estimate_reset(struct estimate *e)
{
	*e = (struct estimate){.config = e->config};
	e->cal.min = UINT64_MAX;
}

void estimate_init(struct estimate *e, const struct estimate_config *config)
{
	e->config = *config;
	if (e->config.mtc_period > 15)
		e->config.mtc_period = 0;
	estimate_reset(e);
}

static void forget_length(struct estimate *e)
{
	__typeof__(e->cal) none = {.min = UINT64_MAX};

	e->cal = none;
}

static void set_length(struct estimate *e, uint64_t length)
{
	e->cal.length = length;
	if (length < e->cal.min)
		e->cal.min = length;
	if (length > e->cal.max)
		e->cal.max = length;
}

enum estimate_fault estimate_tsc(const struct estimate *e, uint64_t *ret)
{
	*ret = e->tsc;
	return e->have_tsc ? ESTIMATE_OK : ESTIMATE_NO_TIME;
}

enum estimate_fault estimate_length(const struct estimate *e, uint64_t *ret)
{
	if (e->cal.min > e->cal.max)
		return ESTIMATE_NO_TIME;
	*ret = e->cal.length;
	return ESTIMATE_OK;
}

/* CTC ticks from LAST to NOW, with at most one wrap. */
static enum estimate_fault ctc_between(const struct estimate *e, uint32_t last, uint32_t now,
				       uint32_t *ret)
{
	if (now < last) {
		now += 1u << (e->config.mtc_period + MTC_BITS);
		if (now < last)
			return ESTIMATE_BAD_PACKET;
	}
	*ret = now - last;
	return ESTIMATE_OK;
}

/* The TSC ticks of CTC ticks. */
static enum estimate_fault ticks_of(const struct estimate *e, uint32_t ctc, uint64_t *ret)
{
	if (e->config.tsc_art_num == 0 || e->config.tsc_art_den == 0)
		return ESTIMATE_BAD_CONFIG;
	*ret = (uint64_t)ctc * e->config.tsc_art_num / e->config.tsc_art_den;
	return ESTIMATE_OK;
}

/* The length of one of CYCLES (not 0) cycles that took TICKS. */
static enum estimate_fault length_of(uint64_t ticks, uint64_t cycles, uint64_t *ret)
{
	if (ticks > UINT64_MAX >> ESTIMATE_SHIFT)
		return ESTIMATE_OVERFLOW;
	*ret = (ticks << ESTIMATE_SHIFT) / cycles;
	return ESTIMATE_OK;
}

/* Measures the length of a cycle between two TSCs of PSB+, unless MTCs do so better. Time may have
 * been lost before a TSC elsewhere. */
static enum estimate_fault calibrate_tsc(struct estimate *e, uint64_t tsc)
{
	uint64_t last = e->cal.tsc, cycles = e->cal.cyc_tsc, length;
	enum estimate_fault fault;

	e->cal.tsc = tsc;
	e->cal.cyc_tsc = 0;
	if (!e->in_psb || last == 0 || cycles == 0 || e->cal.have_mtc)
		return ESTIMATE_OK;
	if (tsc < last)
		tsc += UINT64_C(1) << TSC_BITS;
	fault = length_of(tsc - last, cycles, &length);
	if (fault == ESTIMATE_OK)
		set_length(e, length);
	return fault;
}

static enum estimate_fault point_tma(struct estimate *e, uint16_t ctc, uint16_t fast)
{
	uint32_t bits = e->config.mtc_period + MTC_BITS;

	if (!e->have_tsc || e->have_tma)
		return ESTIMATE_BAD_CONTEXT;
	e->have_tma = true;
	e->base -= fast;
	e->fast += fast;
	/* A TMA is as good as an MTC, unless MTCs are so rare that the TMA lacks some of their
	 * bits. point_mtc() then guesses them at the first MTC. */
	e->have_mtc = bits <= TMA_BITS;
	e->ctc = e->ctc_cyc = ctc & ((1u << bits) - 1);
	return ESTIMATE_OK;
}

static enum estimate_fault point_mtc(struct estimate *e, uint8_t payload)
{
	uint32_t ctc = (uint32_t)payload << e->config.mtc_period, last = e->ctc, delta;
	bool have_mtc = e->have_mtc;
	uint64_t ticks;
	enum estimate_fault fault;

	/* Between TSC and TMA, an MTC would seem to overflow. */
	if (e->have_tsc && !e->have_tma)
		return ESTIMATE_OK;
	if (e->fast != 0 || e->lost_cyc != 0 || !have_mtc)
		e->ctc_cyc = ctc;
	e->have_mtc = true;
	e->fast = 0;
	e->ctc = ctc;
	e->lost_cyc = 0;
	/* The first MTC does not say how much time has passed. */
	if (!have_mtc && !e->have_tma)
		return ESTIMATE_OK;
	if (!have_mtc) {
		uint32_t high = ctc & ~TMA_MASK;

		/* Completes the TMA by the high bits that the CTC must have had. */
		if ((ctc & TMA_MASK) < last)
			high = (high - (1u << TMA_BITS)) & (0xffu << e->config.mtc_period);
		last |= high;
	}
	fault = ctc_between(e, last, ctc, &delta);
	if (fault != ESTIMATE_OK) {
		e->lost_mtc++;
		return fault;
	}
	fault = ticks_of(e, delta, &ticks);
	if (fault != ESTIMATE_OK)
		return fault;
	e->base += ticks;
	e->tsc = e->base;
	return ESTIMATE_OK;
}

/* Erratum SKL168: whether CYCLES are so few for TICKS that cycles are missing behind a PSB. */
static bool cycles_missing(const struct estimate *e, uint32_t ctc, uint64_t ticks, uint64_t cycles)
{
	uint64_t length;

	if (ctc > 1u << e->config.mtc_period)
		return true;
	/* The counter wraps after 4096 cycles, and a few cycles less are as suspicious. In long
	 * periods that would not show. */
	return e->config.mtc_period < 10 && estimate_length(e, &length) == ESTIMATE_OK &&
	       (length * (cycles + 0xf00)) >> ESTIMATE_SHIFT < ticks;
}

static enum estimate_fault calibrate_mtc(struct estimate *e, uint8_t payload)
{
	uint32_t last = e->cal.ctc, ctc = (uint32_t)payload << e->config.mtc_period, delta;
	uint64_t cycles = e->cal.cyc_mtc, ticks, length;
	bool suspicious = e->cal.first_after_psb;
	enum estimate_fault fault;

	e->cal.first_after_psb = false;
	/* If there were no cycles, the next MTC measures both periods. */
	if (e->cal.have_mtc && cycles == 0)
		return ESTIMATE_OK;
	e->cal.cyc_mtc = 0;
	e->cal.ctc = ctc;
	if (!e->cal.have_mtc) {
		e->cal.have_mtc = true;
		return ESTIMATE_OK;
	}
	e->cal.lost_mtc++;
	fault = ctc_between(e, last, ctc, &delta);
	if (fault == ESTIMATE_OK)
		fault = ticks_of(e, delta, &ticks);
	if (fault == ESTIMATE_OK)
		fault = length_of(ticks, cycles, &length);
	if (fault != ESTIMATE_OK || (suspicious && cycles_missing(e, delta, ticks, cycles)))
		return fault;
	set_length(e, length);
	e->cal.lost_mtc = 0;
	return ESTIMATE_OK;
}

/* Reduces the *CYCLES of a CYC to those of the MTC period in which it stands. LENGTH is not 0. */
static enum estimate_fault cut_cycles(const struct estimate *e, uint64_t length, uint64_t *cycles)
{
	uint64_t ticks, before;
	uint32_t ctc;
	enum estimate_fault fault;

	if (e->ctc == e->ctc_cyc)
		return ESTIMATE_OK;
	fault = ctc_between(e, e->ctc_cyc, e->ctc, &ctc);
	if (fault == ESTIMATE_OK)
		fault = ticks_of(e, ctc, &ticks);
	if (fault != ESTIMATE_OK)
		return fault;
	before = (ticks << ESTIMATE_SHIFT) / length;
	*cycles = *cycles > before ? *cycles - before : 0;
	return ESTIMATE_OK;
}

static enum estimate_fault point_cyc(struct estimate *e, uint64_t cycles, uint64_t length)
{
	enum estimate_fault fault = ESTIMATE_OK;

	if (length == 0) {
		e->lost_cyc++;
		return ESTIMATE_OK;
	}
	if (e->fast == 0)
		fault = cut_cycles(e, length, &cycles);
	if (fault != ESTIMATE_OK)
		return fault;
	e->fast += (cycles * length) >> ESTIMATE_SHIFT;
	e->tsc = e->base + e->fast;
	return ESTIMATE_OK;
}

static struct estimate_faults take_cyc(struct estimate *e, uint64_t cycles)
{
	struct estimate_faults faults = {0};
	uint64_t length = 0;

	if (!e->config.no_calibration) {
		faults.length = estimate_length(e, &length);
		e->cal.cyc_mtc += cycles;
		e->cal.cyc_tsc += cycles;
	}
	faults.point = point_cyc(e, cycles, length);
	faults.uncalibrated = faults.point == ESTIMATE_OK && length == 0;
	return faults;
}

/* Outside of PSB+, a CBR tells of another frequency, and the measured length is void. */
static enum estimate_fault calibrate_cbr(struct estimate *e, uint8_t ratio)
{
	if (!e->in_psb)
		forget_length(e);
	if (e->config.max_nonturbo_ratio == 0)
		return ESTIMATE_OK;
	if (ratio == 0)
		return ESTIMATE_BAD_PACKET;
	set_length(e, ((uint64_t)e->config.max_nonturbo_ratio << ESTIMATE_SHIFT) / ratio);
	return ESTIMATE_OK;
}

struct estimate_faults estimate_packet(struct estimate *e, const struct packet *p)
{
	struct estimate_faults faults = {0};
	bool calibrate = !e->config.no_calibration;

	switch (p->type) {
	case PACKET_PSB:
		e->in_psb = true;
		if (e->config.cyc_lost_at_psb)
			e->cal.first_after_psb = true;
		break;
	case PACKET_PSBEND: e->in_psb = false; break;
	case PACKET_OVF:
		if (!e->config.keep_calibration) {
			forget_length(e);
			break;
		}
		e->cal.tsc = 0;
		e->cal.cyc_tsc = e->cal.cyc_mtc = 0;
		e->cal.ctc = 0;
		e->cal.have_mtc = false;
		break;
	case PACKET_TSC:
		if (calibrate)
			faults.calibration = calibrate_tsc(e, p->u.tsc.value);
		e->have_tsc = true;
		e->have_tma = e->have_mtc = false;
		e->tsc = e->base = p->u.tsc.value;
		e->ctc = 0;
		e->fast = 0;
		e->lost_mtc = e->lost_cyc = 0;
		break;
	case PACKET_CBR:
		if (calibrate)
			faults.calibration = calibrate_cbr(e, p->u.cbr.ratio);
		if (p->u.cbr.ratio == 0) {
			faults.point = ESTIMATE_BAD_PACKET;
			break;
		}
		e->have_cbr = true;
		e->cbr = p->u.cbr.ratio;
		break;
	case PACKET_TMA: faults.point = point_tma(e, p->u.tma.ctc, p->u.tma.fc); break;
	case PACKET_MTC:
		if (calibrate)
			faults.calibration = calibrate_mtc(e, p->u.mtc.ctc);
		faults.point = point_mtc(e, p->u.mtc.ctc);
		break;
	case PACKET_CYC:
		if (!e->config.no_cyc)
			faults = take_cyc(e, p->u.cyc.value);
		break;
	default: break;
	}
	return faults;
}

const char *estimate_text(enum estimate_fault fault)
{
	switch (fault) {
	case ESTIMATE_OK: return "OK";
	case ESTIMATE_NO_TIME: return "no timing information";
	case ESTIMATE_BAD_PACKET: return "unknown packet";
	case ESTIMATE_BAD_CONTEXT: return "bad context";
	case ESTIMATE_BAD_CONFIG: return "bad configuration";
	default: return "internal error";
	}
}
