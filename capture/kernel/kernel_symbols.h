/*
 * The symbols and modules of the running kernel: /proc/kallsyms and /proc/modules.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"

#define KERNEL_OWNER_SIZE 64 /* a module's name and its NUL: MODULE_NAME_LEN is 56 */

/* --- Modules --- */

#define KERNEL_MODULES_MAX_TEXT (4u << 20)

/* One line (kernel/module/procfs.c, m_show). */
struct kernel_module {
	char name[KERNEL_OWNER_SIZE];
	uint64_t size;	  /* bytes, of text and data */
	uint64_t address; /* 0: hidden */
};

struct kernel_modules {
	struct bytes_out text;	     /* the whole file */
	struct kernel_module *items; /* owned */
	size_t n, capacity;
};

/* PATH is "/proc/modules". 0, -ENOMEM, -E2BIG, or -errno (-ENOENT: a kernel without modules; *ret
 * is empty). */
int kernel_modules_read(const char *path, struct kernel_modules *ret);
void kernel_modules_done(struct kernel_modules *m);
/* The module of M with X's name, address and size; NULL: it is gone. */
const struct kernel_module *kernel_modules_find(const struct kernel_modules *m,
						const struct kernel_module *x);

/* --- Symbols --- */

#define KERNEL_SYMBOLS_MAX_TEXT (64u << 20)

/* A symbol outside of the kernel's own image. */
struct kernel_mark {
	uint64_t address;
	uint32_t owner; /* index into owners */
	bool code;	/* of a section with code */
};

struct kernel_symbols {
	/* The needed lines of the file, each with a newline: functions, and the names that say
	 * where the kernel's code and the tables of its patched places begin and end. */
	struct bytes_out text;
	size_t n_functions;
	bool hidden;	/* all addresses are 0: without CAP_SYSLOG, or kernel.kptr_restrict is 2 */
	uint64_t first; /* address of _text; 0: unknown */
	uint64_t code_begin, code_end; /* addresses of _stext and _etext; 0: unknown */
	struct kernel_mark *marks;     /* owned; in order of address */
	size_t n_marks, n_sorted, marks_capacity;
	/* Names of modules ("virtio"), and of what is made at run time: "bpf", "__builtin__ftrace",
	 * "__builtin__kprobes". */
	char (*owners)[KERNEL_OWNER_SIZE]; /* owned */
	size_t n_owners, owners_capacity;
};

/* PATH is "/proc/kallsyms". Lines of another form are left out. 0, -ENOMEM, -E2BIG, -errno. */
int kernel_symbols_read(const char *path, struct kernel_symbols *ret);
void kernel_symbols_done(struct kernel_symbols *s);
/* Adds SIZE bytes of code at ADDRESS that belong to OWNER, as a record says (PERF_RECORD_KSYMBOL):
 * some kernels do not show BPF programs in the file. Does nothing if the file shows a symbol there.
 * The caller then calls kernel_symbols_sort(). 0, -ENOMEM, -E2BIG. */
int kernel_symbols_add(struct kernel_symbols *s, const char *owner, uint64_t address,
		       uint64_t size);
void kernel_symbols_sort(struct kernel_symbols *s);
