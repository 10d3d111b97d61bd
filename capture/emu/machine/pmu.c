/*
 * The software PMU of one virtual CPU.
 *
 * Where hardware may choose: TNT bits are written before every packet that is not TNT, so that no
 * TNT is ever deferred (SDM "Deferred TIPs" allows both). A PSB forces a CYC, so that the cycle
 * counter never reaches across a PSB. After TraceEn, the first IP is written in full and the return
 * stack is empty.
 */
#include "capture/emu/machine/pmu.h"

#include <assert.h>
#include <string.h>
#include <x86intrin.h>

#include "capture/emu/machine/pmu_private.h"

/* Bits of attr.config: arch/x86/include/asm/msr-index.h, RTIT_CTL_*. */
#define CONFIG_CYC	     (1ull << 1)
#define CONFIG_OS	     (1ull << 2)
#define CONFIG_USER	     (1ull << 3)
#define CONFIG_PWREVT	     (1ull << 4)
#define CONFIG_MTC	     (1ull << 9)
#define CONFIG_TSC	     (1ull << 10)
#define CONFIG_DISRETC	     (1ull << 11)
#define CONFIG_BRANCH	     (1ull << 13)
#define CONFIG_EVENT	     (1ull << 31)
#define CONFIG_MTC_PERIOD(c) ((unsigned int)((c) >> 14 & 15))
#define CONFIG_CYC_THRESH(c) ((unsigned int)((c) >> 19 & 15))
#define CONFIG_PSB_PERIOD(c) ((unsigned int)((c) >> 24 & 15))

/* 25 us, in ticks for each 100 MHz of the TSC. */
#define HELD_UP_RATIO 2500u

/* TSC = ART * num / den. A CTC tick happens at the first TSC that converts to its number. */
static uint64_t ctc_at(const struct emupmu *p, uint64_t tsc)
{
	return (uint64_t)((unsigned __int128)tsc * p->art_den / p->art_num);
}

static uint64_t tsc_of_ctc(const struct emupmu *p, uint64_t ctc)
{
	return (uint64_t)(((unsigned __int128)ctc * p->art_num + p->art_den - 1) / p->art_den);
}

static void aim_at_next_mtc(struct emupmu *p, uint64_t last)
{
	p->s->mtc = last;
	p->s->mtc_tsc = tsc_of_ctc(p, (last + 1) << p->mtc_period);
}

bool emupmu_errs(struct emupmu *p, uint32_t erratum)
{
	return (p->errata & erratum) != 0 && p->s->occasions++ % 3 == 0;
}

static void take_config(struct emupmu *p, const struct emuring_head *head)
{
	uint64_t config = head->pt_config;
	unsigned int threshold = CONFIG_CYC_THRESH(config);

	p->virtual_clock = head->clock == EMURING_CLOCK_VIRTUAL;
	p->branches = config & CONFIG_BRANCH;
	p->with_tsc = config & CONFIG_TSC;
	p->with_mtc = config & CONFIG_MTC;
	p->with_cyc = config & CONFIG_CYC;
	p->retcomp = !(config & CONFIG_DISRETC);
	p->mtc_period = CONFIG_MTC_PERIOD(config);
	p->cyc_threshold = threshold == 0 ? 0 : 1ull << (threshold - 1);
	p->psb_bytes = 1ull << (11 + CONFIG_PSB_PERIOD(config));
	p->overflow_bytes = head->overflow_bytes;
	p->cbr = (uint8_t)head->max_nonturbo_ratio;
	p->held_up = UINT64_MAX;
	if (!p->virtual_clock && head->max_nonturbo_ratio != 0)
		p->held_up = (uint64_t)head->max_nonturbo_ratio * HELD_UP_RATIO;
	p->art_num = head->tsc_art_num != 0 ? head->tsc_art_num : 1;
	p->art_den = head->tsc_art_den != 0 ? head->tsc_art_den : 1;
}

