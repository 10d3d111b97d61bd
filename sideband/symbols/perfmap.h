/*
 * The names that a JIT compiler tells of its code: the text of /tmp/perf-PID.map, as perf reads it
 * (tools/perf/Documentation/jit-interface.txt).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct perfmap;

/* Functions of one map; those that come first in a longer one are left out. */
#define PERFMAP_MAX	 (1u << 19)
#define PERFMAP_NAME_MAX 1023u /* bytes; longer ones are cut */

/* TEXT (borrowed, a stranger's): lines "START SIZE NAME", numbers hexadecimal. Compilers append,
 * and use memory again: where functions overlap the later line counts. Lines that are none are
 * skipped. 0 or -ENOMEM. */
int perfmap_new(const void *text, size_t size, struct perfmap **ret);
void perfmap_free(struct perfmap *m);

struct perfmap_function {
	uint64_t start, size; /* bytes of it that no later function covers */
	const char *name;     /* the map's; NULL: no function, but the gap between two */
};
/* The function at ADDRESS. Always fills *ret, which holds ADDRESS. */
void perfmap_find(struct perfmap *m, uint64_t address, struct perfmap_function *ret);
/* How many functions it has. */
size_t perfmap_count(const struct perfmap *m);
