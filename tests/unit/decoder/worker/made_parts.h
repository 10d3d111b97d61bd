/*
 * Parts of a bundle of which a test makes the rest: records of the one thread that there is, and
 * the manifest of one traced CPU.
 */
#pragma once

#include <string.h>

#include "proto/bundle/manifest.h"
#include "proto/bytes.h"
#include "proto/perf/perfrecord.h"
#include "tests/support/make_bundle.h"

static inline void made_put_record(struct bytes_out *out, struct perfrecord *record)
{
	uint8_t buffer[8192];
	size_t size;

	record->pid = MAKE_PID;
	record->tid = MAKE_TID;
	assert_int_equal(perfrecord_compose(record, buffer, sizeof(buffer), &size), 0);
	bytes_put_block(out, buffer, size);
}

/* It has the CPU since TIME, perf ns. */
static inline void made_put_start(struct bytes_out *out, uint64_t time)
{
	struct perfrecord start = {.type = PERF_RECORD_ITRACE_START, .time = time};

	start.u.itrace_start.pid = MAKE_PID;
	start.u.itrace_start.tid = MAKE_TID;
	made_put_record(out, &start);
}

/* User code was traced on CPU 0, TRACE bytes, up to PERF_NS. */
static inline void made_describe(struct manifest *m, const char *id, uint64_t perf_ns,
				 uint64_t trace)
{
	struct manifest_cpu *cpu = manifest_add_cpu(m);

	assert_non_null(cpu);
	m->id = strdup(id);
	m->version = strdup("0");
	m->trigger_kind = strdup("offline");
	m->source = strdup("emulated");
	m->have_clock = true;
	m->time_mult = 1;
	m->trace_user = true;
	m->mtc_period = UINT32_MAX;
	m->perf_ns = perf_ns;
	cpu->cpu = 0;
	cpu->bytes = trace;
	cpu->ring_bytes = 1 << 20;
	cpu->state = strdup("tracing");
}
