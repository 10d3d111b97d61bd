/*
 * The perf_event_attr of the two events that each CPU gets: include/uapi/linux/perf_event.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "capture/ring/source.h"

/* Kinds of sideband records that a kernel may be too old for, as bits. What every kernel has that
 * has Intel PT (mmap, mmap2, comm, comm_exec, task, context_switch: Linux 4.3) has no bit. */
enum perf_attr_kind {
	PERF_ATTR_TEXT_POKE = 1 << 0,  /* 5.9 */
	PERF_ATTR_CGROUP = 1 << 1,     /* 5.7 */
	PERF_ATTR_KSYMBOL = 1 << 2,    /* 5.1 */
	PERF_ATTR_BPF_EVENT = 1 << 3,  /* 5.1 */
	PERF_ATTR_NAMESPACES = 1 << 4, /* 4.12 */
	/* No kind of record: read(2) tells how many were lost. */
	PERF_ATTR_LOST = 1 << 5, /* 6.0 */
};
#define PERF_ATTR_ALL_KINDS 0x3fu

/* The PT event of PMU type TYPE: pinned, disabled, TRACE of user and kernel. */
void perf_attr_pt(uint32_t type, uint64_t config, enum source_trace trace,
		  struct perf_event_attr *ret);
/* The dummy event that carries KINDS besides what every kernel tells. Mapped files are told by
 * device and inode: whose a build id is anybody can write into a file of his. MONOTONIC: its times
 * are CLOCK_MONOTONIC's, else the perf clock's. */
void perf_attr_sideband(uint32_t kinds, bool monotonic, struct perf_event_attr *ret);
/* Which kinds this kernel takes, tried one by one on CPU. 0; -errno: even without any it cannot be
 * opened. */
int perf_attr_probe(uint32_t cpu, bool monotonic, uint32_t *ret_kinds);
/* What records are not in KINDS, "text_poke,cgroup"; "" when all are. */
void perf_attr_missing(uint32_t kinds, char *ret, size_t size);
/* ATTR in the words of its fields: those that are not 0, in the order of the header. Cut to SIZE
 * bytes; 512 are enough. */
void perf_attr_format(const struct perf_event_attr *attr, char *ret, size_t size);
