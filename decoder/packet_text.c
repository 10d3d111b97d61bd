/*
 * A packet as one line of text, named and written as libipt's ptdump does. For --view=packets.
 */
#include <inttypes.h>
#include <stdio.h>

#include "decoder/packet.h"
#include "proto/ptpacket.h"

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
};
/* clang-format on */

const char *packet_name(const struct packet *p)
{
	if (p->type >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	if (p->type == PACKET_TNT && p->size != 1)
		return "tnt.64";
	return names[p->type];
}

static void put_tnt(const struct packet *p, char *to)
{
	for (unsigned int i = p->u.tnt.n; i > 0; i--)
		*to++ = (p->u.tnt.bits >> (i - 1) & 1) != 0 ? '!' : '.';
	*to = '\0';
}

/* IPBytes, then the 16 digits; the ones that the packet does not carry as question marks. */
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

static void put_exec(const struct packet *p, char *to, size_t size)
{
	uint8_t bits = p->u.mode.bits;
	const char *mode = (bits & PT_MODE_EXEC_CSL) != 0   ? "cs.l"
			   : (bits & PT_MODE_EXEC_CSD) != 0 ? "cs.d"
							    : "";

	snprintf(to, size, "%s%s%s", mode, *mode != '\0' && (bits & 4) != 0 ? ", " : "",
		 (bits & PT_MODE_EXEC_IFLAG) != 0 ? "if" : "");
}

static void put_tsx(const struct packet *p, char *to, size_t size)
{
	uint8_t bits = p->u.mode.bits;

	snprintf(to, size, "%s%s%s", (bits & 1) != 0 ? "intx" : "", (bits & 3) == 3 ? ", " : "",
		 (bits & 2) != 0 ? "abrt" : "");
}

static void put_payload(const struct packet *p, char *to, size_t size)
{
	*to = '\0';
	switch (p->type) {
	case PACKET_TNT: put_tnt(p, to); break;
	case PACKET_TIP:
	case PACKET_TIP_PGE:
	case PACKET_TIP_PGD:
	case PACKET_FUP: put_ip(p, to, size); break;
	case PACKET_MODE_EXEC: put_exec(p, to, size); break;
	case PACKET_MODE_TSX: put_tsx(p, to, size); break;
	case PACKET_PIP:
		snprintf(to, size, "%" PRIx64 "%s", p->u.pip.cr3, p->u.pip.nr != 0 ? ", nr" : "");
		break;
	case PACKET_CBR: snprintf(to, size, "%x", p->u.cbr.ratio); break;
	case PACKET_MTC: snprintf(to, size, "%x", p->u.mtc.ctc); break;
	case PACKET_TMA: snprintf(to, size, "%x, %x", p->u.tma.ctc, p->u.tma.fc); break;
	case PACKET_TSC:
	case PACKET_CYC:
	case PACKET_MNT:
	case PACKET_VMCS:
	case PACKET_PWRE:
	case PACKET_PWRX: snprintf(to, size, "%" PRIx64, p->u.tsc.value); break;
	case PACKET_MWAIT:
		snprintf(to, size, "%08" PRIx64 ", %08" PRIx64, p->u.mwait.value & 0xffffffff,
			 p->u.mwait.value >> 32);
		break;
	case PACKET_PTW:
		snprintf(to, size, "%" PRIx64 "%s", p->u.ptw.payload,
			 p->u.ptw.ip != 0 ? ", ip" : "");
		break;
	case PACKET_EXSTOP:
	case PACKET_BEP: snprintf(to, size, "%s", p->u.exstop.ip != 0 ? "ip" : ""); break;
	case PACKET_BBP: snprintf(to, size, "%x, %u", p->u.bbp.type, p->u.bbp.bytes); break;
	case PACKET_BIP: snprintf(to, size, "%x, %" PRIx64, p->u.bip.id, p->u.bip.payload); break;
	case PACKET_CFE:
		snprintf(to, size, "%x, %x%s", p->u.cfe.type, p->u.cfe.vector,
			 p->u.cfe.ip != 0 ? ", ip" : "");
		break;
	case PACKET_EVD: snprintf(to, size, "%x, %" PRIx64, p->u.evd.type, p->u.evd.value); break;
	default: break;
	}
}

size_t packet_format(const struct packet *p, uint64_t offset, char *to, size_t size)
{
	char payload[64];
	int n;

	put_payload(p, payload, sizeof(payload));
	if (payload[0] != '\0')
		n = snprintf(to, size, "%016" PRIx64 "  %-9s  %s", offset, packet_name(p), payload);
	else
		n = snprintf(to, size, "%016" PRIx64 "  %s", offset, packet_name(p));
	return n < 0 ? 0 : (size_t)n;
}
