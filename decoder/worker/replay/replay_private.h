/*
 * Inside of the replay: loading (replay_load.c, replay_kernel.c), and one CPU's trace on its way
 * through the replay (cpu_replay.c), its flow, batch by batch, given to the consumer in pieces of
 * one thread each.
 */
#pragma once

#include "decoder/worker/replay/replay.h"
#include "sideband/kernel/kernel.h"

/* --- replay_load.c --- */

/* The manifest's images, each with the number that it has there. The kernel's images are in the set
 * (image_at()), but no process maps them. LOADER brings images that lie elsewhere; NULL: they are
 * missing. All but *LOADER is borrowed until image_set_free. 0, -ENOMEM, -E2BIG. */
int replay_images(const struct bundle *bundle, const struct timeline *timeline,
		  const struct image_loader *loader, struct image_set **ret);

/* The bytes of a build id in hex, which the manifest's reader has checked: whole bytes, lower case.
 * At most MAX bytes; returns how many. TEXT may be NULL: none. */
size_t replay_build_id(const char *text, uint8_t *ret, size_t max);

/* --- replay_dumps.c --- */

/* Reads the dumps of just-in-time compilers. Images, symbols and clocks are loaded already. 0 or
 * -ENOMEM. */
int replay_dumps_load(struct replay *r);

/* --- replay_kernel.c --- */

/* Sets r->kernel, which stays NULL where the kernel was not traced or its text is not at hand.
 * Images and timeline are loaded already. 0 or -ENOMEM. */
int replay_kernel_load(struct replay *r);
/* As flow_config's kernel_code and kernel_version; CLOCK: of the CPU. */
int replay_kernel_code(const struct replay *r, uint64_t ip, uint32_t version,
		       struct flow_code *ret);
uint32_t replay_kernel_version(const struct replay *r, const struct tscmap *clock, uint64_t ip,
			       uint64_t tsc_lo, uint64_t tsc_hi, uint32_t *ret_last);
/* As replay_find and replay_symbol, for kernel addresses: as the kernel was at the end. */
int replay_kernel_find(const struct replay *r, uint64_t address, struct image_code *ret);
void replay_kernel_symbol(const struct replay *r, uint64_t address, const struct image_code *code,
			  struct symbol *ret);

/* --- cpu_replay.c --- */

struct cpu_replay;

/* CPU number INDEX of the manifest. CONSUMER is borrowed. R->code exists, and lives longer. 0 or
 * -ENOMEM. */
int cpu_replay_new(struct replay *r, size_t index, const struct replay_consumer *consumer,
		   struct cpu_replay **ret);
/* A flow of no trace, which keeps the code for all flows of R. 0 or -ENOMEM. */
int cpu_replay_code(struct replay *r, struct flow **ret);
void cpu_replay_free(struct cpu_replay *c);
/* When (perf ns) the turn of the next piece began, or may have begun; 0: not known. Never falls. */
uint64_t cpu_replay_at(const struct cpu_replay *c);
/* Gives pieces up to and including time LIMIT, or decodes on. Makes at least one step, so it is to
 * be called for the CPU that is behind all others. 0; CPU_REPLAY_DONE; REPLAY_STOPPED; -ENOMEM, or
 * what the consumer returned. */
#define CPU_REPLAY_DONE 1
int cpu_replay_step(struct cpu_replay *c, uint64_t limit);
const struct flow_stats *cpu_replay_stats(const struct cpu_replay *c);