void emupmu_attach_cpu(struct emupmu *p, const struct emuring_head *head, struct emuring_cpu *cpu,
		       uint8_t *aux, uint64_t aux_size)
{
	*p = (struct emupmu){.cpu = cpu};
	p->s = (struct emupmu_state *)cpu->encoder;
	take_config(p, head);
	p->os = head->pt_config & CONFIG_OS;
	p->user = head->pt_config & CONFIG_USER;
	p->power_events = head->pt_config & CONFIG_PWREVT;
	p->events = head->pt_config & CONFIG_EVENT;
	encode_attach(&p->encoder, &p->s->encode, &cpu->tnt, aux, aux_size);
}

void emupmu_attach(struct emupmu *p, const struct emuring *r, uint32_t cpu)
{
	assert(cpu < r->fixed.n_cpus);
	emupmu_attach_cpu(p, &r->fixed, emuring_cpu_at(r, cpu), emuring_aux_at(r, cpu),
			  r->fixed.aux_size);
	p->os = false;
	p->user = true;
}

void emupmu_init(struct emupmu *p, const struct emuring *r, uint32_t cpu)
{
	emupmu_attach(p, r, cpu);
	memset(p->s, 0, sizeof(*p->s));
	encode_init(&p->encoder, &p->s->encode, &p->cpu->tnt, p->encoder.aux, p->encoder.aux_size);
	p->s->overflow_at = p->overflow_bytes;
}

uint64_t emupmu_read_clock(const struct emupmu *p)
{
	if (p->virtual_clock)
		return EMURING_VIRTUAL_BASE + p->s->extra_ticks +
		       atomic_load_explicit(&p->cpu->instructions, memory_order_relaxed);
	return p->tsc ? p->tsc() : __rdtsc();
}

/* The machine's clock advances to NOW. */
uint64_t emupmu_advance(struct emupmu *p, uint64_t now)
{
	/* The TSCs of two host CPUs may differ by a few ticks. */
	if (now > p->s->now)
		p->s->now = now;
	if (!encode_tnt_pending(&p->encoder))
		p->s->tnt_tsc = p->s->now;
	atomic_store_explicit(&p->cpu->tsc, p->s->now, memory_order_relaxed);
	return p->s->now;
}

void emupmu_publish(struct emupmu *p)
{
	atomic_store_explicit(&p->cpu->aux_pos, p->s->encode.pos, memory_order_release);
	if (p->s->encode.pos >= p->s->psb_at)
		p->budget = 0;
}

/* A packet with time AT follows; writes a CYC before it if CYC is on and the threshold is reached.
 */
static void cyc(struct emupmu *p, uint64_t at, bool force)
{
	uint64_t cycles = at - p->s->cyc_tsc;

	if (!p->with_cyc || at <= p->s->cyc_tsc || (!force && cycles < p->cyc_threshold))
		return;
	encode_cyc(&p->encoder, cycles);
	p->s->cyc_tsc = at;
}

/* SDM "Cycle Packet Semantics": the CYC before a TNT has the time of its first branch. */
static void flush_tnt(struct emupmu *p)
{
	if (!p->branches)
		encode_forget_branches(&p->encoder);
	if (!encode_tnt_pending(&p->encoder))
		return;
	cyc(p, p->s->tnt_tsc, false);
	encode_tnt(&p->encoder);
	p->s->tnt_tsc = p->s->now;
}

void emupmu_flush(struct emupmu *p)
{
	flush_tnt(p);
	cyc(p, p->s->now, false);
}

static void write_time(struct emupmu *p, uint64_t tsc)
{
	uint64_t ctc = ctc_at(p, tsc);

	if (p->with_tsc)
		encode_tsc(&p->encoder, tsc);
	if (p->with_tsc && p->with_mtc)
		encode_tma(&p->encoder, (uint16_t)ctc, (uint16_t)(tsc - tsc_of_ctc(p, ctc)));
	encode_cbr(&p->encoder, p->cbr);
}

