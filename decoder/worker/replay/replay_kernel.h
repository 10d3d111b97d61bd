/*
 * The kernel's code of a replay: what of it the bundle has, for the flows and for names.
 */
#pragma once

#include "decoder/worker/replay/replay.h"
#include "sideband/kernel/kernel.h"

/* Sets r->kernel: NULL where the kernel was not traced or its text is not at hand. The images and
 * the timeline are there. 0 or -ENOMEM. */
int replay_kernel_load(struct replay *r);
/* As if its text were not at hand. Before it is walked. */
void replay_kernel_forget(struct replay *r);
/* Whether ADDRESS is the kernel's, whose text is at hand. */
bool replay_is_kernel(const struct replay *r, uint64_t address);
/* As flow_config's kernel_code and kernel_version; CLOCK: of the CPU. */
int replay_kernel_code(const struct replay *r, uint64_t ip, uint32_t version,
		       struct flow_code *ret);
uint32_t replay_kernel_version(const struct replay *r, const struct tscmap *clock, uint64_t ip,
			       uint64_t tsc_lo, uint64_t tsc_hi, uint32_t *ret_last);
/* As replay_find, of kernel addresses: as it was at the end. */
int replay_kernel_find(const struct replay *r, uint64_t address, struct image_code *ret);
/* The function around ADDRESS, which lies in the image of CODE: as symbols_find. */
void replay_kernel_symbol(const struct replay *r, uint64_t address, const struct image_code *code,
			  struct symbol *ret);
