/*
 * Reads packets, and finds PSBs in a trace whose packet boundaries are unknown.
 *
 * Layouts: SDM volume 3 (edition 083), 33.4.2 "Packet Definitions".
 */
#include "decoder/packet/packet.h"

#include <string.h>

#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* Little-endian number of N (<= 8) bytes. */
static uint64_t number(const uint8_t *pos, size_t n)
{
	uint64_t value = 0;

	for (size_t i = n; i > 0; i--)
		value = value << 8 | pos[i - 1];
	return value;
}

static int read_tnt(uint64_t payload, struct packet *ret)
{
	unsigned int n = payload != 0 ? 63u - (unsigned int)__builtin_clzll(payload) : 0;

	/* The hardware writes neither a TNT without a stop bit nor one without a branch. */
	if (n == 0)
		return PACKET_BAD;
	ret->u.tnt.bits = payload & ((UINT64_C(1) << n) - 1);
	ret->u.tnt.n = (uint8_t)n;
	return 0;
}

/* Payload bytes by enum pt_ipbytes; 0xff: reserved. */
static const uint8_t ip_sizes[8] = {0, 2, 4, 6, 6, 0xff, 8, 0xff};

static int read_ip(const uint8_t *pos, const uint8_t *end, enum packet_type type,
		   struct packet *ret)
{
	uint8_t bytes = pos[0] >> 5, size = ip_sizes[bytes];

	if (size == 0xff)
		return PACKET_BAD;
	if (end - pos < 1 + size)
		return PACKET_SHORT;
	ret->type = (uint8_t)type;
	ret->size = (uint8_t)(1 + size);
	ret->u.ip.raw = number(pos + 1, size);
	ret->u.ip.bytes = bytes;
	return 0;
}

/* A CYC has 5 bits and a bit "another byte follows" in the first byte, and 7 bits and such a bit in
 * each of the others. */
static int read_cyc(const uint8_t *pos, const uint8_t *end, struct packet *ret)
{
	uint64_t value = pos[0] >> 3;
	unsigned int shift = 5;
	bool more = (pos[0] & 0x04) != 0;
	uint8_t size = 1;

	while (more) {
		uint64_t bits;

		if (end - pos <= size)
			return PACKET_SHORT;
		bits = pos[size] >> 1;
		if (shift > 63 || (bits << shift) >> shift != bits)
			return PACKET_BAD;
		value |= bits << shift;
		shift += 7;
		more = (pos[size++] & 0x01) != 0;
	}
	ret->type = PACKET_CYC;
	ret->size = size;
	ret->u.cyc.value = value;
	return 0;
}

static int read_psb(const uint8_t *pos, const uint8_t *end, struct packet *ret)
{
	for (size_t i = 2; i < PT_PSB_SIZE; i++) {
		if ((size_t)(end - pos) <= i)
			return PACKET_SHORT;
		if (pos[i] != (i % 2 == 0 ? PT_OPC_EXT : PT_EXT_PSB))
			return PACKET_BAD;
	}
	ret->type = PACKET_PSB;
	ret->size = PT_PSB_SIZE;
	return 0;
}

/* The type and size of the packets that begin with PT_OPC_EXT, by the second byte; size 0: none. */
static const struct {
	uint8_t type, size;
} ext_layout[256] = {
	[PT_EXT_TNT64] = {PACKET_TNT, 8},
	[PT_EXT_CBR] = {PACKET_CBR, 4},
	[PT_EXT_VMCS] = {PACKET_VMCS, 7},
	[PT_EXT_OVF] = {PACKET_OVF, 2},
	[PT_EXT_PSBEND] = {PACKET_PSBEND, 2},
	[PT_EXT_PIP] = {PACKET_PIP, 8},
	[PT_EXT_TRACESTOP] = {PACKET_TRACESTOP, 2},
	[PT_EXT_TMA] = {PACKET_TMA, 7},
	[PT_EXT_MNT] = {PACKET_MNT, 11},
	[PT_EXT_EXSTOP] = {PACKET_EXSTOP, 2},
	[PT_EXT_EXSTOP_IP] = {PACKET_EXSTOP, 2},
	[PT_EXT_MWAIT] = {PACKET_MWAIT, 10},
	[PT_EXT_PWRE] = {PACKET_PWRE, 4},
	[PT_EXT_PWRX] = {PACKET_PWRX, 7},
	[PT_EXT_PTW] = {PACKET_PTW, 6},
	[PT_EXT_PTW | 0x20] = {PACKET_PTW, 10},
	[PT_EXT_PTW | 0x80] = {PACKET_PTW, 6},
	[PT_EXT_PTW | 0xa0] = {PACKET_PTW, 10},
	[PT_EXT_BBP] = {PACKET_BBP, 3},
	[PT_EXT_BEP] = {PACKET_BEP, 2},
	[PT_EXT_BEP_IP] = {PACKET_BEP, 2},
	[PT_EXT_CFE] = {PACKET_CFE, 4},
	[PT_EXT_EVD] = {PACKET_EVD, 11},
};

