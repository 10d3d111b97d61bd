/*
 * The daemon-emulator channel: what the process that keeps an emulated machine says to the recorder
 * that is to trace it, over a SOCK_SEQPACKET socket (proto/channel.h). First one offer, together
 * with the fd of the shared memory (capture/emu/machine/emuring.h); at COMMAND's end one end; then
 * it hangs up. The recorder says nothing: what it wishes goes through the shared memory.
 *
 * Both run on one host, so numbers are in its order.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/emu/machine/emuring.h"

#define EMUOFFER_MAGIC	   0x726566664f756d45ull
#define EMUOFFER_END_MAGIC 0x646e45756d45ull
#define EMUOFFER_VERSION   1u
/* Of the peer are believed at most: */
#define EMUOFFER_MAX_CPUS 64u
#define EMUOFFER_MAX_RING (512ull << 20)

/* As it travels. The fields up to time_zero mean the same as in struct emuring_head, which is no
 * source for them: the guests can write there. */
struct emuoffer {
	uint64_t magic;
	uint32_t version, flags;
	uint32_t n_cpus, max_tasks;
	uint64_t data_size, aux_size;
	uint64_t pt_config, tsc_hz;
	uint32_t clock, tsc_art_num, tsc_art_den, max_nonturbo_ratio;
	uint32_t time_shift, time_mult;
	uint64_t time_zero;
	uint32_t pid;	 /* of COMMAND */
	char preset[20]; /* "std" */
	char name[256];	 /* what COMMAND is called */
	char qemu[4096]; /* absolute path of the emulator */
};

/* How COMMAND ended. */
struct emuoffer_end {
	uint64_t magic;
	int32_t exit_status; /* 0..255 */
	int32_t killed_by;   /* the signal; 0: it ended by itself */
};

/* SIZE bytes at DATA as an offer that can be relied upon: every number in range, every text ended,
 * and L filled with where things lie. 0; -EBADMSG, and *ret_why (static text) says what is wrong.
 */
int emuoffer_read(const void *data, size_t size, struct emuoffer *ret, struct emuring_layout *ret_l,
		  const char **ret_why);
/* The same for the end. 0 or -EBADMSG. */
int emuoffer_read_end(const void *data, size_t size, struct emuoffer_end *ret);
/* What the head of the shared memory says when nobody has written over it: for emuring.fixed. */
void emuoffer_head(const struct emuoffer *o, const struct emuring_layout *l,
		   struct emuring_head *ret);
