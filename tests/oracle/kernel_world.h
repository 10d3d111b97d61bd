/*
 * A simulated processor that takes a random walk through real code, and the record of that walk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

#include "capture/emu/machine/encode.h"

#define KERNEL_START UINT64_C(0xffffffff80000000)
#define USER_START   UINT64_C(0x401000)
#define STACK_MAX    1024u
#define SITES_MAX    512u
#define STILL_MAX    2000u

struct text {
	uint8_t *bytes;
	uint64_t address, size;
};

struct branch {
	uint64_t from, to;
};

/* A NOP that can become a jump to TARGET, and a NOP again. */
struct site {
	uint64_t address, target;
	uint64_t busy_until; /* an INT3 is there until this time; 0: none */
	uint64_t poke_at;    /* time of the poke record while the site is busy */
	bool jumps;
};

struct poke {
	uint64_t time;
	uint8_t body[12 + 10];
};

struct world {
	struct text kernel, user[2];
	uint64_t *entries, *exits;
	size_t n_entries, n_exits;
	ZydisDecoder zydis;
	uint64_t random;
	bool alone; /* one process, no compressed returns: libipt can decode this, too */
	/* The processor. */
	uint64_t ip, tsc, last_tsc;
	unsigned process;
	uint64_t resume[2];
	uint64_t stack[STACK_MAX];
	size_t depth;
	uint64_t seen[STILL_MAX]; /* addresses since the last packet */
	unsigned still;
	/* The trace. */
	struct encoder encoder;
	struct encode_state state;
	_Atomic uint64_t tnt;
	uint64_t psb_at;
	/* The record of the walk. */
	struct branch *truth;
	size_t n_truth, max_truth;
	uint8_t *entered; /* the process at each entry into user code */
	size_t n_entered;
	struct site sites[SITES_MAX];
	size_t n_sites;
	struct poke *pokes;
	size_t n_pokes, max_pokes;
	uint64_t interrupts, syscalls, int3s, patched;
	/* The copy of the text. */
	uint8_t *copy;
	uint64_t copy_time;
};

_Noreturn void world_die(const char *format, ...);
/* Returns P; ends the program if P is NULL. */
void *world_must(void *p);
/* Load the largest executable section of an ELF file; or a file that holds the text at ADDRESS, as
 * in the kernel's memory. */
void world_load(struct world *w, const char *path);
void world_load_memory(struct world *w, const char *path, uint64_t address);
/* Walks for the given number of branches, during which about so many sites change; copies the text
 * half-way. */
void world_run(struct world *w, size_t branches, size_t pokes);
void world_free(struct world *w);
