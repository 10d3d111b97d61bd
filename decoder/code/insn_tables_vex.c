/*
 * The opcode maps behind a VEX prefix: which forms of each opcode are valid. Lengths are those of
 * the same opcode without VEX, and behind 0F 3A always an immediate of one byte.
 */
#include "decoder/code/insn_tables.h"

#define NO_PREFIX 0
#define BY_66	  1
#define BY_F3	  2
#define BY_F2	  3

#define ANY_W  (VEX_W0 | VEX_W1)
#define ANY_L  (VEX_L0 | VEX_L1)
#define ANY_RM (VEX_MEMORY | VEX_REGISTER)
#define V      (VEX_V_MEMORY | VEX_V_REG)
/* Two operands (ModRM.reg and ModRM.rm), or three (with VEX.vvvv). */
#define TWO	(ANY_W | ANY_L | ANY_RM)
#define THREE	(TWO | V)
#define MEMORY	(ANY_W | ANY_L | VEX_MEMORY)
#define REGS	(ANY_W | ANY_L | VEX_REGISTER)
#define LOW(f)	((f) & ~VEX_L1) /* of 128 bits only */
#define HIGH(f) ((f) & ~VEX_L0)
#define W0(f)	((f) & ~VEX_W1)
#define W1(f)	((f) & ~VEX_W0)
/* From memory two operands, from a register three. */
#define SCALAR (TWO | VEX_V_REG)

/* clang-format off */

/* Floating point: packed single and double; scalar single and double. */
#define PACKED_0F \
	[0x10 ... 0x11] = TWO,			/* vmovups */ \
	[0x13] = LOW(MEMORY),			/* vmovlps */ \
	[0x14 ... 0x15] = THREE,		/* vunpcklps */ \
	[0x17] = LOW(MEMORY),			/* vmovhps */ \
	[0x28 ... 0x29] = TWO,			/* vmovaps */ \
	[0x2b] = MEMORY,			/* vmovntps */ \
	[0x2e ... 0x2f] = TWO,			/* vucomiss, vcomiss */ \
	[0x50] = REGS,				/* vmovmskps */ \
	[0x51] = TWO,				/* vsqrtps */ \
	[0x54 ... 0x59] = THREE,		/* vandps ... vmulps */ \
	[0x5a ... 0x5b] = TWO,			/* vcvtps2pd, vcvtdq2ps */ \
	[0x5c ... 0x5f] = THREE,		/* vsubps ... vmaxps */ \
	[0xc2] = THREE,				/* vcmpps */ \
	[0xc6] = THREE				/* vshufps */

#define SCALAR_0F \
	[0x10 ... 0x11] = SCALAR,		/* vmovss */ \
	[0x12] = TWO,				/* vmovsldup, vmovddup */ \
	[0x2a] = THREE,				/* vcvtsi2ss */ \
	[0x2c ... 0x2d] = TWO,			/* vcvttss2si */ \
	[0x51] = THREE,				/* vsqrtss */ \
	[0x58 ... 0x5a] = THREE,		/* vaddss, vmulss, vcvtss2sd */ \
	[0x5c ... 0x5f] = THREE,		/* vsubss ... vmaxss */ \
	[0x70] = TWO,				/* vpshufhw, vpshuflw */ \
	[0xc2] = THREE,				/* vcmpss */ \
	[0xe6] = TWO				/* vcvtdq2pd */

