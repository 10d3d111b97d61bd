/*
 * /proc/kallsyms: the kernel's functions with their addresses, and which parts of memory belong to
 * which module.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/kernel/kernel_modules.h"
#include "proto/bytes.h"

#define KERNEL_SYMBOLS_MAX_TEXT (64u << 20)

/* A symbol of something that is not the kernel's own image. */
struct kernel_mark {
	uint64_t address;
	uint32_t owner; /* index into owners */
	bool code;	/* of a section with code */
};

struct kernel_symbols {
	/* Lines of the file, each with a newline: functions, and the names that say where the
	 * kernel's code and the tables of its patched places begin and end. */
	struct bytes_out text;
	size_t n_functions;
	bool hidden; /* all addresses are 0: CAP_SYSLOG is wanting, or kernel.kptr_restrict is 2 */
	uint64_t first;		       /* _text; 0: not there */
	uint64_t code_begin, code_end; /* _stext, _etext; 0 */
	struct kernel_mark *marks;     /* owned; in order of address */
	size_t n_marks, n_sorted, marks_capacity;
	/* "virtio"; "bpf", "__builtin__ftrace", "__builtin__kprobes": not modules but made at run
	 * time. */
	char (*owners)[KERNEL_OWNER_SIZE]; /* owned */
	size_t n_owners, owners_capacity;
};

/* PATH is "/proc/kallsyms". 0, -ENOMEM, -E2BIG, -errno. Lines of another form are left out. */
int kernel_symbols_read(const char *path, struct kernel_symbols *ret);
void kernel_symbols_done(struct kernel_symbols *s);
/* SIZE bytes of code at ADDRESS, which OWNER has as a record says (PERF_RECORD_KSYMBOL): not all
 * kernels show BPF programs in the file. What the file shows stays as it is. To be followed by
 * kernel_symbols_sort(). 0, -ENOMEM, -E2BIG. */
int kernel_symbols_add(struct kernel_symbols *s, const char *owner, uint64_t address,
		       uint64_t size);
void kernel_symbols_sort(struct kernel_symbols *s);
