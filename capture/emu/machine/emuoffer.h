/*
 * The daemon-emulator channel: messages of the process that keeps an emulated machine to the
 * recorder that traces the machine, over a SOCK_SEQPACKET socket (proto/channel.h).
 *
 * The first message is the offer, together with the descriptor of the shared memory
 * (capture/emu/machine/emuring.h). When COMMAND ends, a second message follows, and the peer hangs
 * up. The recorder sends nothing: its requests go through the shared memory. Both processes run on
 * one host, so numbers are in its byte order.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/emu/machine/emuring.h"

#define EMUOFFER_MAGIC	   0x726566664f756d45ull
#define EMUOFFER_END_MAGIC 0x646e45756d45ull
#define EMUOFFER_VERSION   1u
/* Limits of what a peer may offer. */
#define EMUOFFER_MAX_CPUS 64u
#define EMUOFFER_MAX_RING (512ull << 20)

/* The message. Members up to time_zero have the meaning that they have in struct emuring_head; the
 * recorder does not read them there, because guests can write to the shared memory. */
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
	char preset[20]; /* name of the trace preset, "std" */
	char name[256];	 /* name of COMMAND */
	char qemu[4096]; /* absolute path of the emulator */
};

/* How COMMAND ended. */
struct emuoffer_end {
	uint64_t magic;
	int32_t exit_status; /* 0..255 */
	int32_t killed_by;   /* the signal; 0: COMMAND exited */
};

/* Reads an offer of SIZE bytes at DATA and checks that every number is in range and every text
 * ends. *RET_L: the layout of the shared memory. 0; -EBADMSG: *RET_WHY (static) completes "the
 * offer is refused: ...". */
int emuoffer_read(const void *data, size_t size, struct emuoffer *ret, struct emuring_layout *ret_l,
		  const char **ret_why);
/* Reads and checks the message about the end of COMMAND. 0 or -EBADMSG. */
int emuoffer_read_end(const void *data, size_t size, struct emuoffer_end *ret);
/* Composes the head of the shared memory from a checked offer, for emuring.fixed. */
void emuoffer_head(const struct emuoffer *o, const struct emuring_layout *l,
		   struct emuring_head *ret);
