/*
 * From blocks to branches, system calls, interrupts and faults of one virtual CPU.
 */
#include "capture/emu/system/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/emu/system/models.h"
#include "capture/emu/system/vm.h"

/* arch/x86/include/asm/segment.h */
#define USER32_CS 0x23u

#define FLAGS_IF     0x200u /* RFLAGS.IF */
#define CTL_ADDR_CFG 32	    /* IA32_RTIT_CTL: the lowest bit of ADDR0_CFG */

#define VECTOR_NMI	2u
#define VECTOR_DEBUG	1u
#define VECTOR_PAGE	14u
#define VECTOR_MACHINE	18u
#define FIRST_INTERRUPT 32u
/* Exceptions whose frame has an error code below RIP (SDM volume 3, table "Protected-Mode
 * Exceptions and Interrupts"). */
#define WITH_ERROR_CODE                                                                         \
	(1u << 8 | 1u << 10 | 1u << 11 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 17 | 1u << 21 | \
	 1u << 29 | 1u << 30)

/* The processor pushes this frame; some exceptions have an error code below it. */
struct frame {
	uint64_t ip, cs, flags, sp, ss;
};

int system_cpu_init(struct system_cpu *c, unsigned int vcpu, const struct system_idt *idt)
{
	*c = (struct system_cpu){.vcpu = vcpu, .idt = idt};
	c->memory = calloc(1, sizeof(*c->memory));
	if (!c->memory)
		return -ENOMEM;
	retire_init(&c->retire, NULL);
	return 0;
}

/* Only Event Trace tells the interrupt flag of FLAGS (SDM "MODE.Exec"). */
static struct emupmu_place place_of(const struct system_cpu *c, uint64_t ip, uint64_t cs,
				    uint64_t flags)
{
	const bool kernel = (int64_t)ip < 0;
	uint8_t mode = !kernel && cs == USER32_CS ? PT_MODE_EXEC_CSD : PT_MODE_EXEC_CSL;

	if (c->pmu.events && (flags & FLAGS_IF))
		mode |= PT_MODE_EXEC_IFLAG;
	return (struct emupmu_place){.ip = ip, .kernel = kernel, .mode = mode};
}

/* The place of an address at which the CPU is about to execute. */
static struct emupmu_place place_here(const struct system_cpu *c, uint64_t ip)
{
	return place_of(c, ip, (int64_t)ip < 0 ? 0 : vm_cs(c->vcpu),
			c->pmu.events ? vm_flags(c->vcpu) : 0);
}

static void transfer(struct system_cpu *c, const uint64_t *from, struct emupmu_place to)
{
	emupmu_transfer(&c->pmu, from, &to, NULL);
}

/* No branch explains how execution came from P to TO. An interrupt keeps the trace decodable. */
static void unexplained(struct system_cpu *c, const struct block *p, struct emupmu_place to)
{
	if (c->unexplained++ == 0) {
		c->first_from = p->last;
		c->first_to = to.ip;
	}
	transfer(c, &p->last, to);
}

/* The last instruction of P leads to TO, but is no IRET: no event. */
static void far_branch(struct system_cpu *c, const struct block *p, struct emupmu_place to)
{
	const struct emupmu_cause iret = {.type = PT_CFE_IRET, .at = p->last};

	emupmu_transfer(&c->pmu, NULL, &to, block_is_iret(p) ? &iret : NULL);
}

/* Whether the branch at the end of P, which leads to IP, is taken. */
static bool is_taken(const struct block *p, uint64_t ip)
{
	return p->kind != BLOCK_PLAIN && !(p->kind == BLOCK_COND && ip != p->target);
}

/* A near branch, or no branch, leads from P to IP. */
static void near_branch(struct system_cpu *c, const struct block *p, uint64_t ip)
{
	const bool direct = p->kind == BLOCK_JMP || p->kind == BLOCK_CALL;
	bool named = p->kind != BLOCK_COND;

	if (p->kind == BLOCK_RET && c->retire.retcomp && encode_predicts(c->retire.encode, ip))
		named = false;
	if (c->pmu.with_ranges && is_taken(p, ip) && emupmu_crosses(&c->pmu, ip, named, direct))
		return;
	if (c->pmu.s->flowing)
		retire_usual(&c->retire, p, ip);
}

/* P changed RFLAGS.IF before execution came to TO. Where it did so twice, only the last change is
 * seen. A far transfer tells the flag itself. */
