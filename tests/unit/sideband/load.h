/*
 * Puts records into a timeline, by load like the decoder or by push like the recorder, and asks.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sideband/timeline/timeline.h"
#include "tests/support/timeline_look.h"
#include "tests/unit/sideband/records.h"

#define SECOND 1000000000ull

static inline void put(struct bytes_out *out, const struct perfrecord *r)
{
	uint8_t buffer[8192];
	size_t size;

	assert_int_equal(perfrecord_compose(r, buffer, sizeof(buffer), &size), 0);
	bytes_put_block(out, buffer, size);
}

static inline struct timeline *load(const struct perfrecord *records, size_t n)
{
	struct timeline *t = NULL;
	struct bytes_out out;
	uint64_t bad;

	bytes_out_init(&out, 64 << 20);
	for (size_t i = 0; i < n; i++)
		put(&out, &records[i]);
	assert_int_equal(out.error, 0);
	assert_int_equal(timeline_load(out.data, out.size, &t, &bad), 0);
	assert_int_equal(bad, 0);
	/* The timeline must not point into the records. */
	memset(out.data, 0xee, out.size);
	bytes_out_done(&out);
	return t;
}

#define LOAD(...)                                      \
	load((const struct perfrecord[]){__VA_ARGS__}, \
	     sizeof((const struct perfrecord[]){__VA_ARGS__}) / sizeof(struct perfrecord))

static inline int push(struct timeline *t, const struct perfrecord *r)
{
	uint8_t buffer[8192];
	struct perfrecord parsed;
	size_t size;

	assert_int_equal(perfrecord_compose(r, buffer, sizeof(buffer), &size), 0);
	assert_in_range(perfrecord_parse(buffer, size, &parsed), 0, 1);
	return timeline_push(t, &parsed, buffer, size);
}

/* Pushes later records that change nothing until all records before them are folded. */
static inline void flush(struct timeline *t, uint64_t time)
{
	struct timeline_stats stats;

	timeline_get_stats(t, &stats);
	for (uint64_t records = stats.records; stats.folded <= records;) {
		assert_int_equal(push(t, &AUX(0, time, 0)), 0);
		timeline_get_stats(t, &stats);
	}
}

static inline struct timeline *written_and_loaded(const struct timeline *t)
{
	struct timeline *loaded = NULL;
	struct bytes_out out;
	uint64_t bad;

	bytes_out_init(&out, 256 << 20);
	assert_int_equal(timeline_write(t, &out), 0);
	assert_int_equal(timeline_load(out.data, out.size, &loaded, &bad), 0);
	assert_int_equal(bad, 0);
	bytes_out_done(&out);
	return loaded;
}

static inline const char *path_at(const struct timeline *t, uint32_t pid, uint64_t time,
				  uint64_t address)
{
	const struct space *s = timeline_space(t, pid, time);
	const struct space_mapping *m = s ? space_find(s, time, address) : NULL;

	return m ? m->file->path : "";
}

static inline uint32_t tid_on(const struct timeline *t, uint32_t cpu, uint64_t time)
{
	const struct timeline_thread *thread = timeline_look_running(t, cpu, time, NULL, NULL);

	return thread ? thread->tid : 0;
}
