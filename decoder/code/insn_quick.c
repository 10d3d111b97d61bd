/*
 * Reads an ordinary instruction by tables: prefixes, opcode, ModRM. Its answer is always the answer
 * of Zydis (test_insn_quick.c compares them). insn.c asks Zydis for all other instructions.
 */
#include "decoder/code/insn_private.h"

#include <endian.h>
#include <string.h>

/* The tables do not have instructions with more prefixes. All bytes that are looked at therefore
 * lie within INSN_MAX_SIZE bytes: these prefixes, REX, three of opcode, ModRM, SIB; or these
 * prefixes, REX, two of opcode, four to a target. */
#define PREFIXES_MAX 7

#define REX_W 0x08

struct prefixes {
	uint8_t rex;
	uint8_t mandatory; /* none, 66, F3, F2: as in insn_private.h */
	bool operand16;	   /* 66 */
	bool address;	   /* 67 */
	bool lock;	   /* F0 */
};

/* clang-format off */
/* Bytes of ModRM, SIB and displacement, by ModRM. SIB without a base adds four. */
#define LENGTHS(n)   (n), (n), (n), (n), (n) + 1, (n), (n), (n)
#define LENGTHS_0    1, 1, 1, 1, 2, 5, 1, 1
#define TIMES_8(row) row, row, row, row, row, row, row, row
static const uint8_t modrm_lengths[256] = {
	TIMES_8(LENGTHS_0),
	TIMES_8(LENGTHS(2)),
	TIMES_8(LENGTHS(5)),
	[0xc0 ... 0xff] = 1,
};
/* clang-format on */

/* The place behind the prefixes. NULL: there are too many, or F2 and F3, of which only one would
 * count. */
static const uint8_t *skip_prefixes(const uint8_t *at, struct prefixes *ret)
{
	bool f2 = false, f3 = false;

	for (int i = 0; i <= PREFIXES_MAX; i++, at++) {
		switch (*at) {
		case 0x66: ret->operand16 = true; break;
		case 0x67: ret->address = true; break;
		case 0xf0: ret->lock = true; break;
		case 0xf2: f2 = true; break;
		case 0xf3: f3 = true; break;
		case 0x26: /* segments */
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65: break;
		default:
			ret->mandatory = f2 ? 3 : f3 ? 2 : ret->operand16;
			return f2 && f3 ? NULL : at;
		}
	}
	return NULL;
}

/* Whether the instruction may have LOCK: SDM volume 2, LOCK. */
static bool is_locked_opcode(uint8_t opcode, uint8_t reg)
{
	if (opcode < 0x38)
		return (opcode & 7) <= 1;
	switch (opcode) {
	case 0x80: /* group 1 without cmp */
	case 0x81:
	case 0x83: return reg != 7;
	case 0x86: /* xchg */
	case 0x87: return true;
	case 0xf6: /* not, neg */
	case 0xf7: return reg == 2 || reg == 3;
	case 0xfe: /* inc, dec */
	case 0xff: return reg <= 1;
	default: return false;
	}
}

static bool is_locked_0f(uint8_t opcode, uint8_t reg)
{
	switch (opcode) {
	case 0xab: /* bts */
	case 0xb3: /* btr */
	case 0xbb: /* btc */
	case 0xb0: /* cmpxchg */
	case 0xb1:
	case 0xc0: /* xadd */
	case 0xc1: return true;
	case 0xba: return reg >= 5;
	case 0xc7: return reg == 1; /* cmpxchg8b */
	default: return false;
	}
}

/* The same for any instruction. AT is behind F0, the other prefixes, and REX. */
static bool may_lock(const uint8_t *at)
{
	bool is_0f = *at == 0x0f;
	uint8_t opcode = at[is_0f], modrm = at[is_0f + 1], reg = modrm >> 3 & 7;

	return modrm < 0xc0 && (is_0f ? is_locked_0f(opcode, reg) : is_locked_opcode(opcode, reg));
}

static const uint8_t *read_0f(const uint8_t *at, uint64_t *ret)
{
	uint8_t opcode = *at++;

	*ret = quick_maps[QUICK_MAP_0F][opcode];
	if (opcode == 0x38)
		*ret = quick_maps[QUICK_MAP_0F38][*at++];
	else if (opcode == 0x3a)
		*ret = quick_maps[QUICK_MAP_0F3A][*at++];
	return at;
}

/* The forms (VEX_*) that an instruction uses. BITS: W, vvvv, L, pp of its VEX prefix. REGISTERS:
 * ModRM names a register, not memory. */
static uint8_t vex_needs(uint8_t bits, bool registers)
{
	unsigned int needs = (bits & 0x80) != 0 ? VEX_W1 : VEX_W0;

	needs |= (bits & 0x04) != 0 ? VEX_L1 : VEX_L0;
	needs |= registers ? VEX_REGISTER : VEX_MEMORY;
	if ((bits & 0x78) != 0x78)
		needs |= registers ? VEX_V_REG : VEX_V_MEMORY;
	return (uint8_t)needs;
}

