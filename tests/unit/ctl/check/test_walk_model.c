/*
 * ctl/check/walk_model: the model alone, and compared with the program's own symbols and code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"

#include "ctl/check/walk_model.h"

#define SEED   UINT64_C(0x123456789abcdef0)
#define ROUNDS 2000u

static struct walk_model model, other;

static const struct {
	const char *name;
	uint64_t address;
} LABELS[] = {
#define X(name, offset) {"at_" #name, WALK_TEXT + (offset)},
	WALK_LABELS(X)
#undef X
#define X(name, offset) {"at_" #name, WALK_FAR_TEXT + (offset)},
		WALK_FAR_LABELS(X)
#undef X
};

static bool is_label(uint64_t ip)
{
	for (size_t i = 0; i < ARRAY_SIZE(LABELS); i++)
		if (LABELS[i].address == ip)
			return true;
	return false;
}

static bool is_call(const struct walk_branch *b)
{
	return b->kind == WALK_KIND_CALL || b->kind == WALK_KIND_CALL_IND;
}

static void walk_model_next_same_seed_same_branches(void **state)
{
	struct walk_branch a, b;

	(void)state;
	walk_model_init(&model, SEED, 7);
	walk_model_init(&other, SEED, 7);
	for (unsigned i = 0; i < 100000; i++) {
		walk_model_next(&model, &a);
		walk_model_next(&other, &b);
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

static void walk_model_init_middle_round_goes_on_as_from_the_first(void **state)
{
	struct walk_branch a, b;

	(void)state;
	walk_model_init(&model, SEED, UINT32_MAX);
	do
		walk_model_next(&model, &a);
	while (a.from != WALK_AGAIN_AT);
	walk_model_init(&other, SEED, 0);
	for (unsigned i = 0; i < 10000; i++) {
		walk_model_next(&model, &a);
		walk_model_next(&other, &b);
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

static void walk_model_next_other_seed_other_branches(void **state)
{
	struct walk_branch a, b;
	bool differ = false;

	(void)state;
	walk_model_init(&model, SEED, 0);
	walk_model_init(&other, SEED + 0x100, 0);
	for (unsigned i = 0; i < 1000; i++) {
		walk_model_next(&model, &a);
		walk_model_next(&other, &b);
		differ |= memcmp(&a, &b, sizeof(a)) != 0;
	}
	assert_true(differ);
}

/* Each branch is at a label, and leads to a label or behind a call or system call. */
static void walk_model_next_ends_lie_at_labels(void **state)
{
	struct walk_branch b;
	unsigned rounds = 0;

	(void)state;
	walk_model_init(&model, SEED, 0);
	while (rounds < ROUNDS) {
		walk_model_next(&model, &b);
		assert_true(is_label(b.from));
		assert_true(walk_model_has(b.from) && walk_model_has(b.to));
		if (b.kind == WALK_KIND_NOT_TAKEN || b.kind == WALK_KIND_SYSCALL)
			assert_int_equal(b.to, b.from + b.size);
		else if (b.kind != WALK_KIND_RET && b.from != WALK_HERE_AT)
			assert_true(is_label(b.to));
		rounds += b.from == WALK_AGAIN_AT;
	}
}

/* From the target of each branch, straight execution leads to the next branch. */
static void walk_model_next_goes_straight_on_between_branches(void **state)
{
	struct walk_branch b;
	uint64_t at = WALK_ROUND;
	unsigned rounds = 0;

	(void)state;
	walk_model_init(&model, SEED, 0);
	while (rounds < ROUNDS) {
		walk_model_next(&model, &b);
		assert_true(b.from >= at && b.from - at < 0x100);
		at = b.to;
		rounds += b.from == WALK_AGAIN_AT;
	}
}

/* Each return goes behind its call, except in the three kinds of step that break the rule. */
static void walk_model_next_returns_match_calls(void **state)
{
	uint64_t stack[256];
	struct walk_branch b;
	unsigned rounds = 0, depth = 0, deepest = 0, odd = 0;

	(void)state;
	walk_model_init(&model, SEED, 0);
	while (rounds < ROUNDS) {
		walk_model_next(&model, &b);
		if (is_call(&b) && b.to != b.from + b.size)
			stack[depth++] = b.from + b.size;
		if (b.from == WALK_DISPATCH_AT)
			depth = 0;
		deepest = MAX_OF(deepest, depth);
		rounds += b.from == WALK_AGAIN_AT;
		if (b.kind != WALK_KIND_RET)
			continue;
		if (b.from == WALK_SWAP_RET_AT || b.from == WALK_DROP_RET_AT ||
		    b.from == WALK_PUSH_RET_AT) {
			odd++;
			continue;
		}
		assert_true(depth > 0);
		assert_int_equal(b.to, stack[--depth]);
	}
	assert_true(deepest > 64);
	assert_true(odd > 100);
}