void emupmu_write_mode(struct emupmu *p)
{
	encode_mode_exec(&p->encoder, (uint8_t)(p->s->not_64bit ^ PT_MODE_EXEC_CSL));
	p->s->mode_known = 1;
}

/* SDM "Packet Generation Scenarios", PSB+: PIP, MODE.Exec and FUP only while PacketEn is set. IP:
 * NULL while it is clear. */
static void write_psb(struct emupmu *p, uint64_t tsc, const uint64_t *ip)
{
	uint64_t pos;

	flush_tnt(p);
	if (p->with_cyc && emupmu_errs(p, EMUPMU_SKL168))
		p->s->cyc_tsc = tsc;
	else
		cyc(p, tsc, true);
	pos = p->s->encode.pos;
	p->s->psb_pos = pos + 1;
	atomic_signal_fence(memory_order_seq_cst);
	encode_psb(&p->encoder);
	write_time(p, tsc);
	p->s->mode_known = 0;
	if (ip) {
		if (p->os)
			encode_pip(&p->encoder, p->s->cr3);
		emupmu_write_mode(p);
		if (p->tsx)
			encode_mode_tsx(&p->encoder);
		encode_ip(&p->encoder, PT_OPC_FUP, *ip);
	}
	encode_psbend(&p->encoder);
	p->s->psb_at = p->s->encode.pos + p->psb_bytes;
	atomic_signal_fence(memory_order_seq_cst);
	p->s->psb_pos = 0;
	if (p->on_psb)
		p->on_psb(p->userdata, tsc, pos, ip != NULL);
}

/* Writes the MTCs up to TSC. IP: the next user instruction, if user code runs and is between two
 * instructions; NULL otherwise. */
static void catch_up_at(struct emupmu *p, uint64_t tsc, const uint64_t *ip)
{
	uint64_t last, useful;

	if (!p->with_mtc || p->s->mtc_tsc > tsc)
		return;
	/* After a long time in the kernel, write only as many MTCs as fill the ring once. */
	last = ctc_at(p, tsc) >> p->mtc_period;
	useful = p->encoder.aux_size / 2 + 1;
	if (last - p->s->mtc > useful)
		aim_at_next_mtc(p, last - useful);
	/* Bounded, because the recorder comes here, too, and guests can write to this memory. */
	for (uint64_t i = 0; i <= p->encoder.aux_size && p->s->mtc_tsc <= tsc; i++) {
		uint64_t at = p->s->mtc_tsc;

		flush_tnt(p);
		cyc(p, at, false);
		aim_at_next_mtc(p, p->s->mtc + 1);
		encode_mtc(&p->encoder, (uint8_t)p->s->mtc);
		/* After a long time without user code, the MTCs alone can make a PSB due. */
		if ((!p->s->flowing || ip) && p->s->encode.pos >= p->s->psb_at)
			write_psb(p, at, p->s->flowing ? ip : NULL);
	}
}

/* Advances the clock to the value CLOCK and writes the MTCs that are due. */
static uint64_t pass_until(struct emupmu *p, uint64_t clock)
{
	uint64_t now = emupmu_advance(p, clock);

	if (!p->s->enabled)
		return now;
	catch_up_at(p, now, NULL);
	emupmu_publish(p);
	return now;
}

uint64_t emupmu_now(struct emupmu *p)
{
	return pass_until(p, emupmu_read_clock(p));
}

/* Whether the host took its own CPU away from the emulator for long. */
static bool is_held_up(const struct emupmu *p, uint64_t clock)
{
	return clock > p->s->now && clock - p->s->now > p->held_up;
}

bool emupmu_pass(struct emupmu *p)
{
	uint64_t clock = emupmu_read_clock(p);

	if (is_held_up(p, clock))
		return false;
	pass_until(p, clock);
	return true;
}