static void interrupt_flag(struct system_cpu *c, const struct block *p,
			   const struct emupmu_place *to)
{
	const int at = block_index(p, to->ip);
	uint64_t behind = p->ip;

	if (!c->pmu.events || p->kind == BLOCK_FAR || p->kind == BLOCK_KERNEL ||
	    (at >= 0 && at < p->iflag && !retire_follows(p, to->ip)))
		return;
	for (unsigned int i = 0; i < p->iflag; i++)
		behind += p->length[i];
	emupmu_iflag(&c->pmu, to->mode, behind);
}

/* Reports how execution came from P to TO. FIRST_INSIDE: if TO is an instruction of P, then P ended
 * early there, even if a branch of P can also lead there. */
static void report(struct system_cpu *c, const struct block *p, struct emupmu_place to,
		   bool first_inside)
{
	const bool inside = block_index(p, to.ip) >= 0;

	if (inside && first_inside)
		return;
	if (p->flags & BLOCK_CR3)
		emupmu_cr3(&c->pmu, vm_cr3(c->vcpu));
	if (p->flags & BLOCK_IFLAG)
		interrupt_flag(c, p, &to);
	if (p->kind == BLOCK_NONE) {
		transfer(c, NULL, to);
	} else if (p->kind == BLOCK_KERNEL || p->kind == BLOCK_FAR) {
		far_branch(c, p, to);
	} else if (retire_follows(p, to.ip)) {
		near_branch(c, p, to.ip);
	} else if (!inside && !(p->kind == BLOCK_REP && to.ip == p->next)) {
		unexplained(c, p, to);
	}
}

/* The vector whose handler begins at IP, or -1. */
static int vector_of(const struct system_cpu *c, uint64_t ip)
{
	for (unsigned int i = 0; i < SYSTEM_VECTORS; i++)
		if (c->idt->handler[i] == ip)
			return (int)i;
	return -1;
}

static bool read_frame(const struct system_cpu *c, unsigned int vector, struct frame *ret)
{
	const bool code = vector < FIRST_INTERRUPT && (WITH_ERROR_CODE >> vector & 1) != 0;

	return vm_read(c->vcpu, vm_stack_pointer(c->vcpu) + (code ? 8 : 0), ret, sizeof(*ret));
}

/* Whether the instruction at which the frame points has completed no part of its work: faults, but
 * neither interrupts nor traps. */
static bool is_fault(unsigned int vector)
{
	return vector < FIRST_INTERRUPT && vector != VECTOR_NMI && vector != VECTOR_DEBUG &&
	       vector != VECTOR_MACHINE;
}

/* INT n and INT3 complete, and the frame points behind them; FUP has their own address (SDM "FUP").
 */
static bool is_software_interrupt(const struct block *p, const struct frame *f)
{
	return p->kind == BLOCK_KERNEL && f->ip == p->next;
}

/* An interrupt or exception led from P to the handler B. */
static void enter_handler(struct system_cpu *c, const struct block *p, const struct block *b,
			  unsigned int vector)
{
	const struct emupmu_place to = place_here(c, b->ip);
	struct emupmu_cause cause = {.type = PT_CFE_INTR, .vector = (uint8_t)vector};
	struct frame f;
	uint64_t from;

	if (p->kind == BLOCK_NONE)
		return transfer(c, NULL, to);
	if (!read_frame(c, vector, &f))
		return unexplained(c, p, to);
	from = f.ip;
	if (is_software_interrupt(p, &f))
		from = p->last;
	else
		report(c, p, place_of(c, f.ip, f.cs, f.flags), is_fault(vector));
	cause.at = from;
	cause.page_fault = vector == VECTOR_PAGE;
	if (c->pmu.events && cause.page_fault)
		cause.cr2 = vm_cr2(c->vcpu);
	emupmu_transfer(&c->pmu, c->pmu.s->flowing ? &from : NULL, &to, &cause);
}

/* Direct branches to a handler's first instruction are the kernel's own. */
static bool jumps_there(const struct block *p, uint64_t ip)
{
	switch (p->kind) {
	case BLOCK_PLAIN:
	case BLOCK_JMP:
	case BLOCK_CALL:
	case BLOCK_COND: return p->target == ip || p->next == ip;
	default: return false;
	}
}

