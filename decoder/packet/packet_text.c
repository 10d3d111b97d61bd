/*
 * Writes a packet as one line of text, as libipt's ptdump does, for --view=packets.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/packet/packet.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* clang-format off */
static const char *const names[] = {
	[PACKET_PAD] = "pad", [PACKET_PSB] = "psb", [PACKET_PSBEND] = "psbend",
	[PACKET_TNT] = "tnt.8", [PACKET_TIP] = "tip", [PACKET_TIP_PGE] = "tip.pge",
	[PACKET_TIP_PGD] = "tip.pgd", [PACKET_FUP] = "fup", [PACKET_PIP] = "pip",
	[PACKET_MODE_EXEC] = "mode.exec", [PACKET_MODE_TSX] = "mode.tsx",
	[PACKET_TRACESTOP] = "stop", [PACKET_CBR] = "cbr", [PACKET_TSC] = "tsc",
	[PACKET_MTC] = "mtc", [PACKET_TMA] = "tma", [PACKET_CYC] = "cyc",
	[PACKET_VMCS] = "vmcs", [PACKET_OVF] = "ovf", [PACKET_MNT] = "mnt",
	[PACKET_PTW] = "ptw", [PACKET_EXSTOP] = "exstop", [PACKET_MWAIT] = "mwait",
	[PACKET_PWRE] = "pwre", [PACKET_PWRX] = "pwrx", [PACKET_BBP] = "bbp",
	[PACKET_BIP] = "bip", [PACKET_BEP] = "bep", [PACKET_CFE] = "cfe", [PACKET_EVD] = "evd",
	[PACKET_TRIG] = "trig", [PACKET_INVALID] = "<invalid>",
};

/* CFE and EVD types: SDM tables 33-46 "CFE Packet Type and Vector Fields Details" and "EVD". */
static const char *const cfe_types[] = {
	[1] = "intr", [2] = "iret", [3] = "smi", [4] = "rsm", [5] = "sipi", [6] = "init",
	[7] = "vmentry", [8] = "vmexit", [9] = "vmexit_intr", [10] = "shutdown", [12] = "uintr",
	[13] = "uiret", [14] = "swintr", [15] = "syscall",
};
static const char *const evd_types[] = {"cr2", "vmxq", "vmxr"};
/* clang-format on */

