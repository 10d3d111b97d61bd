/*
 * Intel PT packets: bytes to struct, PSBs, and packets as text.
 *
 * This room reads the bytes of one CPU's trace and knows nothing about code, processes or time.
 * packet.c turns bytes into packets and finds PSBs; packet_text.c writes packets as libipt's ptdump
 * does. The event reader (event.h) turns packets into events, which say what the walk over the code
 * has to do next: event.c has the packets that branch, event_psb.c PSB+ and overflows, event_mark.c
 * the packets that do not branch, event_ahead.c questions about packets that follow, and the
 * passing of packets that need no look, event_time.c time that runs backwards. fault.c has the
 * names of everything that can be wrong with a trace, errata.c the errata of each processor.
 *
 * Decisions that govern the room:
 * - Every byte is a stranger's. A length is checked before the bytes behind it are read, and
 *   whatever is wrong with a trace is a result with a name and a count (fault.h), never an error.
 * - packet.c knows all packet layouts (SDM volume 3, edition 083, 33.4.2 "Packet Definitions").
 *   Only loops that must be fast read some packets by themselves: event_ahead.c, decoder/time and
 *   decoder/hot.
 * - All that a trace says besides branches (PTWRITE, frequency, power, transactions, interrupts,
 *   paging, virtual machines, triggers) becomes marks. A mark never changes where the walk goes. If
 *   the code does not lead to a mark's place, the mark stands where the walk needs the next packet.
 * - Decoding goes on behind a fault with the first packet that says where execution is, unless
 *   the fault casts doubt on the packets; then with the next PSB or TIP.PGE.
 * - Errata are chosen by the processor's family and model. A remedy that cannot harm a correct
 *   trace is used for all processors.
 * - Work is linear in the trace: answers about packets ahead are kept, and no packet is scanned
 *   twice for the same question.
 *
 * All state is in values that the caller owns (struct packet_cursor, struct event_reader); the
 * bytes are borrowed. Nothing allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/ptpacket.h"

enum packet_type {
	PACKET_PAD,
	PACKET_PSB,
	PACKET_PSBEND,
	PACKET_TNT, /* short or long */
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
	PACKET_INVALID, /* invalid by a known erratum, to be skipped (PACKET_SKZ84) */
};

/* The processor's execution modes. MODE.Exec packets name them (SDM volume 3, edition 083,
 * 33.4.2.8). The length and meaning of an instruction depend on the mode. */
enum insn_mode { INSN_MODE_64, INSN_MODE_32, INSN_MODE_16 };

struct packet {
	uint8_t type; /* enum packet_type */
	uint8_t size; /* in bytes, with the opcode */
	union {
		struct {
			uint64_t bits; /* bit n-1 is the oldest branch, bit 0 the newest; 1 taken */
			uint8_t n;     /* 1..47 */
		} tnt;
		struct {	       /* TIP, TIP.PGE, TIP.PGD, FUP */
			uint64_t raw;  /* the payload, still compressed */
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
			uint8_t bits; /* the payload without the leaf */
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
			uint16_t icnt; /* instructions since the last packet, if has_icnt */
			uint8_t trbv;  /* the triggers that hit, a bit each */
			uint8_t has_icnt;
			uint8_t mult; /* some trigger hit more than once */
			uint8_t ip;   /* a FUP follows */
		} trig;
	} u;
};

/* Reads the packet at POS, which is not within a block (PACKET_BBP). 0; PACKET_SHORT: the packet
 * goes on behind END; PACKET_BAD: no packet begins with these bytes. *ret is set only with 0. */
#define PACKET_SHORT 1
#define PACKET_BAD   2
int packet_read(const uint8_t *pos, const uint8_t *end, struct packet *ret);

/* A place in a trace. Between BBP and BEP the same bytes mean other packets (BIP), so a cursor
 * keeps track of blocks. */
struct packet_cursor {
	const uint8_t *pos, *end;
	uint8_t bip_bytes; /* 4 or 8 within a block, else 0 */
	uint8_t quirks;	   /* PACKET_SKD007, PACKET_SKZ84 */
};

/* Erratum SKD007, "Intel PT Buffer Overflow May Result in Incorrect Packets": a CYC swallows the
 * first byte of an OVF. Both are read as one OVF of 3 bytes. */
#define PACKET_SKD007 0x01
/* Erratum SKZ84, "Use of VMX TSC Scaling or TSC Offsetting Will Result in Corrupted Intel PT
 * Packets": a TMA has reserved bits set and a byte too many. It is read as PACKET_INVALID. */
#define PACKET_SKZ84 0x02

/* Reads the packet at the cursor and moves the cursor behind it. 0; PACKET_SHORT or PACKET_BAD, and
 * the cursor stays. */
int packet_next(struct packet_cursor *c, struct packet *ret);

/* Decompresses the IP of P with *last_ip. Returns 1 and sets *ret_ip and *last_ip; or returns 0:
 * the packet has no IP. */
int packet_ip(const struct packet *p, uint64_t *last_ip, uint64_t *ret_ip);

/* --- PSBs, where decoding can begin --- */

/* The first PSB that begins at or after POS, or NULL. */
const uint8_t *sync_find(const uint8_t *pos, const uint8_t *end);
/* Whether the PSB+ at POS has a TSC packet; *ret_tsc is its value. */
bool sync_tsc(const uint8_t *pos, const uint8_t *end, uint64_t *ret_tsc);
/* Whether a packet with TSC is earlier than one with THAN, also over the wrap of the packet's 56
 * bits; numbers beyond these are compared as they are. */
static inline bool packet_tsc_is_before(uint64_t tsc, uint64_t than)
{
	uint64_t distance = (than - tsc) & PT_TSC_MASK;

	if ((tsc | than) > PT_TSC_MASK)
		return tsc < than;
	return distance != 0 && distance < PT_TSC_WRAP;
}
/* The first PSB at or after POS whose TSC is not before TSC, or NULL. */
const uint8_t *sync_find_tsc(const uint8_t *pos, const uint8_t *end, uint64_t tsc);

/* --- packet_text.c --- */

/* The name that libipt's ptdump uses: "tnt.8", "tip.pgd", ... */
const char *packet_name(const struct packet *p);
/* The columns behind a packet's name. */
struct packet_text {
	char payload[64];
	char key[8], value[24]; /* "cr3" and its value, for example; "": none */
	bool wide;		/* the payload also fills the other columns */
};
void packet_describe(const struct packet *p, struct packet_text *ret);
/* Writes "NAME  PAYLOAD  KEY  VALUE" in ptdump's columns, cut to SIZE. Returns the length. */
size_t packet_columns(const struct packet *p, const struct packet_text *t, char *to, size_t size);
/* Writes "OFFSET  " and the columns of packet_columns(), without a newline. SIZE is at least 32.
 * Returns the length. */
size_t packet_format(const struct packet *p, uint64_t offset, char *to, size_t size);
/* Why the bytes at POS are PACKET_BAD, in libipt's words. */
const char *packet_why(const uint8_t *pos, const uint8_t *end);