static int read_ext_payload(const uint8_t *pos, struct packet *ret)
{
	switch (ret->type) {
	case PACKET_TNT: return read_tnt(number(pos + 2, 6), ret);
	case PACKET_TMA:
		/* Byte 4 and bits 15:9 of the fast counter's field are reserved. */
		if (pos[4] != 0 || (pos[6] & 0xfe) != 0)
			return PACKET_BAD;
		ret->u.tma.ctc = (uint16_t)number(pos + 2, 2);
		ret->u.tma.fc = (uint16_t)number(pos + 5, 2);
		break;
	case PACKET_CBR: ret->u.cbr.ratio = pos[2]; break;
	case PACKET_VMCS: ret->u.vmcs.value = number(pos + 2, 5) << 12; break;
	case PACKET_PIP:
		ret->u.pip.nr = pos[2] & 1;
		ret->u.pip.cr3 = (number(pos + 2, 6) & ~UINT64_C(1)) << 4;
		break;
	case PACKET_MNT:
		if (pos[2] != 0x88)
			return PACKET_BAD;
		ret->u.mnt.value = number(pos + 3, 8);
		break;
	case PACKET_EXSTOP: ret->u.exstop.ip = pos[1] >> 7; break;
	case PACKET_BEP: ret->u.bep.ip = pos[1] >> 7; break;
	case PACKET_MWAIT: ret->u.mwait.value = number(pos + 2, 8); break;
	case PACKET_PWRE: ret->u.pwre.value = number(pos + 2, 2); break;
	case PACKET_PWRX: ret->u.pwrx.value = number(pos + 2, 5); break;
	case PACKET_PTW:
		ret->u.ptw.bytes = (uint8_t)(ret->size - 2);
		ret->u.ptw.payload = number(pos + 2, ret->u.ptw.bytes);
		ret->u.ptw.ip = pos[1] >> 7;
		break;
	case PACKET_BBP:
		/* SDM "Block Begin Packet": SZ in bit 7 (1: 4 bytes), type in bits 4:0. */
		ret->u.bbp.type = pos[2] & 0x1f;
		ret->u.bbp.bytes = (pos[2] & 0x80) != 0 ? 4 : 8;
		break;
	case PACKET_CFE:
		ret->u.cfe.type = pos[2] & 0x1f;
		ret->u.cfe.ip = pos[2] >> 7;
		ret->u.cfe.vector = pos[3];
		break;
	case PACKET_EVD:
		ret->u.evd.type = pos[2] & 0x3f;
		ret->u.evd.value = number(pos + 3, 8);
		break;
	default: break;
	}
	return 0;
}

static int read_ext(const uint8_t *pos, const uint8_t *end, struct packet *ret)
{
	if (end - pos < 2)
		return PACKET_SHORT;
	if (pos[1] == PT_EXT_PSB)
		return read_psb(pos, end, ret);
	if (ext_layout[pos[1]].size == 0)
		return PACKET_BAD;
	if (end - pos < ext_layout[pos[1]].size)
		return PACKET_SHORT;
	ret->type = ext_layout[pos[1]].type;
	ret->size = ext_layout[pos[1]].size;
	return read_ext_payload(pos, ret);
}

