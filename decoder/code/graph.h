/*
 * Code as a graph of blocks: straight runs of instructions up to a branch, decoded when they are
 * first reached and kept by context, mode and address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/code.h"
#include "decoder/code/insn.h"
#include "decoder/packet/fault.h"

/* Longer runs are several blocks (class INSN_OTHER). */
#define GRAPH_BLOCK_MAX 250

struct graph_block {
	uint64_t context; /* of the kernel's code: GRAPH_KERNEL, and a version */
	uint64_t ip;
	uint64_t last;	 /* address of the last instruction: the branch */
	uint64_t next;	 /* behind it; of a block with a fault: where the code could not be read */
	uint64_t target; /* of a direct branch */
	struct graph_block *taken, *fall; /* the blocks at target and next once they are known */
	uint8_t class;			  /* enum insn_class of the last instruction */
	uint8_t fault;			  /* enum fault: what is at next cannot be executed by us */
	uint8_t mode;
	uint8_t n;	 /* instructions; 0 only with a fault */
	bool changing;	 /* some of it is code that may have changed (struct flow_code) */
	uint8_t sizes[]; /* of each instruction */
};

/* Room for the largest block. */
union graph_room {
	struct graph_block block;
	uint8_t bytes[sizeof(struct graph_block) + GRAPH_BLOCK_MAX];
};

struct graph;

#define GRAPH_KERNEL (UINT64_C(1) << 62)

/* The block is of code that changes: it may be another one at the next visit. */
static inline bool graph_changes(const struct graph_block *b)
{
	return (b->context & GRAPH_KERNEL) != 0 && (uint32_t)b->context != 0;
}

/* CODE as in struct flow_config. Never uses much more than MAX_BYTES: what is there is then thrown
 * away and built again as it is needed. NULL: no memory. */
struct graph *graph_new(int (*code)(void *userdata, uint64_t context, uint64_t ip,
				    struct flow_code *ret),
			void *userdata, size_t max_bytes);
void graph_free(struct graph *g);
/* Code of contexts with GRAPH_KERNEL; as in struct flow_config. */
void graph_set_kernel(struct graph *g, int (*code)(void *userdata, uint64_t ip, uint32_t version,
						   struct flow_code *ret));
/* The block that begins at IP. A call may end the life of all blocks it gave before: then
 * graph_generation has changed. NULL: no memory. */
struct graph_block *graph_get(struct graph *g, uint64_t context, enum insn_mode mode, uint64_t ip);
uint64_t graph_generation(const struct graph *g);
/* The same for a look only: one that is kept, or *ROOM. Ends no block's life. NULL: no memory. */
const struct graph_block *graph_look(struct graph *g, uint64_t context, enum insn_mode mode,
				     uint64_t ip, union graph_room *room);
/* From here on several threads use it: the functions above take the lock; whoever holds it himself
 * uses those with _locked. 0 or -errno. */
int graph_share(struct graph *g);
/* Nothing, of a graph that is not shared. KNOWN: nothing is asked of the user and no block's life
 * ends; what would need that is "no memory". All threads but the caller's want it so. */
void graph_lock(struct graph *g, bool known);
void graph_unlock(struct graph *g);
/* The same for the thread that asks for code, behind something that was done with KNOWN and failed:
 * asks, without the lock, for the code that it wanted. True: that is known now. */
bool graph_unlock_and_ask(struct graph *g);
/* The piece of code around IP in CONTEXT, and as graph_look, where the lock is held: 0, an enum
 * fault, or -ENOMEM. */
int graph_code(struct graph *g, uint64_t context, uint64_t ip, struct flow_code *ret);
const struct graph_block *graph_look_locked(struct graph *g, uint64_t context, enum insn_mode mode,
					    uint64_t ip, union graph_room *room);
/* How many instructions of B come before IP; -1: none of them begins there. */
int graph_index(const struct graph_block *b, uint64_t ip);
