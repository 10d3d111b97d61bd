/*
 * Code as a graph of blocks. A block is a straight run of instructions up to a branch. It is
 * decoded when it is first reached, and kept by context, mode and address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/code.h"
#include "decoder/code/insn.h"
#include "decoder/packet/fault.h"

/* A longer run is several blocks; all but the last have class INSN_OTHER. */
#define GRAPH_BLOCK_MAX 250

struct graph_block {
	uint64_t context; /* for the kernel's code GRAPH_KERNEL and a version */
	uint64_t ip;
	uint64_t last;	 /* address of the last instruction: the branch */
	uint64_t next;	 /* behind LAST; with a fault: where the code could not be read */
	uint64_t target; /* of a direct branch */
	struct graph_block *taken, *fall; /* the blocks at target and next once they are known */
	uint8_t class;			  /* enum insn_class of the last instruction */
	uint8_t fault;			  /* enum fault: why we cannot execute what is at NEXT */
	uint8_t mode;
	uint8_t n;	  /* instructions; 0 only with a fault */
	uint8_t changing; /* enum code_change: why some of its code may have been other code */
	uint8_t sizes[];  /* of each instruction */
};

/* Room for the largest block. */
union graph_room {
	struct graph_block block;
	uint8_t bytes[sizeof(struct graph_block) + GRAPH_BLOCK_MAX];
};

struct graph;

#define GRAPH_KERNEL (UINT64_C(1) << 62)

/* Whether B is of code that changes: at the next visit the block may be another one. */
static inline bool graph_changes(const struct graph_block *b)
{
	return (b->context & GRAPH_KERNEL) != 0 && (uint32_t)b->context != 0;
}

/* CODE is as in struct flow_config. The graph never uses much more than MAX_BYTES: at that size it
 * throws its blocks away, and builds them again when they are needed. NULL: no memory. */
struct graph *graph_new(int (*code)(void *userdata, uint64_t context, uint64_t ip,
				    struct flow_code *ret),
			void *userdata, size_t max_bytes);
void graph_free(struct graph *g);
/* Sets the function that gives the code of contexts with GRAPH_KERNEL: CODE is as kernel_code in
 * struct flow_config. */
void graph_set_kernel(struct graph *g, int (*code)(void *userdata, uint64_t ip, uint32_t version,
						   struct flow_code *ret));
/* The block that begins at IP. A call may free all blocks that were given before;
 * graph_generation() has then changed. NULL: no memory. */
struct graph_block *graph_get(struct graph *g, uint64_t context, enum insn_mode mode, uint64_t ip);
uint64_t graph_generation(const struct graph *g);
/* The same for a caller that only looks at the block: returns a block that the graph keeps, or
 * fills *ROOM. Frees no block. NULL: no memory. */
const struct graph_block *graph_look(struct graph *g, uint64_t context, enum insn_mode mode,
				     uint64_t ip, union graph_room *room);
/* From this call on several threads use G: the functions above take the lock, and a caller that
 * holds the lock uses the functions with _locked. 0 or -errno. */
int graph_share(struct graph *g);
/* Both do nothing if G is not shared. KNOWN: until the lock is released the graph does not ask the
 * user for code and frees no block; a call that would need either returns "no memory". All threads
 * but the one that calls the flow must pass KNOWN. */
void graph_lock(struct graph *g, bool known);
void graph_unlock(struct graph *g);
/* Releases the lock, too; for the thread that may ask for code, after a call with KNOWN failed.
 * Then asks, without the lock, for the code that the call lacked. True: that code is known now. */
bool graph_unlock_and_ask(struct graph *g);
/* For a caller that holds the lock: the piece of code around IP in CONTEXT (0, an enum fault, or
 * -ENOMEM), and graph_look(). */
int graph_code(struct graph *g, uint64_t context, uint64_t ip, struct flow_code *ret);
const struct graph_block *graph_look_locked(struct graph *g, uint64_t context, enum insn_mode mode,
					    uint64_t ip, union graph_room *room);
/* How many instructions of B come before IP; -1: no instruction of B begins at IP. */
int graph_index(const struct graph_block *b, uint64_t ip);
