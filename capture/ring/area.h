/*
 * Memory for one copy of all rings: a slice for each CPU, on its NUMA node, touched before anything
 * is frozen, so that no page is looked for while the CPUs stand still.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/ring/source.h"

/* A value; all zero is the empty one. */
struct area {
	uint8_t *base;	/* owned; NULL: no memory */
	uint64_t slice; /* bytes of each CPU's, whole pages; CPU INDEX's begin at INDEX * slice */
	size_t n_cpus;
};

/* Bytes that the largest copy of a CPU of S takes, when WANTED (0: all) are asked for. */
uint64_t area_slice(const struct source *s, uint64_t wanted);
/* Slices for that, of which those of CPUs with a ring are touched. Without any ring *ret is empty.
 * 0 or -ENOMEM. */
int area_make(const struct source *s, uint64_t wanted, struct area *ret);
/* Every ring of S, WANTED bytes of it, finds room. */
bool area_holds(const struct area *a, const struct source *s, uint64_t wanted);
/* As area_make did, for rings that have come since. Contents stay. */
void area_touch(const struct area *a, const struct source *s);
void area_done(struct area *a);