/* Reads a VEX prefix and its opcode. AT is behind C4 or C5. */
static const uint8_t *read_vex(const uint8_t *at, const struct prefixes *p, uint64_t *ret)
{
	uint8_t bits = *at++ & 0x7f, map = 1, needs, forms;

	if (at[-2] == 0xc4) {
		map = at[-1] & 0x1f;
		bits = *at++;
	}
	needs = vex_needs(bits, at[1] >= 0xc0);
	forms = map >= 1 && map <= 3 ? quick_vex[map - 1][bits & 3][*at] : 0;
	if (p->mandatory != 0 || p->rex != 0 || (forms & needs) != needs)
		*ret = 0;
	else if (map == 1)
		*ret = quick_maps[QUICK_MAP_0F][*at] | UINT64_C(0xff) << QUICK_MEMORY;
	else
		*ret = QUICK_ANY_MODRM | (map == 3 ? 1 : 0);
	return at + 1;
}

/* AT is behind an opcode, and *RET is the opcode's entry. Makes *RET the entry of this very
 * instruction. Returns the place behind the last byte of the opcode. */
static const uint8_t *read_special(enum insn_mode mode, const uint8_t *at, const struct prefixes *p,
				   uint64_t *ret)
{
	uint8_t reg = *at >> 3 & 7;

	switch (at[-1]) {
	case 0x0f: return read_0f(at, ret);
	case 0xc4:
	case 0xc5: return mode == INSN_MODE_64 ? read_vex(at, p, ret) : at;
	case 0xa0: /* mov: the immediate is an address */
	case 0xa1:
	case 0xa2:
	case 0xa3: *ret |= mode == INSN_MODE_64 && !p->address ? 8 : 4; break;
	case 0xf6: /* group 3: only test has an immediate */
	case 0xf7: *ret &= reg > 1 ? ~(uint64_t)(QUICK_IMM | QUICK_SHRINKS) : ~UINT64_C(0); break;
	case 0xff: /* group 5 */
		*ret |= reg == 2 ? (uint64_t)INSN_CALL_IND << QUICK_CLASS : 0;
		*ret |= reg == 4 ? (uint64_t)INSN_JUMP_IND << QUICK_CLASS : 0;
		break;
	}
	return at;
}

static size_t immediate_of(uint64_t entry, const struct prefixes *p)
{
	size_t size = entry & QUICK_IMM;

	if ((p->rex & REX_W) != 0)
		return size + ((entry & QUICK_GROWS) != 0 ? 4 : 0);
	return size - ((entry & QUICK_SHRINKS) != 0 && p->operand16 ? 2 : 0);
}

static bool is_valid(uint64_t entry, uint8_t modrm, uint8_t mandatory)
{
	uint64_t prefixes = entry >> ((modrm >= 0xc0 ? QUICK_REGISTER : QUICK_MEMORY) + mandatory);

	return (prefixes & entry >> (QUICK_REG_FIELD + (modrm >> 3 & 7)) & 1) != 0;
}

static bool lacks_base(uint8_t modrm, uint8_t sib)
{
	return (modrm & 0xc7) == 0x04 && (sib & 7) == 5;
}

/* Bytes of ModRM, SIB and displacement: SIZE, and four more if SIB has no base. */
static inline size_t modrm_size(uint64_t entry, size_t size, uint8_t modrm, uint8_t sib)
{
	if (lacks_base(modrm, sib))
		size += 4;
	return size & entry >> QUICK_MODRM;
}

static enum insn_class class_of(uint64_t entry)
{
	return (enum insn_class)(entry >> QUICK_CLASS & 15);
}

static bool is_direct(enum insn_class class)
{
	return class == INSN_COND || class == INSN_JUMP || class == INSN_CALL;
}

/* The tables' answer about an instruction. */
struct told {
	uint32_t size;	/* 0: the tables do not have it */
	uint32_t entry; /* the lower half of its entry */
};

/* Reads an instruction with any prefixes. INSN_MAX_SIZE bytes can be read. */
static __attribute__((noinline)) struct told read_fully(enum insn_mode mode, const uint8_t *bytes)
{
	struct prefixes p = {0};
	const uint8_t *at = skip_prefixes(bytes, &p);
	uint64_t entry;
	size_t size;

	if (at == NULL)
		return (struct told){0};
	if (mode == INSN_MODE_64 && *at >> 4 == 4)
		p.rex = *at++;
	if (p.lock && !may_lock(at))
		return (struct told){0};
	entry = quick_maps[mode == INSN_MODE_64 ? QUICK_MAP_64 : QUICK_MAP_32][*at++];
	at = read_special(mode, at, &p, &entry);
	size = (size_t)(at - bytes) + immediate_of(entry, &p) +
	       modrm_size(entry, modrm_lengths[*at], at[0], at[1]);
	if (!is_valid(entry, *at, p.mandatory) || size > INSN_MAX_SIZE)
		return (struct told){0};
	/* In code of 32 bits, the tables have no addresses of 16 bits, and no direct branches with
	 * operands of 16 bits. */
	if (mode == INSN_MODE_32 && (p.address || (p.operand16 && is_direct(class_of(entry)))))
		return (struct told){0};
	return (struct told){(uint32_t)size, (uint32_t)entry};
}