const char *packet_name(const struct packet *p)
{
	if (p->type >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	if (p->type == PACKET_TNT && p->size != 1)
		return "tnt.64";
	return names[p->type];
}

/* Appends TEXT to the list in TO if SET. */
static void put_flag(char *to, size_t size, bool set, const char *text)
{
	size_t used = strlen(to);

	if (set)
		snprintf(to + used, size - used, "%s%s", used > 0 ? ", " : "", text);
}

/* IPBytes, then 16 digits, with question marks for the digits that the packet does not carry. */
static void put_ip(const struct packet *p, char *to, size_t size)
{
	static const char unknown[] = "????????????????";
	static const uint8_t digits[8] = {0, 4, 8, 16, 12, 0, 16, 0};
	int known = digits[p->u.ip.bytes & 7];
	uint64_t value = p->u.ip.raw;

	if (p->u.ip.bytes == PT_IPB_SEXT48)
		value = (value ^ UINT64_C(1) << 47) - (UINT64_C(1) << 47);
	if (known == 0)
		snprintf(to, size, "%x: %s", p->u.ip.bytes, unknown);
	else
		snprintf(to, size, "%x: %.*s%0*" PRIx64, p->u.ip.bytes, 16 - known, unknown, known,
			 value);
}

static void put_pwrx(uint64_t value, char *to, size_t size)
{
	const char *why;

	/* These bits say what ended the sleep: an interrupt, a store to the monitored address, or
	 * the hardware by itself. */
	switch (value >> 8 & 0xd) {
	case 1: why = "int"; break;
	case 4: why = " st"; break;
	case 8: why = " hw"; break;
	default: why = "bad"; break;
	}
	snprintf(to, size, "%s: c%u, c%u", why, (unsigned int)((value >> 4) + 1) & 0xf,
		 (unsigned int)(value + 1) & 0xf);
}

static void put_cfe(const struct packet *p, struct packet_text *t)
{
	const char *name = p->u.cfe.type < ARRAY_SIZE(cfe_types) ? cfe_types[p->u.cfe.type] : NULL;
	int used = snprintf(t->payload, sizeof(t->payload), "%u", p->u.cfe.type);
	char *to = t->payload + used;
	size_t size = sizeof(t->payload) - (size_t)used;

	/* Only some types have a vector. A SIPI's is part of an address. */
	switch (p->u.cfe.type) {
	case PT_CFE_INTR:
	case PT_CFE_VMEXIT_INTR:
	case PT_CFE_UINTR:
	case PT_CFE_SWINTR: snprintf(to, size, ": %u", p->u.cfe.vector); break;
	case PT_CFE_SIPI: snprintf(to, size, ": %x", p->u.cfe.vector); break;
	default: break;
	}
	put_flag(t->payload, sizeof(t->payload), p->u.cfe.ip != 0, "ip");
	snprintf(t->key, sizeof(t->key), "type");
	snprintf(t->value, sizeof(t->value), "%s", name ? name : "unknown");
}

/* A packet that loads a register VALUE, which gets a column of its own. */
static void put_loaded(struct packet_text *t, const char *key, uint64_t value, bool nr)
{
	snprintf(t->payload, sizeof(t->payload), "%" PRIx64 "%s", value, nr ? ", nr" : "");
	snprintf(t->key, sizeof(t->key), "%s", key);
	snprintf(t->value, sizeof(t->value), "%016" PRIx64, value);
}

static void put_payload(const struct packet *p, char *to, size_t size)
{
	char count[16];

	switch (p->type) {
	case PACKET_TIP:
	case PACKET_TIP_PGE:
	case PACKET_TIP_PGD:
	case PACKET_FUP: put_ip(p, to, size); break;
	case PACKET_MODE_EXEC:
		put_flag(to, size, (p->u.mode.bits & PT_MODE_EXEC_CSD) != 0, "cs.d");
		put_flag(to, size, (p->u.mode.bits & PT_MODE_EXEC_CSL) != 0, "cs.l");
		put_flag(to, size, (p->u.mode.bits & PT_MODE_EXEC_IFLAG) != 0, "if");
		break;
	case PACKET_MODE_TSX:
		put_flag(to, size, (p->u.mode.bits & 1) != 0, "intx");
		put_flag(to, size, (p->u.mode.bits & 2) != 0, "abrt");
		break;
	case PACKET_CBR: snprintf(to, size, "%x", p->u.cbr.ratio); break;
	case PACKET_MTC: snprintf(to, size, "%x", p->u.mtc.ctc); break;
	case PACKET_TMA: snprintf(to, size, "%x, %x", p->u.tma.ctc, p->u.tma.fc); break;
	case PACKET_TSC:
	case PACKET_CYC:
	case PACKET_MNT: snprintf(to, size, "%" PRIx64, p->u.tsc.value); break;
	case PACKET_PWRE:
		/* C-states count from 0 in the text and from -1 in the packet. */
		snprintf(to, size, "c%u.%u%s", (unsigned int)((p->u.pwre.value >> 12) + 1) & 0xf,
			 (unsigned int)((p->u.pwre.value >> 8) + 1) & 0xf,
			 (p->u.pwre.value & 0x08) != 0 ? ", hw" : "");
		break;
	case PACKET_PWRX: put_pwrx(p->u.pwrx.value, to, size); break;
	case PACKET_MWAIT:
		snprintf(to, size, "%08" PRIx64 ", %08" PRIx64, p->u.mwait.value & 0xffffffff,
			 p->u.mwait.value >> 32);
		break;
	case PACKET_PTW:
		snprintf(to, size, "%x: %" PRIx64 "%s", p->u.ptw.bytes == 8, p->u.ptw.payload,
			 p->u.ptw.ip != 0 ? ", ip" : "");
		break;
	case PACKET_EXSTOP:
	case PACKET_BEP: put_flag(to, size, p->u.exstop.ip != 0, "ip"); break;
	case PACKET_BBP: snprintf(to, size, "%x, %u", p->u.bbp.type, p->u.bbp.bytes); break;
	case PACKET_BIP: snprintf(to, size, "%x, %" PRIx64, p->u.bip.id, p->u.bip.payload); break;
	case PACKET_TRIG:
		snprintf(to, size, "%02x", p->u.trig.trbv);
		snprintf(count, sizeof(count), "icnt: %u", p->u.trig.icnt);
		put_flag(to, size, p->u.trig.ip != 0, "ip");
		put_flag(to, size, p->u.trig.mult != 0, "mult");
		put_flag(to, size, p->u.trig.has_icnt != 0, count);
		break;
	default: break;
	}
}

void packet_describe(const struct packet *p, struct packet_text *ret)
{
	char *to = ret->payload;

	ret->payload[0] = ret->key[0] = ret->value[0] = '\0';
	ret->wide = p->type == PACKET_TNT;
	switch (p->type) {
	case PACKET_TNT:
		for (unsigned int i = p->u.tnt.n; i > 0; i--)
			*to++ = (p->u.tnt.bits >> (i - 1) & 1) != 0 ? '!' : '.';
		*to = '\0';
		break;
	case PACKET_PIP: put_loaded(ret, "cr3", p->u.pip.cr3, p->u.pip.nr != 0); break;
	case PACKET_VMCS: put_loaded(ret, "vmcs", p->u.vmcs.value, false); break;
	case PACKET_CFE: put_cfe(p, ret); break;
	case PACKET_EVD:
		snprintf(to, sizeof(ret->payload), "%u: %" PRIx64, p->u.evd.type, p->u.evd.value);
		snprintf(ret->key, sizeof(ret->key), "type");
		snprintf(ret->value, sizeof(ret->value), "%s",
			 p->u.evd.type < ARRAY_SIZE(evd_types) ? evd_types[p->u.evd.type]
							       : "unknown");
		break;
	default: put_payload(p, ret->payload, sizeof(ret->payload)); break;
	}
}

size_t packet_columns(const struct packet *p, const struct packet_text *t, char *to, size_t size)
{
	/* The name is padded to the column's width only if something follows. */
	int width = t->payload[0] != '\0' ? 10 : 0, n;

	if (t->key[0] != '\0' && !t->wide)
		n = snprintf(to, size, "%-*s %-25s %-5s%s", width, packet_name(p), t->payload,
			     t->key, t->value);
	else if (t->payload[0] != '\0')
		n = snprintf(to, size, "%-*s %s", width, packet_name(p), t->payload);
	else
		n = snprintf(to, size, "%s", packet_name(p));
	return n < 0 ? 0 : MIN_OF((size_t)n, size - 1);
}

size_t packet_format(const struct packet *p, uint64_t offset, char *to, size_t size)
{
	struct packet_text t;
	int n = snprintf(to, size, "%016" PRIx64 "  ", offset);

	packet_describe(p, &t);
	return (size_t)n + packet_columns(p, &t, to + n, size - (size_t)n);
}

/* Whether some packet begins with this opcode. */
static bool opcode_known(const uint8_t *pos, const uint8_t *end)
{
	if (pos[0] == PT_OPC_EXT)
		return end - pos > 1 &&
		       (pos[1] == PT_EXT_PSB || pos[1] == PT_EXT_TNT64 || pos[1] == PT_EXT_TMA ||
			(pos[1] & PT_EXT_PTW_MASK) == PT_EXT_PTW);
	if ((pos[0] & 1) == 0 || (pos[0] & PT_OPC_CYC_MASK) == PT_OPC_CYC)
		return true;
	switch (pos[0] & PT_OPC_IP_MASK) {
	case PT_OPC_TIP:
	case PT_OPC_TIP_PGE:
	case PT_OPC_TIP_PGD:
	case PT_OPC_FUP: return true;
	default: return pos[0] == PT_OPC_MODE || pos[0] == PT_OPC_TRIG;
	}
}

const char *packet_why(const uint8_t *pos, const uint8_t *end)
{
	return pos < end && opcode_known(pos, end) ? "unknown packet" : "unknown opcode";
}
