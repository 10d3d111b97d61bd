/*
 * Opcodes, masks and payload sizes of Intel PT packets; constants only.
 *
 * Source: Intel SDM volume 3, chapter "Intel Processor Trace", section "Trace Packets and Data
 * Types" (edition 083: 33.4). An opcode with an extension byte begins with PT_OPC_EXT.
 */
#pragma once

#include <stdint.h>

/* One-byte opcodes. */
#define PT_OPC_PAD	0x00 /* PAD */
#define PT_OPC_EXT	0x02 /* an extension byte follows */
#define PT_OPC_TSC	0x19 /* 7 bytes of TSC */
#define PT_OPC_MTC	0x59 /* 1 byte of CTC */
#define PT_OPC_MODE	0x99 /* 1 byte: leaf in bits 7:5 */
#define PT_OPC_TRIG	0xd9 /* flags below, a byte of trigger bits, with ICNT 2 bytes of count */
#define PT_OPC_CYC_MASK 0x03 /* CYC: low two bits 11b */
#define PT_OPC_CYC	0x03
#define PT_CYC_MORE	0x04 /* another byte follows */
#define PT_CYC_MORE_YET 0x01 /* the same bit in the following bytes */
/* TNT-8: bit 0 clear, not PAD, not EXT. The topmost set bit is the stop bit; the oldest branch is
 * the highest bit below it, the newest is bit 1. */
#define PT_TNT8_MAX 6

/* IP packets: opcode in bits 4:0, IPBytes in bits 7:5. */
#define PT_OPC_IP_MASK 0x1f
#define PT_OPC_TIP     0x0d
#define PT_OPC_TIP_PGE 0x11
#define PT_OPC_TIP_PGD 0x01
#define PT_OPC_FUP     0x1d

/* IPBytes (SDM table "IP compression"). */
enum pt_ipbytes {
	PT_IPB_SUPPRESSED = 0, /* no payload, IP out of context */
	PT_IPB_UPDATE16 = 1,   /* 2 bytes replace the low 16 bits of the last IP */
	PT_IPB_UPDATE32 = 2,   /* 4 bytes replace the low 32 bits */
	PT_IPB_SEXT48 = 3,     /* 6 bytes, sign extended from bit 47 */
	PT_IPB_UPDATE48 = 4,   /* 6 bytes replace the low 48 bits */
	PT_IPB_FULL = 6,       /* 8 bytes */
};

/* Second bytes, after PT_OPC_EXT. */
#define PT_EXT_TNT64	 0xa3 /* 6 bytes: stop bit, then up to 47 branches, oldest highest */
#define PT_EXT_CBR	 0x03 /* ratio, reserved */
#define PT_EXT_VMCS	 0xc8 /* 5 bytes: bits 51:12 of the VMCS address */
#define PT_EXT_OVF	 0xf3
#define PT_EXT_PSB	 0x82 /* 02 82 eight times */
#define PT_EXT_PSBEND	 0x23
#define PT_EXT_PIP	 0x43 /* 6 bytes: bit 0 NR, bits 47:1 CR3[51:5] */
#define PT_EXT_TRACESTOP 0x83
#define PT_EXT_TMA	 0x73 /* CTC[15:0], reserved byte, FastCounter[8:0] */
#define PT_EXT_MNT	 0xc3 /* third byte 0x88, 8 bytes */
#define PT_EXT_EXSTOP	 0x62
#define PT_EXT_EXSTOP_IP 0xe2
#define PT_EXT_MWAIT	 0xc2 /* 8 bytes */
#define PT_EXT_PWRE	 0x22 /* 2 bytes */
#define PT_EXT_PWRX	 0xa2 /* 5 bytes */
#define PT_EXT_PTW_MASK	 0x1f /* PTW: bits 4:0 = 0x12, bit 7 FUP follows, bits 6:5 payload */
#define PT_EXT_PTW	 0x12
#define PT_EXT_BBP	 0x63 /* 1 byte */
#define PT_EXT_BIP_MASK	 0x07 /* BIP is EXT-less: bits 2:0 = 100b inside a BBP block */
#define PT_EXT_BEP	 0x33
#define PT_EXT_BEP_IP	 0xb3
#define PT_EXT_CFE	 0x13 /* type and IP bit, vector */
#define PT_EXT_EVD	 0x53 /* type, 8 bytes */

