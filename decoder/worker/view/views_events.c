/*
 * The view of events: one line for each item and mark that is no branch.
 *
 * Payloads are laid out as in SDM volume 3 (edition 083), 33.4.2.
 */
#include "decoder/worker/view/views.h"

#include <inttypes.h>
#include <stdio.h>

#include "decoder/code/insn.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

static void put_hex(struct lines *l, const char *name, uint64_t v)
{
	lines_print(l, " %s=0x%" PRIx64, name, v);
}

static void put_number(struct lines *l, const char *name, uint64_t v)
{
	lines_print(l, " %s=%" PRIu64, name, v);
}

static void put_flag(struct lines *l, const char *name, bool set)
{
	if (set)
		lines_print(l, " %s=1", name);
}

static void put_ip(struct lines *l, uint64_t ip)
{
	if (ip != 0)
		put_hex(l, "ip", ip);
}

static void put_head(struct lines *l, uint64_t offset, uint64_t lo, uint64_t hi, const char *kind)
{
	lines_print(l, "0x%" PRIx64 " ", offset);
	if (lo == 0)
		lines_print(l, "?");
	else
		lines_print(l, "0x%" PRIx64, lo);
	if (hi == UINT64_MAX)
		lines_print(l, "-?");
	else if (hi != lo)
		lines_print(l, "-0x%" PRIx64, hi);
	lines_print(l, " %s", kind);
}

static void put_end(struct lines *l)
{
	lines_text(l, "\n", 1);
}

static void begin_item(struct lines *l, const struct flow_item *item, const char *kind)
{
	put_head(l, item->offset, item->tsc_lo, item->tsc_hi, kind);
}

static const char *mark_name(const struct flow_mark *m)
{
	static const char *const names[FLOW_MARK_N_] = {
		[FLOW_MARK_MODE] = "mode",	 [FLOW_MARK_IFLAG] = "interrupts",
		[FLOW_MARK_TSX] = "transaction", [FLOW_MARK_PAGING] = "paging",
		[FLOW_MARK_VMCS] = "vmcs",	 [FLOW_MARK_PTWRITE] = "ptwrite",
		[FLOW_MARK_CBR] = "frequency",	 [FLOW_MARK_EXSTOP] = "exstop",
		[FLOW_MARK_MWAIT] = "mwait",	 [FLOW_MARK_PWRE] = "pwre",
		[FLOW_MARK_PWRX] = "pwrx",	 [FLOW_MARK_MNT] = "mnt",
		[FLOW_MARK_TRIG] = "trigger",	 [FLOW_MARK_PEBS] = "pebs",
		[FLOW_MARK_OFF] = "disable",
	};

	return m->kind < FLOW_MARK_N_ ? names[m->kind] : NULL;
}

static const char *cfe_name(uint8_t type)
{
	static const char *const names[] = {
		[PT_CFE_INTR] = "intr",	      [PT_CFE_IRET] = "iret",
		[PT_CFE_SMI] = "smi",	      [PT_CFE_RSM] = "rsm",
		[PT_CFE_SIPI] = "sipi",	      [PT_CFE_INIT] = "init",
		[PT_CFE_VMENTRY] = "vmentry", [PT_CFE_VMEXIT] = "vmexit",
		[PT_CFE_UINTR] = "uintr",     [PT_CFE_VMEXIT_INTR] = "vmexit-intr",
		[PT_CFE_UIRET] = "uiret",     [PT_CFE_SHUTDOWN] = "shutdown",
		[PT_CFE_SWINTR] = "swintr",   [PT_CFE_SYSCALL] = "syscall",
	};

	return type < ARRAY_SIZE(names) ? names[type] : NULL;
}

/* A C-state is encoded less one: 0 is C1, and 0xf is C0. */
static void put_state(struct lines *l, const char *name, uint64_t payload, unsigned shift)
{
	put_number(l, name, ((payload >> shift) + 1) & 0xf);
}

static void put_cfe(struct lines *l, const struct flow_mark *m)
{
	if (m->type == PT_CFE_INTR || m->type == PT_CFE_SIPI || m->type == PT_CFE_VMEXIT_INTR ||
	    m->type == PT_CFE_UINTR || m->type == PT_CFE_SWINTR)
		put_number(l, "vector", m->value);
	if ((m->flags & FLOW_MARK_CR2) != 0)
		put_hex(l, "cr2", m->evd[0]);
	if ((m->flags & FLOW_MARK_VMXQ) != 0)
		put_hex(l, "qualification", m->evd[1]);
	if ((m->flags & FLOW_MARK_VMXR) != 0)
		put_hex(l, "reason", m->evd[2]);
}

static void put_pwrx(struct lines *l, uint64_t payload)
{
	put_state(l, "last", payload, 4);
	put_state(l, "deepest", payload, 0);
	if ((payload & PT_PWRX_INTERRUPT) != 0)
		lines_print(l, " reason=interrupt");
	else if ((payload & PT_PWRX_TIMER) != 0)
		lines_print(l, " reason=timer");
	else if ((payload & PT_PWRX_STORE) != 0)
		lines_print(l, " reason=store");
	else if ((payload & PT_PWRX_HW) != 0)
		lines_print(l, " reason=hardware");
}