/* B if WHEN, else A; compiled without a branch. */
static inline uint64_t choose(bool when, uint64_t a, uint64_t b)
{
	return a ^ ((a ^ b) & (0 - (uint64_t)when));
}

/* The same as read_fully(), but fast for instructions without prefixes other than REX, which are
 * most. A processor cannot predict which of them have REX, and the next instruction waits for the
 * size of this one. The function therefore looks everything up for both cases, and chooses after
 * that. */
static inline __attribute__((always_inline)) struct told read_one(enum insn_mode mode,
								  const uint8_t *bytes)
{
	const uint64_t *map = quick_maps[mode == INSN_MODE_64 ? QUICK_MAP_64 : QUICK_MAP_32];
	uint64_t entry = map[bytes[0]], length = modrm_lengths[bytes[1]];
	bool rex = mode == INSN_MODE_64 && bytes[0] >> 4 == 4;
	const uint8_t *at = bytes + rex + 1;

	if (mode == INSN_MODE_64) {
		entry = choose(rex, entry, map[bytes[1]]);
		length = choose(rex, length, modrm_lengths[bytes[2]]);
	}
	if (at[-1] == 0x0f) {
		entry = quick_maps[QUICK_MAP_0F][*at++];
		length = modrm_lengths[*at];
	}
	if ((entry >> (QUICK_AT_ONCE + (*at >> 3)) & 1) == 0 ||
	    ((entry & QUICK_GROWS) != 0 && rex && (bytes[0] & REX_W) != 0))
		return read_fully(mode, bytes);
	length = modrm_size(entry, length, at[0], at[1]) + (entry & QUICK_IMM);
	return (struct told){(uint32_t)((size_t)(at - bytes) + length), (uint32_t)entry};
}

/* The target of a direct branch. END is behind the branch, and lies at IP. */
static uint64_t target_of(enum insn_mode mode, uint64_t ip, const uint8_t *end, uint32_t entry)
{
	uint32_t distance;

	if ((entry & QUICK_IMM) == 1) {
		distance = (uint32_t)(int8_t)end[-1];
	} else {
		memcpy(&distance, end - 4, sizeof(distance));
		distance = le32toh(distance);
	}
	ip += (uint64_t)(int32_t)distance;
	return mode == INSN_MODE_64 ? ip : (uint32_t)ip;
}

/* Makes *RET what was TOLD of the instruction that ends at END, which lies at IP. */
static void put_insn(enum insn_mode mode, uint64_t ip, const uint8_t *end, struct told told,
		     struct insn *ret)
{
	enum insn_class class = class_of(told.entry);

	ret->size = (uint8_t)told.size;
	ret->class = (uint8_t) class;
	ret->target = is_direct(class) ? target_of(mode, ip, end, told.entry) : 0;
}

bool insn_quick_read(enum insn_mode mode, uint64_t ip, const uint8_t *bytes, size_t n,
		     struct insn *ret)
{
	uint8_t padded[INSN_MAX_SIZE] = {0};
	struct told told;

	if (mode == INSN_MODE_16)
		return false;
	if (n < INSN_MAX_SIZE) {
		memcpy(padded, bytes, n);
		bytes = padded;
	}
	told = mode == INSN_MODE_64 ? read_one(INSN_MODE_64, bytes) : read_one(INSN_MODE_32, bytes);
	if (told.size == 0 || told.size > n)
		return false;
	put_insn(mode, ip + told.size, bytes + told.size, told, ret);
	return true;
}

/* Adds to RUN. Returns the answer about the last instruction; that instruction ends the run if its
 * class is not INSN_OTHER. */
static inline __attribute__((always_inline)) struct told
run_on(enum insn_mode mode, const uint8_t *bytes, size_t n, struct insn_run *run)
{
	size_t done = run->n, at = run->bytes, max = run->max;
	uint8_t *sizes = run->sizes;
	struct told told = {0};

	while (done < max && n - at >= INSN_MAX_SIZE) {
		told = read_one(mode, bytes + at);
		if (told.size == 0)
			break;
		sizes[done++] = (uint8_t)told.size;
		at += told.size;
		if (class_of(told.entry) != INSN_OTHER)
			break;
	}
	run->n = done;
	run->bytes = at;
	return told;
}

bool insn_quick_run(enum insn_mode mode, uint64_t ip, const uint8_t *bytes, size_t n,
		    struct insn_run *run)
{
	struct told told = {0};

	if (mode == INSN_MODE_64)
		told = run_on(INSN_MODE_64, bytes, n, run);
	else if (mode == INSN_MODE_32)
		told = run_on(INSN_MODE_32, bytes, n, run);
	run->last = (struct insn){.class = INSN_OTHER};
	if (class_of(told.entry) == INSN_OTHER)
		return run->n >= run->max;
	put_insn(mode, ip + run->bytes, bytes + run->bytes, told, &run->last);
	return true;
}
