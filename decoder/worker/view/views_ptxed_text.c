/*
 * What ptxed writes for each kind of event and error. Part of views_ptxed.c. Payloads are laid out
 * as SDM volume 3 (edition 083), 33.4.2, shows them for the packet.
 */
#include <inttypes.h>

#include "decoder/worker/view/views_ptxed.h"
#include "proto/base.h"
#include "proto/decode_options.h"
#include "proto/perf/ptpacket.h"

static void put_mode(struct lines *l, uint64_t mode)
{
	static const char *const names[] = {
		[INSN_MODE_64] = "64-bit", [INSN_MODE_32] = "32-bit", [INSN_MODE_16] = "16-bit"};

	lines_print(l, "exec mode: %s", mode < ARRAY_SIZE(names) ? names[mode] : "<unknown>");
}

static void put_tsx(struct lines *l, uint64_t what)
{
	lines_print(l, "%s",
		    what == FLOW_TSX_ABORT   ? "aborted"
		    : what == FLOW_TSX_BEGIN ? "begin transaction"
					     : "committed");
}

/* C-states are counted from C1; 0xf is C0. */
static unsigned c_state(uint64_t payload, unsigned shift)
{
	return (unsigned)((payload >> shift) + 1) & 0xf;
}

/* libipt takes bit 3 for HW, which the SDM has as bit 7. */
#define LIBIPT_PWRE_HW 8u

static void put_pwre(struct lines *l, uint64_t payload)
{
	lines_print(l, "pwre c%u.%u%s", c_state(payload, 12), c_state(payload, 8),
		    (payload & LIBIPT_PWRE_HW) != 0 ? " hw" : "");
}

static void put_pwrx(struct lines *l, uint64_t payload)
{
	lines_print(l, "pwrx %s%s%sc%u (c%u)", (payload & PT_PWRX_INTERRUPT) != 0 ? "int: " : "",
		    (payload & PT_PWRX_STORE) != 0 ? "st: " : "",
		    (payload & PT_PWRX_HW) != 0 ? "hw: " : "", c_state(payload, 4),
		    c_state(payload, 0));
}

static void put_interrupt(struct lines *l, const struct flow_mark *m)
{
	lines_print(l, "interrupt %" PRIu64, m->value);
	if ((m->flags & FLOW_MARK_CR2) != 0)
		lines_print(l, ", cr2: %016" PRIx64, m->evd[0]);
}

static void put_vmexit(struct lines *l, const struct flow_mark *m)
{
	lines_print(l, "vmexit");
	if (m->type == PT_CFE_VMEXIT_INTR)
		lines_print(l, ", intr: %" PRIu64, m->value);
	if ((m->flags & FLOW_MARK_VMXR) != 0)
		lines_print(l, ", vmxr: %016" PRIx64, m->evd[2]);
	if ((m->flags & FLOW_MARK_VMXQ) != 0)
		lines_print(l, ", vmxq: %016" PRIx64, m->evd[1]);
}

static void put_cfe(struct lines *l, const struct flow_mark *m)
{
	switch (m->type) {
	case PT_CFE_INTR: put_interrupt(l, m); break;
	case PT_CFE_IRET: lines_print(l, "iret"); break;
	case PT_CFE_SMI: lines_print(l, "smi"); break;
	case PT_CFE_RSM: lines_print(l, "rsm"); break;
	case PT_CFE_SIPI: lines_print(l, "sipi: %" PRIx64, m->value); break;
	case PT_CFE_INIT: lines_print(l, "init"); break;
	case PT_CFE_VMENTRY: lines_print(l, "vmentry"); break;
	case PT_CFE_VMEXIT:
	case PT_CFE_VMEXIT_INTR: put_vmexit(l, m); break;
	case PT_CFE_SHUTDOWN: lines_print(l, "shutdown"); break;
	case PT_CFE_UINTR: lines_print(l, "uintr %" PRIu64, m->value); break;
	case PT_CFE_UIRET: lines_print(l, "uiret"); break;
	case PT_CFE_SWINTR: lines_print(l, "swintr %" PRIu64, m->value); break;
	case PT_CFE_SYSCALL: lines_print(l, "syscall"); break;
	default: break;
	}
}