const uint8_t quick_vex[3][4][256] = {
{ /* 0F */
	[NO_PREFIX] = {
		PACKED_0F,
		[0x12] = LOW(THREE),		/* vmovlps, vmovhlps */
		[0x16] = LOW(THREE),		/* vmovhps, vmovlhps */
		[0x52 ... 0x53] = TWO,		/* vrsqrtps, vrcpps */
		[0x77] = TWO,			/* vzeroupper, vzeroall */
	},
	[BY_66] = {
		PACKED_0F,
		[0x12] = LOW(MEMORY | V),	/* vmovlpd */
		[0x16] = LOW(MEMORY | V),	/* vmovhpd */
		[0x60 ... 0x6d] = THREE,	/* vpunpcklbw ... vpunpckhqdq */
		[0x6e] = LOW(TWO),		/* vmovd, vmovq */
		[0x6f] = TWO,			/* vmovdqa */
		[0x70] = TWO,			/* vpshufd */
		[0x71 ... 0x73] = REGS | V,	/* groups 12 to 14 */
		[0x74 ... 0x76] = THREE,	/* vpcmpeqb */
		[0x7c ... 0x7d] = THREE,	/* vhaddpd */
		[0x7e] = LOW(TWO),		/* vmovd, vmovq */
		[0x7f] = TWO,			/* vmovdqa */
		[0xc4] = LOW(THREE),		/* vpinsrw */
		[0xc5] = LOW(REGS),		/* vpextrw */
		[0xd0 ... 0xd5] = THREE,	/* vaddsubpd ... vpmullw */
		[0xd6] = LOW(TWO),		/* vmovq */
		[0xd7] = REGS,			/* vpmovmskb */
		[0xd8 ... 0xe5] = THREE,	/* vpsubusb ... vpmulhw */
		[0xe6] = TWO,			/* vcvttpd2dq */
		[0xe7] = MEMORY,		/* vmovntdq */
		[0xe8 ... 0xef] = THREE,	/* vpsubsb ... vpxor */
		[0xf1 ... 0xf6] = THREE,	/* vpsllw ... vpsadbw */
		[0xf7] = LOW(REGS),		/* vmaskmovdqu */
		[0xf8 ... 0xfe] = THREE,	/* vpsubb ... vpaddd */
	},
	[BY_F3] = {
		SCALAR_0F,
		[0x16] = TWO,			/* vmovshdup */
		[0x52 ... 0x53] = THREE,	/* vrsqrtss, vrcpss */
		[0x5b] = TWO,			/* vcvttps2dq */
		[0x6f] = TWO,			/* vmovdqu */
		[0x7e] = LOW(TWO),		/* vmovq */
		[0x7f] = TWO,			/* vmovdqu */
	},
	[BY_F2] = {
		SCALAR_0F,
		[0x7c ... 0x7d] = THREE,	/* vhaddps */
		[0xd0] = THREE,			/* vaddsubps */
		[0xf0] = MEMORY,		/* vlddqu */
	},
},
{ /* 0F 38 */
	[NO_PREFIX] = {
		[0xf2] = LOW(THREE),		/* andn */
		[0xf5] = LOW(THREE),		/* bzhi */
		[0xf7] = LOW(THREE),		/* bextr */
	},
	[BY_66] = {
		[0x00 ... 0x0b] = THREE,	/* vpshufb ... vpmulhrsw */
		[0x0c ... 0x0d] = W0(THREE),	/* vpermilps */
		[0x0e ... 0x0f] = W0(TWO),	/* vtestps */
		[0x13] = W0(TWO),		/* vcvtph2ps */
		[0x16] = W0(HIGH(THREE)),	/* vpermps */
		[0x17] = TWO,			/* vptest */
		[0x18] = W0(TWO),		/* vbroadcastss */
		[0x19] = W0(HIGH(TWO)),		/* vbroadcastsd */
		[0x1a] = W0(HIGH(MEMORY)),	/* vbroadcastf128 */
		[0x1c ... 0x1e] = TWO,		/* vpabsb */
		[0x20 ... 0x25] = TWO,		/* vpmovsxbw */
		[0x28 ... 0x29] = THREE,	/* vpmuldq, vpcmpeqq */
		[0x2a] = MEMORY,		/* vmovntdqa */
		[0x2b] = THREE,			/* vpackusdw */
		[0x2c ... 0x2f] = W0(MEMORY | V), /* vmaskmovps */
		[0x30 ... 0x35] = TWO,		/* vpmovzxbw */
		[0x36] = W0(HIGH(THREE)),	/* vpermd */
		[0x37 ... 0x40] = THREE,	/* vpcmpgtq ... vpmulld */
		[0x41] = LOW(TWO),		/* vphminposuw */
		[0x45] = THREE,			/* vpsrlvd */
		[0x46] = W0(THREE),		/* vpsravd */
		[0x47] = THREE,			/* vpsllvd */
		[0x58 ... 0x59] = W0(TWO),	/* vpbroadcastd */
		[0x5a] = W0(HIGH(MEMORY)),	/* vbroadcasti128 */
		[0x78 ... 0x79] = W0(TWO),	/* vpbroadcastb */
		[0x8c] = MEMORY | V,		/* vpmaskmovd */
		[0x8e] = MEMORY | V,
		[0x96 ... 0x9f] = THREE,	/* vfmaddsub132ps ... */
		[0xa6 ... 0xaf] = THREE,
		[0xb6 ... 0xbf] = THREE,
		[0xdb] = LOW(TWO),		/* vaesimc */
		[0xdc ... 0xdf] = THREE,	/* vaesenc ... vaesdeclast */
		[0xf7] = LOW(THREE),		/* shlx */
	},
	[BY_F3] = {
		[0xf5] = LOW(THREE),		/* pext */
		[0xf7] = LOW(THREE),		/* sarx */
	},
	[BY_F2] = {
		[0xf5] = LOW(THREE),		/* pdep */
		[0xf6] = LOW(THREE),		/* mulx */
		[0xf7] = LOW(THREE),		/* shrx */
	},
},
{ /* 0F 3A */
	[BY_66] = {
		[0x00 ... 0x01] = W1(HIGH(TWO)), /* vpermq, vpermpd */
		[0x02] = W0(THREE),		/* vpblendd */
		[0x04 ... 0x05] = W0(TWO),	/* vpermilps */
		[0x06] = W0(HIGH(THREE)),	/* vperm2f128 */
		[0x08 ... 0x09] = TWO,		/* vroundps */
		[0x0a ... 0x0f] = THREE,	/* vroundss, vblendps ... vpalignr */
		[0x14 ... 0x17] = LOW(TWO),	/* vpextrb ... vextractps */
		[0x18] = W0(HIGH(THREE)),	/* vinsertf128 */
		[0x19] = W0(HIGH(TWO)),		/* vextractf128 */
		[0x1d] = W0(TWO),		/* vcvtps2ph */
		[0x20 ... 0x22] = LOW(THREE),	/* vpinsrb, vinsertps, vpinsrd */
		[0x38] = W0(HIGH(THREE)),	/* vinserti128 */
		[0x39] = W0(HIGH(TWO)),		/* vextracti128 */
		[0x40] = THREE,			/* vdpps */
		[0x41] = LOW(THREE),		/* vdppd */
		[0x42] = THREE,			/* vmpsadbw */
		[0x44] = THREE,			/* vpclmulqdq */
		[0x46] = W0(HIGH(THREE)),	/* vperm2i128 */
		[0x4a ... 0x4c] = W0(THREE),	/* vblendvps */
		[0x60 ... 0x63] = LOW(TWO),	/* vpcmpestrm */
		[0xdf] = LOW(TWO),		/* vaeskeygenassist */
	},
	[BY_F2] = {
		[0xf0] = LOW(TWO),		/* rorx */
	},
},
};
