/*
 * Functions: from an address in a context to a function's counters, and from a piece of code to its
 * naming.
 *
 * A naming is a piece of code together with the functions at its offsets. In all contexts in which
 * code has the same naming, the same offset belongs to the same function, wherever the code lies.
 * The naming depends on the image, on where the piece lies in the image, on how far the image is
 * mapped around the piece, and on the address if the process has a perf map, which names functions
 * by address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/hot/nodes.h"
#include "decoder/worker/count/durations.h"
#include "decoder/worker/replay/replay.h"

/* Functions beyond this number share the function at index 0. */
#define FUNCTIONS_MAX (1u << 18)
/* An image without symbols is one function with this offset. */
#define FUNCTIONS_WHOLE_IMAGE UINT64_MAX

/* All fields that calls and returns change lie in one cache line. */
struct function {
	_Alignas(64) uint64_t calls;
	/* While the function is on the stack of the thread being counted, the totals are less than
	 * they are by the thread's counters as they were when the outermost of its calls began
	 * (modulo 2^64). */
	uint64_t self_insns, total_insns, self_ticks, total_ticks;
	uint64_t unended;      /* of CALLS: nobody saw the call's end */
	uint32_t active;       /* how often the function is on that stack */
	uint32_t image;	       /* UINT32_MAX: unknown (index 0) */
	uint64_t offset;       /* in the file */
	const char *name;      /* borrowed; NULL: no symbol */
	uint64_t address;      /* of its start where the function was first met */
	uint64_t file_address; /* of its start, as in struct symbol */
	uint64_t first;	       /* TSC when it was first met; 0: unknown */
	uint32_t durations;    /* number in the list of durations, plus 1; 0: all took no time */
	/* Of the calls that ended: those that had jumped to another function, and ended with it. */
	uint64_t left;
	bool unbounded; /* as in struct symbol */
};

/* Addresses [lo, hi) that belong to one function in a context: the largest such range around the
 * address that was asked for. */
struct functions_span {
	uint64_t lo, hi;
	uint64_t entry; /* the function's first instruction, as far as it is mapped */
	uint32_t context;
	uint32_t function;
};

struct functions {
	const struct replay *replay; /* borrowed */
	struct function *list;	     /* list[0]: unknown code, and functions beyond FUNCTIONS_MAX */
	size_t n, capacity;
	uint32_t *slots;
	size_t n_slots;
	struct functions_span *cache; /* direct-mapped by address: of lines, and of larger areas */
	uint64_t refused;	      /* look-ups that gave list[0] because the table was full */
	struct durations_list durations; /* of the calls of functions */
	uint64_t now;			 /* TSC; the time of functions that are first met */
};

/* 0 or -ENOMEM. */
int functions_init(struct functions *f, const struct replay *replay);
void functions_done(struct functions *f);
/* The function at ADDRESS as functions_find() would name it, with no counters. Fills *RET, adds
 * nothing to F, and says its number there; 0: F does not have it. *RET_AT is where ADDRESS lies in
 * the file. false: there is no code at ADDRESS. */
bool functions_resolve(const struct functions *f, uint32_t context, uint64_t address,
		       struct function *ret, uint64_t *ret_at, uint32_t *ret_number);
/* The span around ADDRESS (never empty). 0 or -ENOMEM. */
int functions_find(struct functions *f, uint32_t context, uint64_t address,
		   struct functions_span *ret);

/* The text by which a function without a name is known: the last component of PATH (NULL: unknown),
 * and ADDRESS in the file, or OFFSET if there is no ELF file (ADDRESS 0), or nothing
 * (FUNCTIONS_WHOLE_IMAGE). */
#define FUNCTIONS_MAX_UNNAMED 288u
void functions_unnamed(char ret[static FUNCTIONS_MAX_UNNAMED], const char *path, uint64_t address,
		       uint64_t offset);

/* --- Namings --- */

/* NAMING_NONE: unknown code, or code that has changed. All namings are below NAMINGS_MAX. */
#define NAMING_NONE 0u
#define NAMINGS_MAX ((1u << 14) - 1)

struct naming {
	uint64_t offset;		 /* of the piece, in the file */
	uint64_t map_before, map_behind; /* bytes mapped before the piece, and from its start on */
	uint64_t address;		 /* of the piece, if there is a perf map */
	uint32_t image;
	uint32_t pid;  /* of the process with the perf map; UINT32_MAX: there is none */
	uint32_t next; /* of the same hash; 0: none */
};

struct namings {
	const struct replay *replay; /* borrowed */
	struct naming *list;	     /* [0]: NAMING_NONE */
	uint32_t n, max;
	uint32_t *slots;
	uint32_t *of_place; /* naming + 1 by place; 0: not looked up */
	size_t n_places;
};

/* 0 or -ENOMEM. */
int namings_init(struct namings *n, const struct replay *replay);
void namings_done(struct namings *n);
/* From here on the numbers of places have other meanings. */
void namings_forget_places(struct namings *n);
/* Looks up PLACE of NODES, which is a place of CONTEXT. 0; NAMINGS_FULL: there were too many
 * namings, and all are forgotten now; -ENOMEM. */
#define NAMINGS_FULL 1
int namings_look_up(struct namings *n, const struct nodes *nodes, uint32_t context, uint32_t place,
		    uint32_t *ret);

/* The same for a place that may have been looked up before. */
static inline int namings_find(struct namings *n, const struct nodes *nodes, uint32_t context,
			       uint32_t place, uint32_t *ret)
{
	if (place < n->n_places && n->of_place[place] != 0) {
		*ret = n->of_place[place] - 1;
		return 0;
	}
	return namings_look_up(n, nodes, context, place, ret);
}
