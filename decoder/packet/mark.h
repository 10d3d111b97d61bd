/*
 * What a trace shows besides branches: marks, made by the event reader, placed between instructions
 * by the walk.
 */
#pragma once

#include <stdint.h>

/* What a mark says. SDM volume 3 (edition 083), 33.4.2, the packet named. */
enum flow_mark_kind {
	FLOW_MARK_MODE,	   /* MODE.Exec: value is enum insn_mode; only where it changes */
	FLOW_MARK_IFLAG,   /* MODE.Exec: value 1: interrupts enabled; only where it changes */
	FLOW_MARK_TSX,	   /* MODE.TSX: value is enum flow_tsx; only where it changes */
	FLOW_MARK_PAGING,  /* PIP: value is CR3; FLOW_MARK_NON_ROOT */
	FLOW_MARK_VMCS,	   /* VMCS: value is the base address */
	FLOW_MARK_PTWRITE, /* PTW: value is the payload, of size bytes (4 or 8) */
	FLOW_MARK_CBR,	   /* CBR: value is the ratio; behind a PSB only where it changes */
	FLOW_MARK_EXSTOP,  /* EXSTOP: execution stopped */
	FLOW_MARK_MWAIT,   /* MWAIT: value: hints in bits 7:0, extensions in bits 33:32 */
	FLOW_MARK_PWRE,	   /* PWRE: value is the payload */
	FLOW_MARK_PWRX,	   /* PWRX: value is the payload */
	FLOW_MARK_MNT,	   /* MNT: value is the payload */
	FLOW_MARK_CFE,	   /* CFE: value is the vector, type the CFE type; evds */
	FLOW_MARK_TRIG,	   /* TRIG: value is TRBV; type 1: MULT; size 1: it has ICNT, in evd[0] */
	FLOW_MARK_PEBS, /* BIP: value is the payload of size bytes, type the block's, id the item's
			 */
	FLOW_MARK_OFF,	/* TIP.PGD behind a gap: tracing ended, from where is not known */
	FLOW_MARK_TICK, /* flow_config.ticks: a timing packet moved the time */
	FLOW_MARK_N_,
};
enum flow_tsx { FLOW_TSX_BEGIN, FLOW_TSX_COMMIT, FLOW_TSX_ABORT };

#define FLOW_MARK_HAS_IP   0x01 /* ip is where it happened, said by a FUP or found in the code */
#define FLOW_MARK_NON_ROOT 0x02 /* PAGING: a virtual machine's */
#define FLOW_MARK_STATUS   0x04 /* said by the PSB+ of a PSB where decoding begins or goes on */
#define FLOW_MARK_OF_BRANCH \
	0x08 /* it belongs to the branch of the item before it, which ended tracing */
#define FLOW_MARK_CR2  0x10 /* CFE: evd[0] is CR2 of a page fault */
#define FLOW_MARK_VMXQ 0x20 /* CFE: evd[1] is a VM exit's qualification */
#define FLOW_MARK_VMXR 0x40 /* CFE: evd[2] is a VM exit's reason */

struct flow_mark {
	uint64_t offset; /* of the packet */
	uint64_t ip;	 /* FLOW_MARK_HAS_IP: as the packets name it */
	uint64_t value;
	uint64_t evd[3];
	uint64_t tsc_lo, tsc_hi;
	uint8_t kind; /* enum flow_mark_kind */
	uint8_t type, size, id;
	uint8_t flags;
};