void system_unusual(struct system_cpu *c, struct block *p, struct block *b)
{
	const int vector = b->flags & BLOCK_HANDLER ? vector_of(c, b->ip) : -1;
	const bool first_inside = (b->flags & BLOCK_SINGLE) && p->n > 1;

	if (vector >= 0 && !jumps_there(p, b->ip))
		enter_handler(c, p, b, (unsigned int)vector);
	else if (p->kind != BLOCK_NONE || (b->ip >> 63 ? c->pmu.os : c->pmu.user))
		report(c, p, place_here(c, b->ip), first_inside);
	/* The guest sees the TSC here, and what it does next must not seem to be earlier. */
	if ((p->flags | b->flags) & BLOCK_CLOCK)
		c->pmu.budget = 0;
	if (!system_follows(c))
		c->retire.prev = &c->retire.none;
}

void system_service(struct system_cpu *c, const struct block *b)
{
	c->pmu.budget = RETIRE_BUDGET;
	emupmu_service(&c->pmu, b->ip);
}

/* The position goes on at BELL's offset: with the same buffer, that is where it was. */
static void set_position(struct system_cpu *c, const struct bell *bell)
{
	struct emupmu_state *s = c->pmu.s;
	const uint64_t mask = c->aux_size - 1;
	uint64_t move = (bell->offset - s->encode.pos) & mask;

	s->encode.pos += move;
	s->psb_at += move;
	s->overflow_at += move;
}

static void set_ranges(struct system_cpu *c, const struct bell *bell)
{
	for (unsigned int i = 0; i < EMUPMU_RANGES; i++) {
		c->pmu.ranges[i] = (struct emupmu_range){
			.from = bell->ranges[i].from,
			.to = bell->ranges[i].to,
			.kind = bell->ctl >> (CTL_ADDR_CFG + 4 * i) & 15,
		};
		c->pmu.with_ranges |= c->pmu.ranges[i].kind != EMUPMU_UNUSED;
	}
}

/* Sets the fields of the PMU that only a whole machine has. */
static void set_up(struct system_cpu *c, const struct bell *bell)
{
	const struct model model = model_of(bell->family, bell->model);

	/* A CPU of the guest that the host held up executes nothing. */
	c->pmu.held_up = UINT64_MAX;
	c->pmu.tsx = model.tsx;
	c->pmu.errata = model.errata;
	set_ranges(c, bell);
	c->watched = BLOCK_HANDLER | BLOCK_SINGLE | BLOCK_CR3 | BLOCK_CLOCK;
	if (c->pmu.events)
		c->watched |= BLOCK_IFLAG;
	if (c->pmu.with_ranges)
		c->watched |= SYSTEM_EVERY_BLOCK;
}

void system_start(struct system_cpu *c, const struct bell *bell, uint64_t ip)
{
	c->config = (struct emuring_head){
		.pt_config = bell->ctl,
		.clock = EMURING_CLOCK_HOST,
		.max_nonturbo_ratio = bell->ratio,
		.tsc_art_num = bell->art_num,
		.tsc_art_den = bell->art_den,
		.overflow_bytes = c->overflow_bytes,
	};
	if (bell->first)
		memset(c->memory, 0, sizeof(*c->memory));
	emupmu_attach_cpu(&c->pmu, &c->config, c->memory, c->aux, c->aux_size);
	set_up(c, bell);
	c->pmu.tsc = vm_tsc;
	if (bell->first) {
		encode_forget_branches(&c->pmu.encoder);
		c->pmu.s->overflow_at = c->overflow_bytes;
	}
	c->pmu.s->stopped = 0;
	set_position(c, bell);
	c->pmu.s->cr3 = vm_cr3(c->vcpu);
	retire_attach(&c->retire, &c->pmu, c->vcpu);
	c->pmu.budget = RETIRE_BUDGET;
	c->on = true;
	emupmu_start(&c->pmu);
	transfer(c, NULL, place_here(c, ip));
}

void system_stop(struct system_cpu *c, struct bell *bell, uint64_t ip)
{
	if (!c->on)
		return;
	emupmu_stop(&c->pmu, ip);
	bell->offset = c->pmu.s->encode.pos & (c->aux_size - 1);
	bell->total = c->pmu.s->encode.pos;
	bell->status = c->pmu.s->stopped ? BELL_STOPPED : 0;
	c->retire.prev = &c->retire.none;
	c->on = false;
}

void system_idle(struct system_cpu *c)
{
	const struct block *p = c->retire.prev;

	if (c->on && (p->flags & BLOCK_HALT))
		emupmu_halt(&c->pmu, p->next);
	else if (c->on)
		emupmu_now(&c->pmu);
}

void system_awake(struct system_cpu *c)
{
	if (c->on)
		emupmu_awake(&c->pmu);
}