#define PT_PSB_SIZE   16
#define PT_TNT64_MAX  47
#define PT_TSC_BYTES  7
#define PT_TSC_MASK   0x00ffffffffffffffull
#define PT_TSC_WRAP   (PT_TSC_MASK / 2 + 1) /* what is further apart is nearer over the wrap */
#define PT_RET_STACK  64 /* depth of the return-compression stack (SDM "RET compression") */
#define PT_MAX_PACKET 16

/* Bits of attr.config of intel_pt, which say what packets a trace can have
 * (arch/x86/events/intel/pt.c, pt_formats_attr; SDM volume 3, IA32_RTIT_CTL). Without PT_CONFIG_PT
 * the kernel traces branches whatever PT_CONFIG_BRANCH says (pt_config()). */
#define PT_CONFIG_PT	 (1ull << 0)
#define PT_CONFIG_CYC	 (1ull << 1)
#define PT_CONFIG_MTC	 (1ull << 9)
#define PT_CONFIG_TSC	 (1ull << 10)
#define PT_CONFIG_BRANCH (1ull << 13)
#define PT_CONFIG_NOTNT	 (1ull << 55)
/* Bits of IA32_RTIT_CTL that attr.config cannot have, but the configuration of a raw trace: OS,
 * User, CR3Filter, and ADDR0_CFG to ADDR3_CFG. */
#define PT_CONFIG_OS   (1ull << 2)
#define PT_CONFIG_USER (1ull << 3)
#define PT_CONFIG_CR3  (1ull << 7)
#define PT_CONFIG_ADDR (0xffffull << 32)

/* MODE leaves, bits 7:5 of the payload. */
#define PT_MODE_LEAF_MASK  0xe0
#define PT_MODE_EXEC	   0x00 /* bit 0 CS.L & LMA, bit 1 CS.D, bit 2 IF */
#define PT_MODE_EXEC_CSL   0x01
#define PT_MODE_EXEC_CSD   0x02
#define PT_MODE_EXEC_IFLAG 0x04
#define PT_MODE_TSX	   0x20 /* bit 0 InTX, bit 1 TXAbort */

/* TRIG flags, in its second byte; the other bits are reserved. */
#define PT_TRIG_IP	 0x80
#define PT_TRIG_ICNT	 0x40
#define PT_TRIG_MULT	 0x20
#define PT_TRIG_RESERVED 0x1f

/* CFE types (SDM table "CFE Packet Type and Vector Fields Details"); 11 is reserved. */
enum pt_cfe {
	PT_CFE_INTR = 1,
	PT_CFE_IRET = 2,
	PT_CFE_SMI = 3,
	PT_CFE_RSM = 4,
	PT_CFE_SIPI = 5,
	PT_CFE_INIT = 6,
	PT_CFE_VMENTRY = 7,
	PT_CFE_VMEXIT = 8,
	PT_CFE_VMEXIT_INTR = 9,
	PT_CFE_SHUTDOWN = 10,
	PT_CFE_UINTR = 12,
	PT_CFE_UIRET = 13,
	PT_CFE_SWINTR = 14,
	PT_CFE_SYSCALL = 15,
};

#define PT_CFE_IP  0x80u /* in the type's byte: a FUP of this packet follows */
#define PT_EVD_CR2 0u	 /* EVD type: CR2 of a page fault */

/* MWAIT payload. */
#define PT_MWAIT_HINTS	   0xffu
#define PT_MWAIT_EXT_SHIFT 32
#define PT_MWAIT_EXT	   3u
/* PWRE payload: C-state in bits 15:12, sub-state in 11:8. */
#define PT_PWRE_HW 0x80u
/* PWRX payload: last C-state in bits 7:4, deepest in 3:0, and the reason of the wake-up. */
#define PT_PWRX_INTERRUPT 0x100u
#define PT_PWRX_TIMER	  0x200u
#define PT_PWRX_STORE	  0x400u
#define PT_PWRX_HW	  0x800u
