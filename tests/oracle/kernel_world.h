/*
 * A processor that runs through real code by chance, and what happened to it: kernel_world.c, used
 * by kernel_walk.c.
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

/* A NOP that becomes a jump to TARGET, or back. */
struct site {
	uint64_t address, target;
	uint64_t busy_until; /* there is an INT3 up to that time; 0: there is none */
	uint64_t poke_at;    /* the record's time while it is busy */
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
	bool alone; /* one process, no compressed returns: libipt can decode that, too */
	/* The processor. */
	uint64_t ip, tsc, last_tsc;
	unsigned process;
	uint64_t resume[2];
	uint64_t stack[STACK_MAX];
	size_t depth;
	uint64_t seen[STILL_MAX]; /* where it was since the last packet */
	unsigned still;
	/* The trace. */
	struct encoder encoder;
	struct encode_state state;
	_Atomic uint64_t tnt;
	uint64_t psb_at;
	/* What happened. */
	struct branch *truth;
	size_t n_truth, max_truth;
	uint8_t *entered; /* the process at each entry into user code */
	size_t n_entered;
	struct site sites[SITES_MAX];
	size_t n_sites;
	struct poke *pokes;
	size_t n_pokes, max_pokes;
	uint64_t interrupts, syscalls, int3s, patched;
	/* The copy. */
	uint8_t *copy;
	uint64_t copy_time;
};

_Noreturn void world_die(const char *format, ...);
/* P, which must not be NULL. */
void *world_must(void *p);
/* The largest executable section of an ELF file; or a file that is the text at ADDRESS, as the
 * kernel has it in memory. */
void world_load(struct world *w, const char *path);
void world_load_memory(struct world *w, const char *path, uint64_t address);
/* Runs for so many branches, in which about so many places are changed; the text is copied
 * half-way. */
void world_run(struct world *w, size_t branches, size_t pokes);
void world_free(struct world *w);