bool views_ptxed_knows(const struct flow_mark *m)
{
	if (m->kind == FLOW_MARK_CFE)
		return (m->type >= PT_CFE_INTR && m->type <= PT_CFE_SHUTDOWN) ||
		       (m->type >= PT_CFE_UINTR && m->type <= PT_CFE_SYSCALL);
	return m->kind != FLOW_MARK_PEBS && m->kind < FLOW_MARK_N_;
}

void views_ptxed_mark(struct lines *l, const struct flow_mark *m, bool ip)
{
	switch (m->kind) {
	case FLOW_MARK_MODE: put_mode(l, m->value); break;
	case FLOW_MARK_IFLAG:
		lines_print(l, "interrupts %s", m->value != 0 ? "enabled" : "disabled");
		break;
	case FLOW_MARK_TSX: put_tsx(l, m->value); break;
	case FLOW_MARK_PAGING:
		lines_print(l, "paging, cr3: %016" PRIx64 "%s", m->value,
			    (m->flags & FLOW_MARK_NON_ROOT) != 0 ? ", nr" : "");
		break;
	case FLOW_MARK_VMCS: lines_print(l, "vmcs, base: %016" PRIx64, m->value); break;
	case FLOW_MARK_PTWRITE: lines_print(l, "ptwrite: %" PRIx64, m->value); break;
	case FLOW_MARK_CBR: lines_print(l, "cbr: %" PRIx64, m->value); break;
	case FLOW_MARK_EXSTOP: lines_print(l, "exstop"); break;
	case FLOW_MARK_MWAIT:
		lines_print(l, "mwait %" PRIx64 " %" PRIx64, m->value & PT_MWAIT_HINTS,
			    m->value >> PT_MWAIT_EXT_SHIFT & PT_MWAIT_EXT);
		break;
	case FLOW_MARK_PWRE: put_pwre(l, m->value); break;
	case FLOW_MARK_PWRX: put_pwrx(l, m->value); break;
	case FLOW_MARK_MNT: lines_print(l, "mnt: %" PRIx64, m->value); break;
	case FLOW_MARK_CFE: put_cfe(l, m); break;
	case FLOW_MARK_TRIG:
		lines_print(l, "trig %02" PRIx64 "%s", m->value, m->type == 1 ? ", mult" : "");
		break;
	case FLOW_MARK_OFF: lines_print(l, "disabled"); break;
	case FLOW_MARK_TICK: lines_print(l, "tick"); break;
	default: break;
	}
	if (ip && (m->flags & FLOW_MARK_HAS_IP) != 0)
		lines_print(l, ", ip: %016" PRIx64, m->ip);
}

const char *views_ptxed_error(enum fault fault)
{
	switch (fault) {
	case FAULT_UNMAPPED:
	case FAULT_ANONYMOUS:
	case FAULT_IMAGE_MISSING:
	case FAULT_IMAGE_SHORT:
	case FAULT_IMAGE_MISMATCH:
	case FAULT_IMAGE_GONE:
	case FAULT_KERNEL_TEXT:
	case FAULT_NO_SPACE:
	case FAULT_GUEST: return "no memory mapped at this address";
	case FAULT_BAD_INSN:
	case FAULT_LOOP: return "unknown instruction";
	case FAULT_BAD_PACKET: return "unknown opcode";
	case FAULT_CODE_CHANGED:
	case FAULT_TNT_UNEXPECTED:
	case FAULT_TIP_UNEXPECTED:
	case FAULT_EVENT_UNREACHABLE: return "trace stream does not match query";
	case FAULT_TIP_NO_IP: return "no ip";
	case FAULT_RET_EMPTY: return "compressed return without call";
	case FAULT_RET_NOT_TAKEN: return "bad compressed return";
	case FAULT_PACKET_UNEXPECTED: return "unexpected packet context";
	case FAULT_STATUS: return "bad status update";
	case FAULT_UNSUPPORTED: return "not supported";
	default: return NULL;
	}
}
