/*
 * What the formats of this room share: output, names, threads and frames, and what a format is
 * told.
 */
#pragma once

#include "ctl/export/export.h"

#include <string.h>

#include "proto/base.h"
#include "proto/bytes.h"

/* --- out.c: buffered output, which remembers its first failure --- */

struct out {
	int fd;
	int error; /* 0 or -errno */
	size_t used;
	struct gzip *gzip; /* owned; NULL: not compressed */
	char buffer[65536];
};

void out_init(struct out *o, int fd);
void out_done(struct out *o);
/* Compresses everything from here on as gzip(1) does. To be called before anything is written; ends
 * with out_finish(). 0 or -ENOMEM. */
int out_compress(struct out *o);
void out_block(struct out *o, const void *data, size_t size);
void out_text(struct out *o, const char *text);
void out_number(struct out *o, uint64_t v);
void out_hex(struct out *o, uint64_t v); /* with 0x */
/* TEXT with each byte that is in SPECIALS as \xNN. */
void out_escaped(struct out *o, const char *text, const char *specials);
/* TEXT between two QUOTEs; a QUOTE within it is doubled. */
void out_quoted(struct out *o, const char *text, char quote);
/* Writes what is left. 0 or the first failure. */
int out_finish(struct out *o);

/* --- slots.c: a hash table of numbers, for what strangers chose --- */

struct slot {
	uint32_t hash, number1; /* number + 1; 0: free */
};

struct slots {
	struct slot *list; /* owned */
	uint32_t n, used;  /* slots: a power of two, and those with a number */
	uint64_t key[2];   /* random */
};

int slots_init(struct slots *s); /* 0, -ENOMEM, or -EIO: no random bytes */
void slots_done(struct slots *s);
uint32_t slots_hash(const struct slots *s, const void *data, size_t size);
/* Finds a number with HASH, and with the next call the next one; *STEP is 0 at first. The caller
 * compares: what is different may have the same hash. False: there is none. */
bool slots_next(const struct slots *s, uint32_t hash, uint32_t *step, uint32_t *ret);
/* Adds NUMBER, less than UINT32_MAX / 4. 0 or -ENOMEM; the table is then unchanged. */
int slots_add(struct slots *s, uint32_t hash, uint32_t number);
/* SipHash-1-3, for tests. */
uint64_t slots_siphash(const uint64_t key[static 2], const void *data, size_t size);

/* --- names.c: safe texts, each kept once, numbered from 0; number 0 is "" --- */

struct names {
	char **list; /* owned, as its texts */
	uint32_t n, capacity;
	struct slots slots;
	uint64_t bytes;
};

int names_init(struct names *s);
void names_done(struct names *s);
/* Makes TEXT safe and finds or adds it. 0, -ENOMEM, -E2BIG; the names are then unchanged. */
int names_add(struct names *s, const char *text, uint32_t *ret);
/* Writes TEXT as names_add() keeps it to TO. */
void names_clean(const char *text, char to[static EXPORT_MAX_NAME + 1]);

/* --- Threads and frames, kept by export.c --- */

struct export_frame {
	uint64_t id;		      /* numbered from 1 in the order of begins */
	uint64_t begin;		      /* ns */
	uint64_t cpu_before;	      /* the thread's time on CPUs when the frame began */
	uint64_t self_ns, self_cpu;   /* within the frame itself, so far */
	uint64_t inner_insns;	      /* of calls that ended */
	uint32_t function, cpu, node; /* NODE is of stacks.c */
	enum callstream_begin how;
};

struct export_thread {
	uint32_t number, pid, tid;
	uint32_t name;		     /* in exporter.names */
	struct export_frame *frames; /* owned; the last is the innermost */
	size_t n, capacity;
	uint64_t last; /* time of the last item */
	uint64_t cpu_ns;
	uint64_t turn_since; /* with IN_TURN */
	uint32_t cpu, cpu_of_turn;
	bool on, in_turn;
	/* For the formats. */
	void *own;
	uint32_t node;
};

/* Functions of ours come first, and that of number N of the stream has the index OWN_FUNCTIONS - 1
 * + N. */
enum { FUNCTION_UNKNOWN, FUNCTION_SYSCALL, FUNCTION_INTERRUPT, OWN_FUNCTIONS };

struct export_function {
	uint32_t name, image, file; /* in exporter.names */
	uint32_t line;
	bool defined;
	uint64_t address;
};

/* A frame that ends. */
struct export_call {
	const struct export_frame *frame;
	uint64_t parent; /* id of the frame around it, or 0 */
	size_t depth;	 /* frames around it */
	uint64_t end, cpu_ns;
	uint64_t self_insns, insns;
	uint32_t cpu;
	enum callstream_end how;
};

struct export_turn {
	uint64_t begin, end;
	uint32_t cpu;
	enum callstream_why why;
};