/* Call after a packet. Without CYC, TIP and TNT have no time, and reading the clock would cost more
 * than the packet. */
void emupmu_after_packet(struct emupmu *p)
{
	if (p->with_cyc && !emupmu_pass(p))
		p->budget = 0;
	emupmu_publish(p);
}

/* On hardware the first enable clears the PSB counter, and a PSB+ comes at once. A later enable
 * continues with the old counter (pt_config, kernel 6.1), and only TSC, TMA and CBR come. */
void emupmu_start(struct emupmu *p)
{
	uint64_t tsc = emupmu_advance(p, emupmu_read_clock(p));

	p->s->enabled = 1;
	p->s->flowing = 0;
	p->s->mode_known = 0;
	/* The counter is cleared with TriggerEn (SDM "Cycle Counter"). */
	p->s->cyc_tsc = p->s->tnt_tsc = tsc;
	aim_at_next_mtc(p, ctc_at(p, tsc) >> p->mtc_period);
	p->s->encode.last_ip_known = 0;
	encode_forget_calls(&p->s->encode);
	if (p->s->ever_enabled)
		write_time(p, tsc);
	else
		write_psb(p, tsc, NULL);
	p->s->ever_enabled = 1;
	emupmu_publish(p);
}

void emupmu_time_anew(struct emupmu *p, uint64_t tsc)
{
	p->s->cyc_tsc = tsc;
	write_time(p, tsc);
	aim_at_next_mtc(p, ctc_at(p, tsc) >> p->mtc_period);
}

/* SDM "Overflow (OVF) Packet": a FUP with the IP at which packets are complete again follows the
 * OVF, or, while PacketEn is clear, the next TIP.PGE. Because MTCs are missing, a TSC must give the
 * time. */
void emupmu_resolve_overflow(struct emupmu *p, uint64_t tsc, const uint64_t *ip)
{
	p->s->encode.dropping = 0;
	p->s->mode_known = 0;
	encode_forget_branches(&p->encoder);
	if (p->with_cyc && emupmu_errs(p, EMUPMU_SKD007))
		encode_torn_cyc(&p->encoder);
	encode_ovf(&p->encoder);
	emupmu_time_anew(p, tsc);
	if (ip && !emupmu_errs(p, EMUPMU_SKD010))
		encode_ip(&p->encoder, PT_OPC_FUP, *ip);
	if (!ip && emupmu_errs(p, EMUPMU_APL11))
		encode_ip_suppressed(&p->encoder, PT_OPC_TIP_PGD);
	p->s->overflow_at = p->s->encode.pos + p->overflow_bytes;
	if (p->on_overflow)
		p->on_overflow(p->userdata, tsc, p->s->encode.pos, true);
}

/* Begins or ends an overflow if the option --emu-overflow asks for it. IP: the next instruction of
 * user code, NULL: no user code runs. */
static void check_overflow(struct emupmu *p, uint64_t tsc, const uint64_t *ip)
{
	if (p->overflow_bytes == 0 || !p->branches)
		return;
	if (p->s->encode.dropping && p->s->drop_left > 0) {
		p->s->drop_left--;
	} else if (p->s->encode.dropping) {
		emupmu_resolve_overflow(p, tsc, ip);
	} else if (ip && p->s->encode.pos >= p->s->overflow_at) {
		p->s->encode.dropping = 1;
		/* Overflows have different lengths, so that some end in user code, others not. */
		p->s->drop_left = p->s->n_overflows++ % 5;
		if (p->on_overflow)
			p->on_overflow(p->userdata, tsc, p->s->encode.pos, false);
	}
}

void emupmu_stop(struct emupmu *p, uint64_t ip)
{
	emupmu_now(p);
	if (p->s->flowing)
		emupmu_interrupt(p, ip);
	if (p->s->encode.dropping)
		emupmu_resolve_overflow(p, p->s->now, NULL);
	p->s->enabled = 0;
	emupmu_publish(p);
}