static void put_details(struct lines *l, const struct flow_mark *m)
{
	switch (m->kind) {
	case FLOW_MARK_MODE:
		put_number(l, "bits",
			   m->value == INSN_MODE_64   ? 64
			   : m->value == INSN_MODE_32 ? 32
						      : 16);
		break;
	case FLOW_MARK_IFLAG: put_number(l, "on", m->value != 0); break;
	case FLOW_MARK_TSX:
		lines_print(l, " %s",
			    m->value == FLOW_TSX_BEGIN	  ? "begin"
			    : m->value == FLOW_TSX_COMMIT ? "commit"
							  : "abort");
		break;
	case FLOW_MARK_PAGING:
		put_hex(l, "cr3", m->value);
		put_flag(l, "guest", (m->flags & FLOW_MARK_NON_ROOT) != 0);
		break;
	case FLOW_MARK_VMCS: put_hex(l, "base", m->value); break;
	case FLOW_MARK_PTWRITE:
		put_hex(l, "value", m->value);
		put_number(l, "bytes", m->size);
		break;
	case FLOW_MARK_CBR: put_number(l, "ratio", m->value); break;
	case FLOW_MARK_MWAIT:
		put_hex(l, "hints", m->value & PT_MWAIT_HINTS);
		put_hex(l, "extensions", m->value >> PT_MWAIT_EXT_SHIFT & PT_MWAIT_EXT);
		break;
	case FLOW_MARK_PWRE:
		put_state(l, "state", m->value, 12);
		put_number(l, "sub", m->value >> 8 & 0xf); /* as in MWAIT's hints */
		put_flag(l, "hardware", (m->value & PT_PWRE_HW) != 0);
		break;
	case FLOW_MARK_PWRX: put_pwrx(l, m->value); break;
	case FLOW_MARK_MNT: put_hex(l, "value", m->value); break;
	case FLOW_MARK_CFE: put_cfe(l, m); break;
	case FLOW_MARK_TRIG:
		put_hex(l, "hits", m->value);
		put_flag(l, "multiple", m->type == 1);
		if (m->size == 1)
			put_number(l, "count", m->evd[0]);
		break;
	case FLOW_MARK_PEBS:
		put_number(l, "type", m->type);
		put_number(l, "id", m->id);
		put_hex(l, "value", m->value);
		put_number(l, "bytes", m->size);
		break;
	case FLOW_MARK_OFF: lines_print(l, " how=unknown"); break;
	default: break;
	}
}

static void put_mark(struct lines *l, const struct flow_mark *m, uint64_t at)
{
	const char *name = m->kind == FLOW_MARK_CFE ? cfe_name(m->type) : mark_name(m);
	char other[16];

	if (m->kind == FLOW_MARK_TICK || (m->flags & FLOW_MARK_STATUS) != 0)
		return;
	if (!name) {
		snprintf(other, sizeof(other), "cfe-%u", m->type);
		name = other;
	}
	put_head(l, m->offset, m->tsc_lo, m->tsc_hi, name);
	put_details(l, m);
	put_ip(l, (m->flags & FLOW_MARK_HAS_IP) != 0 ? m->ip : at);
	put_end(l);
}

static void put_simple(struct lines *l, const struct flow_item *item, const char *kind, uint64_t ip)
{
	begin_item(l, item, kind);
	put_ip(l, ip);
	put_end(l);
}

int views_events(struct lines *l, const struct replay_stretch *s)
{
	for (size_t i = 0; i < s->n_items; i++) {
		const struct flow_item *item = &s->items[i];
		enum fault fault;

		switch (item->kind) {
		case FLOW_ENABLE: put_simple(l, item, "enable", item->to); break;
		case FLOW_SYSCALL:
		case FLOW_DISABLE:
			begin_item(l, item, "disable");
			lines_print(l, " how=%s",
				    item->flags & FLOW_ASYNC_STOP ? "async" : "branch");
			put_ip(l, item->from);
			put_end(l);
			break;
		case FLOW_ASYNC:
			begin_item(l, item, "async");
			put_hex(l, "from", item->from);
			put_hex(l, "to", item->to);
			put_end(l);
			break;
		case FLOW_END: put_simple(l, item, "end", item->from); break;
		case FLOW_GAP:
			fault = s->gaps[item->gap - s->first_gap].fault;
			if (fault == FAULT_OVERFLOW)
				put_simple(l, item, "overflow", item->from);
			else if (fault == FAULT_TRACESTOP)
				put_simple(l, item, "stop", item->from);
			lines_print(l, "# gap %s\n", fault_name(fault));
			break;
		case FLOW_MARK:
			put_mark(l, &s->marks[item->mark - s->first_mark], item->from);
			break;
		default: break;
		}
	}
	return l->error;
}