/* SDM "Trigger Tracing". */
static int read_trig(const uint8_t *pos, const uint8_t *end, struct packet *ret)
{
	uint8_t size;

	if (end - pos < 2)
		return PACKET_SHORT;
	if ((pos[1] & PT_TRIG_RESERVED) != 0)
		return PACKET_BAD;
	size = (pos[1] & PT_TRIG_ICNT) != 0 ? 5 : 3;
	if (end - pos < size)
		return PACKET_SHORT;
	ret->type = PACKET_TRIG;
	ret->size = size;
	ret->u.trig.ip = (pos[1] & PT_TRIG_IP) != 0;
	ret->u.trig.mult = (pos[1] & PT_TRIG_MULT) != 0;
	ret->u.trig.has_icnt = size == 5;
	ret->u.trig.trbv = pos[2];
	ret->u.trig.icnt = (uint16_t)number(pos + 3, size - 3u);
	return 0;
}

/* The opcodes with a fixed payload behind one byte. */
static int read_fixed(const uint8_t *pos, const uint8_t *end, struct packet *ret)
{
	uint8_t size = pos[0] == PT_OPC_TSC ? 1 + PT_TSC_BYTES : 2, leaf;

	if (pos[0] != PT_OPC_TSC && pos[0] != PT_OPC_MTC && pos[0] != PT_OPC_MODE)
		return PACKET_BAD;
	if (end - pos < size)
		return PACKET_SHORT;
	ret->size = size;
	switch (pos[0]) {
	case PT_OPC_TSC:
		ret->type = PACKET_TSC;
		ret->u.tsc.value = number(pos + 1, PT_TSC_BYTES);
		return 0;
	case PT_OPC_MTC:
		ret->type = PACKET_MTC;
		ret->u.mtc.ctc = pos[1];
		return 0;
	default:
		leaf = pos[1] & PT_MODE_LEAF_MASK;
		if (leaf != PT_MODE_EXEC && leaf != PT_MODE_TSX)
			return PACKET_BAD;
		ret->type = leaf == PT_MODE_EXEC ? PACKET_MODE_EXEC : PACKET_MODE_TSX;
		ret->u.mode.bits = pos[1] & (uint8_t)~PT_MODE_LEAF_MASK;
		return 0;
	}
}

static int read_any(const uint8_t *pos, const uint8_t *end, struct packet *ret)
{
	if (pos[0] == PT_OPC_EXT)
		return read_ext(pos, end, ret);
	if ((pos[0] & 1) == 0) {
		ret->size = 1;
		ret->type = pos[0] == PT_OPC_PAD ? PACKET_PAD : PACKET_TNT;
		return pos[0] == PT_OPC_PAD ? 0 : read_tnt((uint64_t)pos[0] >> 1, ret);
	}
	if ((pos[0] & PT_OPC_CYC_MASK) == PT_OPC_CYC)
		return read_cyc(pos, end, ret);
	if (pos[0] == PT_OPC_TRIG)
		return read_trig(pos, end, ret);
	switch (pos[0] & PT_OPC_IP_MASK) {
	case PT_OPC_TIP: return read_ip(pos, end, PACKET_TIP, ret);
	case PT_OPC_TIP_PGE: return read_ip(pos, end, PACKET_TIP_PGE, ret);
	case PT_OPC_TIP_PGD: return read_ip(pos, end, PACKET_TIP_PGD, ret);
	case PT_OPC_FUP: return read_ip(pos, end, PACKET_FUP, ret);
	default: return read_fixed(pos, end, ret);
	}
}

int packet_read(const uint8_t *pos, const uint8_t *end, struct packet *ret)
{
	struct packet p = {0};
	int r;

	if (pos >= end)
		return PACKET_SHORT;
	r = read_any(pos, end, &p);
	if (r == 0)
		*ret = p;
	return r;
}

/* SDM "Block Item Packet": ID in bits 7:3, 100b in bits 2:0, then 4 or 8 bytes. */
static int read_bip(const struct packet_cursor *c, struct packet *ret)
{
	if (c->end - c->pos < 1 + c->bip_bytes)
		return PACKET_SHORT;
	*ret = (struct packet){.type = PACKET_BIP, .size = (uint8_t)(1 + c->bip_bytes)};
	ret->u.bip.id = c->pos[0] >> 3;
	ret->u.bip.bytes = c->bip_bytes;
	ret->u.bip.payload = number(c->pos + 1, c->bip_bytes);
	return 0;
}

/* Erratum SKD007: turns a CYC of two bytes into an OVF if its second byte is the first byte of an
 * OVF, and the second byte of an OVF follows. */
