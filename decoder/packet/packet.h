/*
 * One Intel PT packet: bytes -> struct. Pure: no state but the last IP, which the caller keeps.
 * SDM volume 3, "Intel Processor Trace", "Trace Packets and Data Types".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum packet_type {
	PACKET_PAD,
	PACKET_PSB,
	PACKET_PSBEND,
	PACKET_TNT, /* short and long */
	PACKET_TIP,
	PACKET_TIP_PGE,
	PACKET_TIP_PGD,
	PACKET_FUP,
	PACKET_PIP,
	PACKET_MODE_EXEC,
	PACKET_MODE_TSX,
	PACKET_TRACESTOP,
	PACKET_CBR,
	PACKET_TSC,
	PACKET_MTC,
	PACKET_TMA,
	PACKET_CYC,
	PACKET_VMCS,
	PACKET_OVF,
	PACKET_MNT,
	PACKET_PTW,
	PACKET_EXSTOP,
	PACKET_MWAIT,
	PACKET_PWRE,
	PACKET_PWRX,
	PACKET_BBP,
	PACKET_BIP,
	PACKET_BEP,
	PACKET_CFE,
	PACKET_EVD,
	PACKET_TRIG,
	PACKET_INVALID, /* a known bad one that is skipped (PACKET_SKZ84) */
};

struct packet {
	uint8_t type; /* enum packet_type */
	uint8_t size; /* bytes, opcode included */
	union {
		struct {
			uint64_t bits; /* bit n-1 is the oldest branch, bit 0 the newest; 1 taken */
			uint8_t n;     /* 1..47 */
		} tnt;
		struct {	       /* TIP, TIP.PGE, TIP.PGD, FUP */
			uint64_t raw;  /* payload as it stands */
			uint8_t bytes; /* enum pt_ipbytes */
		} ip;
		struct {
			uint64_t value;
		} tsc, cyc, mnt, mwait, vmcs, pwre, pwrx;
		struct {
			uint64_t value;
			uint8_t type;
		} evd;
		struct {
			uint8_t ctc;
		} mtc;
		struct {
			uint16_t ctc, fc; /* fc: 9 bits */
		} tma;
		struct {
			uint8_t ratio;
		} cbr;
		struct {
			uint8_t bits; /* low bits of the payload, leaf cut off */
		} mode;
		struct {
			uint64_t cr3;
			uint8_t nr;
		} pip;
		struct {
			uint64_t payload;
			uint8_t bytes; /* 4 or 8 */
			uint8_t ip;    /* a FUP follows */
		} ptw;
		struct {
			uint8_t ip;
		} exstop, bep;
		struct {
			uint8_t type, ip, vector;
		} cfe;
		struct {
			uint8_t type, bytes; /* bytes: 4 or 8, of the BIPs that follow */
		} bbp;
		struct {
			uint64_t payload;
			uint8_t id, bytes;
		} bip;
		struct {	       /* Trigger Tracing */
			uint16_t icnt; /* instructions since the last packet, when has_icnt */
			uint8_t trbv;  /* the triggers that hit, a bit each */
			uint8_t has_icnt, mult,
				ip; /* mult: some more than once; ip: a FUP follows */
		} trig;
	} u;
};

/* The packet at POS, which is not within a block (PACKET_BBP). 0; PACKET_SHORT: END comes before
 * its end; PACKET_BAD: no packet begins like that (*ret untouched in both). */
#define PACKET_SHORT 1
#define PACKET_BAD   2
int packet_read(const uint8_t *pos, const uint8_t *end, struct packet *ret);

/* A place in a trace. Between BBP and BEP the same bytes mean other packets (BIP), so whoever reads
 * packet by packet reads with a cursor. */
struct packet_cursor {
	const uint8_t *pos, *end;
	uint8_t bip_bytes; /* 4 or 8 within a block, else 0 */
	uint8_t quirks;	   /* PACKET_SKD007, PACKET_SKZ84: errata.h */
};
#define PACKET_SKD007 0x01
#define PACKET_SKZ84  0x02

/* SKD007: "Intel PT Buffer Overflow May Result in Incorrect Packets": a CYC swallows the first byte
 * of an OVF; given as an OVF of 3 bytes. SKZ84: "Use of VMX TSC Scaling or TSC Offsetting Will
 * Result in Corrupted Intel PT Packets": TMA with reserved bits set and a byte too many; given as
 * PACKET_INVALID.
 *
 * The packet at the cursor, which then moves behind it. 0; PACKET_SHORT and PACKET_BAD: it stays.
 */
int packet_next(struct packet_cursor *c, struct packet *ret);

/* Decompresses the IP of P against *last_ip and updates it. True: *ret_ip; false: suppressed (then
 * *last_ip stays) . */
int packet_ip(const struct packet *p, uint64_t *last_ip, uint64_t *ret_ip);

/* "tnt.8", "tip.pgd", ... as libipt's ptdump calls them. */
const char *packet_name(const struct packet *p);
/* The columns behind a packet's name. */
struct packet_text {
	char payload[64];
	char key[8], value[24]; /* "cr3" and its value, ...: empty where there is none */
	bool wide;		/* the payload takes the other columns' place */
};
void packet_describe(const struct packet *p, struct packet_text *ret);
/* "NAME  PAYLOAD  KEY  VALUE", each in ptdump's column, cut to SIZE. Returns the length. */
size_t packet_columns(const struct packet *p, const struct packet_text *t, char *to, size_t size);
/* "OFFSET  " and the columns of packet_describe(), without a newline. SIZE is at least 32. Returns
 * the length. */
size_t packet_format(const struct packet *p, uint64_t offset, char *to, size_t size);
/* Why PACKET_BAD was said of the bytes at POS, in libipt's words. */
const char *packet_why(const uint8_t *pos, const uint8_t *end);