void emupmu_tnt_full(struct emupmu *p)
{
	if (!p->branches) {
		encode_forget_branches(&p->encoder);
		return;
	}
	flush_tnt(p);
	emupmu_after_packet(p);
}

static void write_ip(struct emupmu *p, uint8_t opcode, uint64_t ip)
{
	emupmu_flush(p);
	encode_ip(&p->encoder, opcode, ip);
}

void emupmu_tip(struct emupmu *p, uint64_t ip)
{
	if (!p->branches)
		return;
	write_ip(p, PT_OPC_TIP, ip);
	emupmu_after_packet(p);
}

void emupmu_enter(struct emupmu *p, uint64_t ip)
{
	if (!p->s->enabled || p->s->flowing)
		return;
	emupmu_now(p);
	p->s->flowing = 1;
	if (!p->branches)
		return;
	/* The PSB+ has the FUP of the TIP.PGE behind it. */
	if (!p->s->encode.dropping && p->s->encode.pos >= p->s->psb_at &&
	    emupmu_errs(p, EMUPMU_BDM70))
		write_psb(p, p->s->now, &ip);
	/* Needed only where a decoder that begins at the last PSB does not know the mode. */
	if (!p->s->mode_known)
		emupmu_write_mode(p);
	write_ip(p, PT_OPC_TIP_PGE, ip);
	emupmu_publish(p);
}

void emupmu_end(struct emupmu *p, const uint64_t *interrupted, const uint64_t *target)
{
	if (!p->s->flowing)
		return;
	if (p->branches) {
		emupmu_flush(p);
		if (interrupted)
			encode_ip(&p->encoder, PT_OPC_FUP, *interrupted);
		if (target)
			encode_ip(&p->encoder, PT_OPC_TIP_PGD, *target);
		else
			encode_ip_suppressed(&p->encoder, PT_OPC_TIP_PGD);
	}
	encode_forget_branches(&p->encoder);
	encode_forget_calls(&p->s->encode);
	p->s->flowing = 0;
	emupmu_publish(p);
}

void emupmu_leave(struct emupmu *p)
{
	emupmu_end(p, NULL, NULL);
}

void emupmu_interrupt(struct emupmu *p, uint64_t ip)
{
	emupmu_end(p, &ip, NULL);
}

/* A thread was killed while it wrote a PSB+: its bytes were not published, and are forgotten. */
static void forget_torn_psb(struct emupmu *p)
{
	if (p->s->psb_pos == 0)
		return;
	p->s->encode.pos = p->s->psb_pos - 1;
	p->s->psb_pos = 0;
}

void emupmu_killed(struct emupmu *p, uint64_t ip)
{
	uint64_t tsc;

	forget_torn_psb(p);
	tsc = emupmu_now(p);
	if (!p->s->flowing)
		return;
	/* The thread was killed between two stores of the encoder. No packet is torn, but the
	 * stored last IP and clock may be older than the last packet. */
	p->s->encode.last_ip_known = 0;
	if (ip != 0) {
		emupmu_interrupt(p, ip);
		return;
	}
	flush_tnt(p);
	p->s->flowing = 0;
	if (p->branches)
		emupmu_resolve_overflow(p, tsc, NULL);
	emupmu_publish(p);
}

void emupmu_service(struct emupmu *p, uint64_t ip)
{
	uint64_t tsc = emupmu_read_clock(p);
	const uint64_t *user;

	if (is_held_up(p, tsc))
		emupmu_interrupt(p, ip);
	user = p->branches && p->s->flowing ? &ip : NULL;
	tsc = emupmu_advance(p, tsc);
	if (!p->s->enabled)
		return;
	catch_up_at(p, tsc, user);
	check_overflow(p, tsc, user);
	if (p->s->encode.pos >= p->s->psb_at && !p->s->encode.dropping)
		write_psb(p, tsc, user);
	emupmu_publish(p);
}
