/*
 * The text of ptxed's lines: its words for events and errors, and what the lines need to know of
 * instructions.
 *
 * Payloads are laid out as in SDM volume 3 (edition 083), 33.4.2.
 */
#include <inttypes.h>
#include <string.h>

#include "decoder/worker/view/views_ptxed.h"
#include "proto/base.h"
#include "proto/decode_options.h"
#include "proto/perf/ptpacket.h"

/* A C-state is encoded less one: 0 is C1, and 0xf is C0. */
static unsigned c_state(uint64_t payload, unsigned shift)
{
	return (unsigned)((payload >> shift) + 1) & 0xf;
}

/* libipt takes bit 3 for HW; in the SDM it is bit 7. */
#define LIBIPT_PWRE_HW 8u

static void put_cfe(struct lines *l, const struct flow_mark *m)
{
	switch (m->type) {
	case PT_CFE_INTR:
		lines_print(l, "interrupt %" PRIu64, m->value);
		if ((m->flags & FLOW_MARK_CR2) != 0)
			lines_print(l, ", cr2: %016" PRIx64, m->evd[0]);
		break;
	case PT_CFE_IRET: lines_print(l, "iret"); break;
	case PT_CFE_SMI: lines_print(l, "smi"); break;
	case PT_CFE_RSM: lines_print(l, "rsm"); break;
	case PT_CFE_SIPI: lines_print(l, "sipi: %" PRIx64, m->value); break;
	case PT_CFE_INIT: lines_print(l, "init"); break;
	case PT_CFE_VMENTRY: lines_print(l, "vmentry"); break;
	case PT_CFE_VMEXIT:
	case PT_CFE_VMEXIT_INTR:
		lines_print(l, "vmexit");
		if (m->type == PT_CFE_VMEXIT_INTR)
			lines_print(l, ", intr: %" PRIu64, m->value);
		if ((m->flags & FLOW_MARK_VMXR) != 0)
			lines_print(l, ", vmxr: %016" PRIx64, m->evd[2]);
		if ((m->flags & FLOW_MARK_VMXQ) != 0)
			lines_print(l, ", vmxq: %016" PRIx64, m->evd[1]);
		break;
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
	static const char *const modes[] = {
		[INSN_MODE_64] = "64-bit", [INSN_MODE_32] = "32-bit", [INSN_MODE_16] = "16-bit"};

	switch (m->kind) {
	case FLOW_MARK_MODE:
		lines_print(l, "exec mode: %s",
			    m->value < ARRAY_SIZE(modes) ? modes[m->value] : "<unknown>");
		break;
	case FLOW_MARK_IFLAG:
		lines_print(l, "interrupts %s", m->value != 0 ? "enabled" : "disabled");
		break;
	case FLOW_MARK_TSX:
		lines_print(l, "%s",
			    m->value == FLOW_TSX_ABORT	 ? "aborted"
			    : m->value == FLOW_TSX_BEGIN ? "begin transaction"
							 : "committed");
		break;
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
	case FLOW_MARK_PWRE:
		lines_print(l, "pwre c%u.%u%s", c_state(m->value, 12), c_state(m->value, 8),
			    (m->value & LIBIPT_PWRE_HW) != 0 ? " hw" : "");
		break;
	case FLOW_MARK_PWRX:
		lines_print(l, "pwrx %s%s%sc%u (c%u)",
			    (m->value & PT_PWRX_INTERRUPT) != 0 ? "int: " : "",
			    (m->value & PT_PWRX_STORE) != 0 ? "st: " : "",
			    (m->value & PT_PWRX_HW) != 0 ? "hw: " : "", c_state(m->value, 4),
			    c_state(m->value, 0));
		break;
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

/* --- Instructions --- */

/* The instruction at IP, its bytes, and the number of its file. False: the instruction cannot be
 * read. */
static bool read_insn(const struct views_ptxed *v, const struct replay_stretch *s, uint64_t ip,
		      struct insn *ret, uint8_t bytes[INSN_MAX_SIZE], uint32_t *ret_image)
{
	struct image_code code;
	size_t n;

	*ret_image = UINT32_MAX;
	if (replay_find(v->replay, s->context, ip, &code) != 0)
		return false;
	*ret_image = code.image;
	n = replay_read(v->replay, s->context, ip, bytes, INSN_MAX_SIZE);
	return insn_read(v->reader, v->mode, ip, bytes, n, ret) == 0;
}

/* Far transfers that come back to the next instruction: call far (9A, FF /3) and vmcall (0F 01 C1).
 * SDM volume 2. */
static bool is_far_call(const uint8_t *bytes, size_t size)
{
	size_t i = 0;

	while (i + 1 < size && (bytes[i] == 0x66 || (bytes[i] & 0xf0) == 0x40))
		i++;
	if (bytes[i] == 0x9a)
		return true;
	if (bytes[i] == 0xff)
		return i + 1 < size && (bytes[i + 1] >> 3 & 7) == 3;
	return size - i == 3 && memcmp(bytes + i, "\x0f\x01\xc1", 3) == 0;
}

uint64_t views_ptxed_behind(const struct views_ptxed *v, const struct replay_stretch *s,
			    uint64_t ip)
{
	struct insn insn;
	uint32_t image;
	uint8_t bytes[INSN_MAX_SIZE];

	if (!read_insn(v, s, ip, &insn, bytes, &image))
		return 0;
	switch (insn.class) {
	case INSN_CALL:
	case INSN_CALL_IND:
	case INSN_SYSCALL: return ip + insn.size;
	case INSN_FAR: return is_far_call(bytes, insn.size) ? ip + insn.size : 0;
	default: return 0;
	}
}

uint32_t views_ptxed_image(const struct views_ptxed *v, const struct replay_stretch *s, uint64_t ip,
			   bool *ret_ends)
{
	uint8_t bytes[INSN_MAX_SIZE];
	uint32_t image;
	struct insn insn;

	*ret_ends = read_insn(v, s, ip, &insn, bytes, &image) && insn.class == INSN_COND;
	return image;
}