static void walk_model_next_has_every_kind_and_leaves_room(void **state)
{
	unsigned kinds[WALK_KIND_SYSCALL + 1] = {0}, rounds = 0;
	struct walk_branch b;
	size_t most = 0;

	(void)state;
	walk_model_init(&model, SEED, 0);
	while (rounds < ROUNDS) {
		walk_model_next(&model, &b);
		kinds[b.kind]++;
		most = MAX_OF(most, model.n);
		rounds += b.from == WALK_AGAIN_AT;
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_true(kinds[i] > 100);
	/* Room for the deepest recursion 31 times, and for the head. */
	assert_true(most < WALK_ROUND_MAX / 2);
	assert_true(31 * (3 * 86 + 5) + 2 * WALK_SHOWN_BITS + 10 < WALK_ROUND_MAX);
}

static void walk_model_shown_is_what_the_head_shows(void **state)
{
	struct walk_branch b;
	uint64_t shown = 0;

	(void)state;
	walk_model_init(&model, 0xab, 0x12345678);
	for (unsigned i = 0; i < 2 * WALK_SHOWN_BITS; i++) {
		walk_model_next(&model, &b);
		if (b.from == WALK_BIT_AT)
			shown = shown << 1 | (b.kind == WALK_KIND_NOT_TAKEN);
	}
	assert_true(shown == UINT64_C(0xab12345678));
	assert_true(shown == walk_model_shown(0xab, 0x12345678));
}

struct elf {
	const uint8_t *bytes;
	size_t size;
};

static bool open_elf(struct elf *elf)
{
	const char *build = getenv("PTSNAP_BUILDDIR");
	char path[4096];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/ctl/ptsnap-walk", build ? build : ".");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	assert_int_equal(fstat(fd, &st), 0);
	elf->size = (size_t)st.st_size;
	elf->bytes = mmap(NULL, elf->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	assert_true(elf->bytes != MAP_FAILED);
	return true;
}

static uint64_t symbol_of(const struct elf *elf, const char *name)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)elf->bytes;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(elf->bytes + head->e_shoff);

	for (unsigned i = 0; i < head->e_shnum; i++) {
		const Elf64_Sym *symbols = (const Elf64_Sym *)(elf->bytes + sections[i].sh_offset);
		const char *names;

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		names = (const char *)elf->bytes + sections[sections[i].sh_link].sh_offset;
		for (size_t k = 0; k < sections[i].sh_size / sizeof(*symbols); k++)
			if (strcmp(names + symbols[k].st_name, name) == 0)
				return symbols[k].st_value;
	}
	return 0;
}

static const uint8_t *code_at(const struct elf *elf, uint64_t ip)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)elf->bytes;
	const Elf64_Phdr *parts = (const Elf64_Phdr *)(elf->bytes + head->e_phoff);

	for (unsigned i = 0; i < head->e_phnum; i++)
		if (parts[i].p_type == PT_LOAD && ip >= parts[i].p_vaddr &&
		    ip - parts[i].p_vaddr < parts[i].p_filesz)
			return elf->bytes + parts[i].p_offset + (ip - parts[i].p_vaddr);
	return NULL;
}

static void walk_labels_are_the_programs_symbols(void **state)
{
	struct elf elf;

	(void)state;
	if (!open_elf(&elf))
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(LABELS); i++)
		assert_int_equal(symbol_of(&elf, LABELS[i].name), LABELS[i].address);
	munmap((void *)elf.bytes, elf.size);
}

/* The number of bytes of the branch at CODE by its opcode (SDM volume 2), for the opcodes that the
 * program has. */
static unsigned size_of(const uint8_t *code)
{
	switch (code[0]) {
	case 0x0f: return code[1] == 0x05 ? 2 : 6; /* SYSCALL, Jcc near */
	case 0xe8:
	case 0xe9: return 5;			   /* CALL, JMP */
	case 0xff: return code[1] >= 0xc0 ? 2 : 7; /* through a register, a table */
	case 0xc3: return 1;
	default: return 2; /* Jcc short, LOOP, JRCXZ, JMP short */
	}
}

static void walk_model_sizes_are_the_programs(void **state)
{
	struct walk_branch b;
	unsigned rounds = 0;
	struct elf elf;

	(void)state;
	if (!open_elf(&elf))
		skip();
	walk_model_init(&model, SEED, 0);
	while (rounds < ROUNDS) {
		walk_model_next(&model, &b);
		assert_non_null(code_at(&elf, b.from));
		assert_int_equal(b.size, size_of(code_at(&elf, b.from)));
		rounds += b.from == WALK_AGAIN_AT;
	}
	munmap((void *)elf.bytes, elf.size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walk_model_next_same_seed_same_branches),
		cmocka_unit_test(walk_model_init_middle_round_goes_on_as_from_the_first),
		cmocka_unit_test(walk_model_next_other_seed_other_branches),
		cmocka_unit_test(walk_model_next_ends_lie_at_labels),
		cmocka_unit_test(walk_model_next_goes_straight_on_between_branches),
		cmocka_unit_test(walk_model_next_returns_match_calls),
		cmocka_unit_test(walk_model_next_has_every_kind_and_leaves_room),
		cmocka_unit_test(walk_model_shown_is_what_the_head_shows),
		cmocka_unit_test(walk_labels_are_the_programs_symbols),
		cmocka_unit_test(walk_model_sizes_are_the_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