struct exporter {
	const struct export_format *format;
	enum export_weight weight;
	struct out out;
	struct names names;
	struct export_thread **threads;	   /* by number; NULL: not defined */
	struct export_function *functions; /* by index, see OWN_FUNCTIONS */
	uint32_t n_threads, n_functions;   /* of the arrays */
	size_t threads_capacity, functions_capacity;
	uint64_t first, until, trigger; /* of the head */
	uint64_t n_frames, next_id;
	struct exporter_told told;
	bool begun, ended;
	int error;
	void *own; /* of the format */
};

static inline const char *name_text(const struct exporter *e, uint32_t name)
{
	return e->names.list[name];
}

static inline const char *function_name(const struct exporter *e, uint32_t function)
{
	const char *name = name_text(e, e->functions[function].name);

	return *name ? name : name_text(e, e->functions[FUNCTION_UNKNOWN].name);
}

/* Writes "NAME (TID)" to TO. */
void thread_title(const struct exporter *e, const struct export_thread *t,
		  char to[static EXPORT_MAX_NAME + 32]);

/* What a format is told. Any of these may be NULL; output that fails shows in exporter.out. 0 or
 * -errno. T NULL: the CPU's. */
struct export_ops {
	int (*start)(struct exporter *e);			    /* the head is known */
	int (*thread)(struct exporter *e, struct export_thread *t); /* new, or has a new name */
	int (*function)(struct exporter *e, uint32_t function);
	int (*begin)(struct exporter *e, struct export_thread *t, struct export_frame *f);
	int (*end)(struct exporter *e, struct export_thread *t, const struct export_call *c);
	int (*on)(struct exporter *e, struct export_thread *t, const struct callstream_item *i);
	int (*off)(struct exporter *e, struct export_thread *t, const struct callstream_item *i);
	int (*turn)(struct exporter *e, struct export_thread *t, const struct export_turn *turn);
	int (*gap)(struct exporter *e, struct export_thread *t, const struct callstream_item *i);
	int (*mark)(struct exporter *e, struct export_thread *t, const struct callstream_item *i);
	int (*finish)(struct exporter *e);
	void (*done)(struct exporter *e); /* frees exporter.own and export_thread.own */
};

extern const struct export_ops speedscope_ops, perfetto_ops, pprof_ops, collapsed_ops,
	callgrind_ops, sql_ops, csv_calls_ops, csv_turns_ops, csv_gaps_ops, csv_marks_ops;

/* --- stacks.c: different stacks, with what was counted in each --- */

#define STACK_NONE UINT32_MAX

struct stack_node {
	uint32_t parent; /* STACK_NONE: FUNCTION is a thread */
	uint32_t function;
	uint32_t child, sibling;		/* first child, next sibling, or STACK_NONE */
	uint64_t calls, insns, cpu_ns, wall_ns; /* of the last frame itself */
};

/* Parents come before their children. */
struct stacks {
	struct stack_node *list;
	uint32_t n, capacity;
	struct slots slots;
};

/* The parts of struct export_ops for formats whose exporter.own is a struct stacks. */
int stacks_start(struct exporter *e);
int stacks_thread(struct exporter *e, struct export_thread *t);
int stacks_begin(struct exporter *e, struct export_thread *t, struct export_frame *f);
int stacks_end(struct exporter *e, struct export_thread *t, const struct export_call *c);
void stacks_done(struct exporter *e);

/* --- spool.c: numbers, thread by thread, in a temporary file --- */

struct spool;
struct spool_strand; /* the numbers of one thread */

int spool_new(struct spool **ret);
void spool_freep(struct spool **s);
int spool_strand_new(struct spool *s, struct spool_strand **ret);
void spool_strand_free(struct spool_strand *strand);
int spool_put(struct spool *s, struct spool_strand *strand, uint64_t v);
/* Reads from the begin, after all puts. 0; -ENODATA: there is no more; or -errno. */
int spool_rewind(struct spool *s, struct spool_strand *strand);
int spool_get(struct spool *s, struct spool_strand *strand, uint64_t *ret);

/* --- protobuf.c: fields of a message, appended to bytes --- */

/* Fields whose value is 0 are written, too. */
void pb_number(struct bytes_out *m, uint32_t field, uint64_t v);
void pb_text(struct bytes_out *m, uint32_t field, const char *text);
void pb_double(struct bytes_out *m, uint32_t field, double v);
/* A message within a message: pb_begin() returns what pb_end() needs. */
size_t pb_begin(struct bytes_out *m, uint32_t field);
void pb_end(struct bytes_out *m, size_t begun);
/* Writes M as field FIELD of the message that is the whole file, and empties M. */
int pb_write(struct out *o, uint32_t field, struct bytes_out *m);
