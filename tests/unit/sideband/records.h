/*
 * Records for the timeline's tests, one line each.
 */
#pragma once

#include <linux/perf_event.h>

#include "proto/bytes.h"
#include "proto/perf/perfrecord.h"

/* The task that the record is about, the CPU and the time. */
#define AT(type_, cpu_, time_, pid_, tid_) \
	.type = PERF_RECORD_##type_, .cpu = (cpu_), .time = (time_), .pid = (pid_), .tid = (tid_)

#define FORK(cpu_, time_, ppid_, pid_, tid_)                                   \
	(struct perfrecord)                                                    \
	{                                                                      \
		AT(FORK, cpu_, time_, ppid_, ppid_),                           \
			.u.task = {(pid_), (ppid_), (tid_), (ppid_), (time_)}, \
	}
#define EXIT(cpu_, time_, pid_, tid_)                                                         \
	(struct perfrecord)                                                                   \
	{                                                                                     \
		AT(EXIT, cpu_, time_, pid_, tid_), .u.task = {(pid_), 1, (tid_), 1, (time_)}, \
	}
#define COMM(cpu_, time_, pid_, tid_, name_)                                            \
	(struct perfrecord)                                                             \
	{                                                                               \
		AT(COMM, cpu_, time_, pid_, tid_), .u.comm = {(pid_), (tid_), (name_)}, \
	}
#define EXEC(cpu_, time_, pid_, name_)                                                  \
	(struct perfrecord)                                                             \
	{                                                                               \
		AT(COMM, cpu_, time_, pid_, pid_), .misc = PERF_RECORD_MISC_COMM_EXEC,  \
						   .u.comm = {(pid_), (pid_), (name_)}, \
	}
#define MMAP2(cpu_, time_, pid_, addr_, len_, ino_, name_) \
	(struct perfrecord)                                \
	{                                                  \
		AT(MMAP2, cpu_, time_, pid_, pid_),        \
			.u.mmap2 = {.pid = (pid_),         \
				    .tid = (pid_),         \
				    .addr = (addr_),       \
				    .len = (len_),         \
				    .ino = (ino_),         \
				    .prot = 5,             \
				    .flags = 2,            \
				    .filename = (name_)},  \
	}
#define LEAVES(cpu_, time_, pid_, tid_, next_pid_, next_tid_)           \
	(struct perfrecord)                                             \
	{                                                               \
		AT(SWITCH_CPU_WIDE, cpu_, time_, pid_, tid_),           \
			.misc = PERF_RECORD_MISC_SWITCH_OUT,            \
			.u.context_switch = {(next_pid_), (next_tid_)}, \
	}
/* As the kernel writes it with attr.build_id: no device and no inode. The build id has up to 20
 * bytes. */
#define MMAP2_BUILD_ID(cpu_, time_, pid_, addr_, len_, name_, size_, ...)                   \
	(struct perfrecord)                                                                 \
	{                                                                                   \
		AT(MMAP2, cpu_, time_, pid_, pid_), .misc = PERF_RECORD_MISC_MMAP_BUILD_ID, \
						    .u.mmap2 = {.pid = (pid_),              \
								.tid = (pid_),              \
								.addr = (addr_),            \
								.len = (len_),              \
								.build_id_size = (size_),   \
								.build_id = {__VA_ARGS__},  \
								.prot = 5,                  \
								.flags = 2,                 \
								.filename = (name_)},       \
	}
/* Like LEAVES, of a thread that is preempted. */
#define PREEMPTED(cpu_, time_, pid_, tid_, next_pid_, next_tid_)                                   \
	(struct perfrecord)                                                                        \
	{                                                                                          \
		AT(SWITCH_CPU_WIDE, cpu_, time_, pid_, tid_),                                      \
			.misc = PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, \
			.u.context_switch = {(next_pid_), (next_tid_)},                            \
	}
/* The thread before is not named. */
#define ENTERS(cpu_, time_, pid_, tid_)                               \
	(struct perfrecord)                                           \
	{                                                             \
		AT(SWITCH_CPU_WIDE, cpu_, time_, pid_, tid_),         \
			.u.context_switch = {UINT32_MAX, UINT32_MAX}, \
	}
#define ENTERS_AFTER(cpu_, time_, pid_, tid_, prev_pid_, prev_tid_)     \
	(struct perfrecord)                                             \
	{                                                               \
		AT(SWITCH_CPU_WIDE, cpu_, time_, pid_, tid_),           \
			.u.context_switch = {(prev_pid_), (prev_tid_)}, \
	}
#define START(cpu_, time_, pid_, tid_)                                                         \
	(struct perfrecord)                                                                    \
	{                                                                                      \
		AT(ITRACE_START, cpu_, time_, pid_, tid_), .u.itrace_start = {(pid_), (tid_)}, \
	}
#define LOST(cpu_, time_, lost_)                                     \
	(struct perfrecord)                                          \
	{                                                            \
		AT(LOST, cpu_, time_, 0, 0), .u.lost = {1, (lost_)}, \
	}
#define AUX(cpu_, time_, flags_)                                          \
	(struct perfrecord)                                               \
	{                                                                 \
		AT(AUX, cpu_, time_, 0, 0), .u.aux = {0, 4096, (flags_)}, \
	}
