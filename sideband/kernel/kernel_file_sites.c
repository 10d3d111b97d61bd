/*
 * Where an x86 kernel patches its own code: the tables that the kernel itself uses, code known by
 * name, and probes.
 *
 * Linux 6.1 to 6.18: at boot arch/x86/kernel/alternative.c, alternative_instructions(); for modules
 * module.c, module_finalize(); at any time jump labels, static calls and ftrace. Left out, as no
 * branch comes or goes by them: lock prefixes (.smp_locks), sealed ENDBRs (.ibt_endbr_seal),
 * constants of the running host (runtime_ptr_*).
 */
#include <string.h>

#include "proto/base.h"
#include "sideband/kernel/kernel_file_private.h"

#define UNKNOWN_INSN 16 /* no instruction is longer */
/* A jump, and the rest of the instruction in which the jump ends: arch/x86/kernel/kprobes/opt.c. */
#define PROBE_SIZE (5 + 15)

/* A direct call or jump. An alternative never makes a branch longer. */
static size_t branch_size(const uint8_t *entry, const uint8_t *code, size_t left)
{
	size_t i = 0;

	(void)entry;
	while (i < left && i < 4 && (code[i] == 0x2e || code[i] == 0x3e || code[i] == 0x66))
		i++;
	if (left - i < 2)
		return UNKNOWN_INSN;
	if (code[i] == 0xe8 || code[i] == 0xe9)
		return i + 5;
	if (code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80)
		return i + 6;
	return UNKNOWN_INSN;
}

/* Two bytes if the branch or NOP in the file has two, else five: arch/x86/kernel/jump_label.c,
 * arch_jump_entry_size(). */
static size_t jump_size(const uint8_t *entry, const uint8_t *code, size_t left)
{
	(void)entry;
	return left >= 2 && (code[0] == 0xeb || (code[0] == 0x66 && code[1] == 0x90)) ? 2 : 5;
}

/* CALL, JMP, or a conditional branch: arch/x86/kernel/static_call.c. */
static size_t static_call_size(const uint8_t *entry, const uint8_t *code, size_t left)
{
	(void)entry;
	return left >= 1 && code[0] == 0x0f ? 6 : 5;
}

static size_t ftrace_size(const uint8_t *entry, const uint8_t *code, size_t left)
{
	(void)entry;
	(void)code;
	(void)left;
	return 5;
}

/* struct paravirt_patch_site (until 6.7): address, type, length. */
static size_t paravirt_size(const uint8_t *entry, const uint8_t *code, size_t left)
{
	(void)code;
	(void)left;
	return entry[9];
}

/* The type before a function, which kCFI and FineIBT use, and the function's beginning:
 * arch/x86/kernel/alternative.c, "fineibt_preamble". */
static size_t cfi_size(const uint8_t *entry, const uint8_t *code, size_t left)
{
	(void)entry;
	(void)code;
	(void)left;
	return 32;
}

const struct kernel_site_table kernel_site_tables[] = {
	{".altinstructions", "__alt_instructions", "__alt_instructions_end", 0, false, NULL},
	{"__jump_table", "__start___jump_table", "__stop___jump_table", 16, false, jump_size},
	{".static_call_sites", "__start_static_call_sites", "__stop_static_call_sites", 8, false,
	 static_call_size},
	{"__mcount_loc", "__start_mcount_loc", "__stop_mcount_loc", 8, true, ftrace_size},
	{".parainstructions", "__parainstructions", "__parainstructions_end", 16, true,
	 paravirt_size},
	{".retpoline_sites", "__retpoline_sites", "__retpoline_sites_end", 4, false, branch_size},
	{".return_sites", "__return_sites", "__return_sites_end", 4, false, branch_size},
	{".call_sites", "__call_sites", "__call_sites_end", 4, false, branch_size},
	{".cfi_sites", "__cfi_sites", "__cfi_sites_end", 4, false, cfi_size},
};
const size_t kernel_site_tables_n = ARRAY_SIZE(kernel_site_tables);

/* struct alt_instr: s32 instruction, s32 replacement; feature (from 6.3: u32 with flags, before:
 * u16); u8 length of the instruction, u8 length of its replacement; before 5.13 one more u8 length.
 */
const size_t kernel_alternative_sizes[] = {14, 12, 13, 0};

static size_t alternative_size(const uint8_t *entry, size_t entry_size)
{
	return entry[entry_size == 14 ? 12 : 10];
}

bool kernel_file_is_alternative(const uint8_t *entry, size_t entry_size)
{
	size_t size = alternative_size(entry, entry_size);

	return size > 0 && entry[entry_size == 14 ? 13 : 11] <= size;
}

#define KCFI_CHECK 14u

/* Before an indirect call clang puts a check of the target's type (kCFI): MOV to R10D, ADD, JE,
 * UD2. FineIBT replaces the check by one without the JE or with another JE, and a kernel without
 * checks patches it, too: arch/x86/kernel/alternative.c, cfi_rewrite_callers(),
 * cfi_disable_callers(). Masks the check before SITE, if there is one. */
