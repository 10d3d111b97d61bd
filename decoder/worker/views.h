/*
 * The views besides the report: packets, branches, insns as lines, and the summary.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/worker/decode.h"
#include "decoder/worker/lines.h"

/* FNV-1a, 64 bits. */
#define VIEWS_HASH_BASIS 0xcbf29ce484222325ull
#define VIEWS_HASH_PRIME 0x100000001b3ull

/* A line a packet of all CPUs; with more than one, "# cpu N" before each. Bytes that are no packet
 * are skipped up to the next PSB and said in a line beginning with "#". 0 or -errno. */
int views_packets(const struct bundle *b, struct lines *l);
/* A line a taken branch. 0 or the sticky error of L. */
int views_branches(struct lines *l, const struct replay_stretch *s);
/* A line an executed instruction. */
int views_insns(struct lines *l, const struct replay_stretch *s);
/* HASH over the addresses of all executed instructions, carried on. */
uint64_t views_hash(uint64_t hash, const struct replay_stretch *s);
/* One flat JSON object. 0 or -errno. */
int views_summary(const struct decode *d, bool hash, bool pretty, int fd);