static void mend_skd007(struct packet_cursor *c, struct packet *p)
{
	if (p->size != 2 || c->pos[1] != PT_OPC_EXT || c->end - c->pos < 3 ||
	    c->pos[2] != PT_EXT_OVF)
		return;
	*p = (struct packet){.type = PACKET_OVF, .size = 3};
}

/* Erratum SKZ84: a TMA with reserved bits set is a byte longer and has no meaning. */
static int mend_skz84(const struct packet_cursor *c, struct packet *p)
{
	uint8_t size = ext_layout[PT_EXT_TMA].size + 1;

	if (c->end - c->pos < size || c->pos[0] != PT_OPC_EXT || c->pos[1] != PT_EXT_TMA)
		return PACKET_BAD;
	*p = (struct packet){.type = PACKET_INVALID, .size = size};
	return 0;
}

int packet_next(struct packet_cursor *c, struct packet *ret)
{
	int r;

	if (c->bip_bytes != 0 && c->pos < c->end && (c->pos[0] & PT_EXT_BIP_MASK) == 0x04)
		r = read_bip(c, ret);
	else
		r = packet_read(c->pos, c->end, ret);
	if (r == PACKET_BAD && (c->quirks & PACKET_SKZ84) != 0)
		r = mend_skz84(c, ret);
	if (r != 0)
		return r;
	if (ret->type == PACKET_CYC && (c->quirks & PACKET_SKD007) != 0)
		mend_skd007(c, ret);
	c->pos += ret->size;
	if (ret->type == PACKET_BBP)
		c->bip_bytes = ret->u.bbp.bytes;
	else if (ret->type == PACKET_BEP || ret->type == PACKET_PSB || ret->type == PACKET_OVF)
		c->bip_bytes = 0; /* an overflow may have lost the BEP */
	return 0;
}

int packet_ip(const struct packet *p, uint64_t *last_ip, uint64_t *ret_ip)
{
	uint64_t raw = p->u.ip.raw, ip = *last_ip;

	switch (p->u.ip.bytes) {
	case PT_IPB_UPDATE16: ip = (ip & ~UINT64_C(0xffff)) | raw; break;
	case PT_IPB_UPDATE32: ip = (ip & ~UINT64_C(0xffffffff)) | raw; break;
	case PT_IPB_SEXT48: ip = (raw ^ UINT64_C(1) << 47) - (UINT64_C(1) << 47); break;
	case PT_IPB_UPDATE48: ip = (ip & ~UINT64_C(0xffffffffffff)) | raw; break;
	case PT_IPB_FULL: ip = raw; break;
	default: return 0;
	}
	*last_ip = ip;
	*ret_ip = ip;
	return 1;
}

/* --- PSBs --- */

static const uint8_t psb[PT_PSB_SIZE] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
					 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

const uint8_t *sync_find(const uint8_t *pos, const uint8_t *end)
{
	const uint8_t *found;

	if (pos >= end)
		return NULL;
	found = memmem(pos, (size_t)(end - pos), psb, sizeof(psb));
	if (!found)
		return NULL;
	/* If the packet before the PSB ends with 02 82, memmem() finds the pattern too early. No
	 * packet that may follow a PSB begins with these bytes, so the last match is the PSB. */
	while (end - found >= PT_PSB_SIZE + 2 && memcmp(found + PT_PSB_SIZE, psb, 2) == 0)
		found += 2;
	return found;
}

bool sync_tsc(const uint8_t *pos, const uint8_t *end, uint64_t *ret_tsc)
{
	struct packet_cursor c = {.pos = pos, .end = end};
	struct packet p;

	if (packet_next(&c, &p) != 0)
		return false;
	while (packet_next(&c, &p) == 0) {
		if (p.type == PACKET_PSBEND || p.type == PACKET_OVF || p.type == PACKET_PSB)
			return false;
		if (p.type == PACKET_TSC) {
			*ret_tsc = p.u.tsc.value;
			return true;
		}
	}
	return false;
}

const uint8_t *sync_find_tsc(const uint8_t *pos, const uint8_t *end, uint64_t tsc)
{
	uint64_t found;

	for (pos = sync_find(pos, end); pos; pos = sync_find(pos + PT_PSB_SIZE, end)) {
		if (sync_tsc(pos, end, &found) && !packet_tsc_is_before(found, tsc))
			return pos;
	}
	return NULL;
}
