/*
 * Inside of the view of calls: threads and their open frames (calltree.c), inlined functions around
 * them (calltree_inlined.c), when threads have the CPU (calltree_edges.c), and the lines
 * (calltree_lines.c).
 */
#pragma once

#include "decoder/worker/calltree/calltree.h"
#include "decoder/worker/view/stream_time.h"
#include "proto/base.h"
#include "proto/callstream.h"

#define CALLTREE_NONE UINT32_MAX

struct calltree_frame {
	uint64_t insns;	 /* executed in the frame itself */
	bool hidden;	 /* it has no line */
	uint8_t inlined; /* lines of inlined functions around it */
};

/* A gap that is open: its end is not known yet. */
struct calltree_gap {
	bool open, told; /* told: a part of it was written */
	enum fault fault;
	uint64_t time, until;
};

struct calltree_thread {
	const struct timeline_thread *thread;
	uint32_t number; /* in the stream; 0: not defined yet */
	uint32_t edge;	 /* the next one of this thread; CALLTREE_NONE: there is none */
	bool on;	 /* has the CPU, as the lines say */
	bool kernel;	 /* the innermost frame is the kernel, which is not traced */
	uint64_t time;	 /* of its last line */
	/* Frames [begin, end) of a ring of CAPACITY, a power of two, and under them DROPPED frames
	 * of which only the number is known. */
	struct calltree_frame *frames;
	size_t capacity;
	uint64_t begin, end, dropped;
	uint64_t inlined;	 /* lines of inlined functions around the frames of the ring */
	uint64_t insns;		 /* the thread's, when they were given to a frame last */
	struct stream_when last; /* when its last branch happened */
	uint8_t last_kind;	 /* of that branch: enum flow_kind */
	uint64_t last_from, last_to;
	uint32_t last_context;
	uint32_t cpu; /* where it ran last */
	struct calltree_gap gap;
	struct calltree_rate {
		uint64_t insns, ticks; /* of the thread, when it was taken last */
		uint32_t ratio;	       /* of the core's clock to the bus, then */
	} rate;
};

/* A thread gets or leaves a CPU. */
struct calltree_edge {
	uint64_t time;
	uint32_t thread; /* index */
	uint32_t cpu;
	uint32_t next; /* of the same thread; CALLTREE_NONE */
	bool on, done;
	uint8_t why; /* enum callstream_why */
};

struct calltree {
	const struct decode_options *options;
	const struct replay *replay;
	struct tally *tally;
	struct tally_watch watch;
	struct steps_count skipped; /* counts the walks of code without a thread */
	struct lines *lines;
	char *line; /* CALLSTREAM_MAX_LINE bytes */
	struct calltree_thread *threads;
	size_t n_threads, capacity;
	uint32_t *slots; /* hash table: index of the thread plus 1; 0: free */
	size_t n_slots;
	struct calltree_edge *edges; /* in order of time */
	size_t n_edges, edges_done;
	uint32_t *functions; /* number in the stream by the tally's index; 0: not defined yet */
	size_t n_functions, functions_defined;
	struct calltree_site *sites; /* hash table of calls: what is inlined around them */
	size_t n_sites, n_site_slots;
	uint32_t threads_defined;
	struct calltree_gap *cpus; /* gaps of nobody, by CPU of the manifest */
	uint32_t *ratios;	   /* the newest by CPU; 0: not known */
	struct stream_time time;
	uint32_t thread;	 /* of the stretch at hand: index */
	struct stream_when now;	 /* of the item at hand, */
	uint64_t now_lo, now_hi; /* made of this interval of the TSC */
	size_t now_cpu;		 /* on this CPU; SIZE_MAX: of no item */
	uint64_t frames, cut;
};

/* --- calltree_lines.c --- */

/* The number of CPU number INDEX. */
uint32_t calltree_cpu(const struct calltree *c, size_t index);
void calltree_put(struct calltree *c, const struct callstream_item *item);
void calltree_head(struct calltree *c);
/* The thread's number in the stream, defined now if it was not. */
uint32_t calltree_define_thread(struct calltree *c, struct calltree_thread *t);
/* The number of the tally's function INDEX. 0 or -ENOMEM. */
int calltree_define_function(struct calltree *c, uint32_t index, uint32_t *ret);
/* A gap of T (NULL: of nobody) on CPU from G->time to UNTIL. */
void calltree_put_gap(struct calltree *c, struct calltree_thread *t, uint32_t cpu,
		      const struct calltree_gap *g, uint64_t until);
/* The instant MARK of T (NULL: nobody). */
void calltree_put_mark(struct calltree *c, struct calltree_thread *t, uint32_t cpu, uint64_t time,
		       uint64_t value, const char *name);

/* --- calltree.c --- */

/* The index of THREAD, new or known. 0 or -ENOMEM. */
int calltree_find(struct calltree *c, const struct timeline_thread *thread, uint32_t *ret);

/* --- calltree_inlined.c --- */

/* The functions that are inlined around the instruction at FROM in CONTEXT: *ret_n (up to 31),
 * defined with numbers from *ret_first on, outermost first. None where lines are not asked for or
 * DWARF does not know. 0 or -ENOMEM. */
int calltree_inlined(struct calltree *c, uint32_t context, uint64_t from, uint32_t *ret_first,
		     unsigned *ret_n);

/* --- calltree_edges.c --- */

/* Loads the turns of the sideband. 0 or -ENOMEM. */
int calltree_edges_load(struct calltree *c);
/* Writes the edges of T up to TIME. */
void calltree_edges_until(struct calltree *c, struct calltree_thread *t, uint64_t time);
/* T executes: if it has no CPU yet, writes its edges up to where it gets one. */
void calltree_edges_on(struct calltree *c, struct calltree_thread *t);
/* T leaves the kernel, at HI at the latest, and does not enter the kernel again before NEXT (0: not
 * known). Writes that it left the CPU and got it back, if that can only have been before. */
void calltree_edges_back(struct calltree *c, struct calltree_thread *t, uint64_t hi, uint64_t next);
/* Writes the edges of all threads up to TIME. */
void calltree_edges_all(struct calltree *c, uint64_t time);
