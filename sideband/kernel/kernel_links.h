/*
 * The kernel's symbols by name, out of a snapshot's text "kallsyms": what links a module's file to
 * the kernel that loaded it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_link {
	const char *name, *owner; /* not terminated; OWNER_SIZE 0: the kernel's own image */
	uint32_t name_size, owner_size;
	uint64_t address;
	char type; /* nm's letter */
};

struct kernel_links;

/* TEXT is borrowed until kernel_links_free(); lines of another form are left out. 0 or -ENOMEM. */
int kernel_links_new(const char *text, size_t size, struct kernel_links **ret);
void kernel_links_free(struct kernel_links *n);
/* The address of NAME in the kernel's own image; 0: there is none, or there are several. */
uint64_t kernel_links_own(const struct kernel_links *n, const char *name);
/* The address of what a module means by NAME that it does not define: 0: nobody has one, or several
 * have. */
uint64_t kernel_links_global(const struct kernel_links *n, const char *name);
/* All of them, in order of name. */
const struct kernel_link *kernel_links_all(const struct kernel_links *n, size_t *ret_n);