static int mask_kcfi_check(struct kernel_file_text *t, uint64_t site)
{
	static const uint8_t mov[] = {0x41, 0xba}, je_ud2[] = {0x74, 0x02, 0x0f, 0x0b};
	const uint8_t *code = t->bytes + (site - t->address);

	if (site - t->address < KCFI_CHECK || memcmp(code - KCFI_CHECK, mov, sizeof(mov)) != 0 ||
	    memcmp(code - sizeof(je_ud2), je_ud2, sizeof(je_ud2)) != 0)
		return 0;
	return kernel_file_mask(t, site - KCFI_CHECK, KCFI_CHECK);
}

int kernel_file_mask_site(struct kernel_file_text *t, const struct kernel_site_table *sites,
			  const uint8_t *entry, size_t entry_size, uint64_t site)
{
	uint64_t offset = site - t->address;
	int r = 0;

	if (!sites->size)
		return kernel_file_mask(t, site, alternative_size(entry, entry_size));
	/* Code of the start is no longer in memory. */
	if (offset >= t->size)
		return 0;
	if (sites->size == branch_size)
		r = mask_kcfi_check(t, site);
	if (r < 0)
		return r;
	return kernel_file_mask(t, site,
				sites->size(entry, t->bytes + offset, (size_t)(t->size - offset)));
}

/* The bytes that are patched at symbol L: trampolines of static calls, the calls in ftrace's
 * trampolines, BPF's dispatchers before they were static calls, the page that a hypervisor fills.
 */
static uint64_t patched_at_name(const struct kernel_link *l)
{
	static const struct {
		const char *name;
		uint64_t size;
	} names[] = {
		{"ftrace_call", 5},
		{"ftrace_regs_call", 5},
		{"ftrace_graph_call", 5},
		{"ftrace_caller_op_ptr", 7},
		{"ftrace_regs_caller_op_ptr", 7},
		{"hypercall_page", 4096},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i].name) == l->name_size &&
		    memcmp(names[i].name, l->name, l->name_size) == 0)
			return names[i].size;
	if (l->name_size > 7 && memcmp(l->name, "__SCT__", 7) == 0)
		return 8;
	return l->name_size > 15 && memcmp(l->name, "bpf_dispatcher_", 15) == 0 ? 16 : 0;
}

int kernel_file_mask_names(struct kernel_file_text *t, const struct kernel_links *links)
{
	size_t n;
	const struct kernel_link *l = kernel_links_all(links, &n);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		if (l[i].address - t->address < t->size)
			r = kernel_file_mask(t, l[i].address, patched_at_name(&l[i]));
	return r;
}

/* --- Probes --- */

/* The address in LINE if that is "MODULE SECTION 0xADDRESS". */
static bool parse_section(const char *line, size_t size, const char *module, const char *section,
			  uint64_t *ret)
{
	size_t m = strlen(module), s = strlen(section), at = m + s + 4;
	uint64_t address = 0;

	if (size <= at || memcmp(line, module, m) != 0 || line[m] != ' ' ||
	    memcmp(line + m + 1, section, s) != 0 || memcmp(line + m + 1 + s, " 0x", 3) != 0)
		return false;
	for (; at < size; at++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = memchr(digits, line[at], 16);

		if (!digit || address >> 60)
			return false;
		address = address << 4 | (uint64_t)(digit - digits);
	}
	*ret = address;
	return true;
}

bool kernel_file_section(const struct kernel_file *file, const char *module, const char *section,
			 size_t *at, uint64_t *ret)
{
	const char *end = file->sections + file->sections_size;

	while (*at < file->sections_size) {
		const char *line = file->sections + *at;
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t size = (size_t)((newline ? newline : end) - line);

		*at += size + 1;
		if (parse_section(line, size, module, section, ret))
			return true;
	}
	return false;
}

/* Whether there may be probes at unknown places. The pages with copies of probed instructions have
 * names, and stay when the last probe goes. */
static bool may_have_probes(const struct kernel_file *file)
{
	static const char owner[] = "__builtin__kprobes";
	uint64_t known;
	size_t n, at = 0;
	const struct kernel_link *l = kernel_links_all(file->links, &n);

	if (kernel_file_section(file, "*", "kprobes", &at, &known))
		return false;
	for (size_t i = 0; i < n; i++)
		if (l[i].owner_size == sizeof(owner) - 1 &&
		    memcmp(l[i].owner, owner, sizeof(owner) - 1) == 0)
			return true;
	return false;
}

int kernel_file_mask_probes(struct kernel_file_text *t, const struct kernel_file *file)
{
	uint64_t address;
	size_t at = 0;
	int r = 0;

	if (may_have_probes(file))
		return kernel_file_mask(t, t->address, t->size);
	while (r == 0 && kernel_file_section(file, "*", "kprobe", &at, &address))
		r = kernel_file_mask(t, address, PROBE_SIZE);
	return r;
}
