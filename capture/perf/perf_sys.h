/*
 * The syscalls of perf events, each in a function of its own, so that tests can stand in for the
 * kernel by linking others.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/perf_event.h>

/* perf_event_open(2) for all tasks on CPU: the fd (close-on-exec), or -errno. */
int perf_sys_open(const struct perf_event_attr *attr, uint32_t cpu);
/* mmap(2) of the event's bytes from OFFSET, at AT (MAP_FIXED). 0 or -errno. */
int perf_sys_map(int fd, void *at, size_t size, int prot, uint64_t offset);
/* ioctl(2) without an argument: PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE,
 * PERF_EVENT_IOC_RESET. 0 or -errno. */
int perf_sys_ioctl(int fd, unsigned long request);
/* read(2): the bytes read (0: the event is in the error state), or -errno. */
ssize_t perf_sys_read(int fd, void *to, size_t size);
/* prctl(2), PR_TASK_PERF_EVENTS_DISABLE: all events that the calling thread opened. 0 or -errno. */
int perf_sys_disable_mine(void);
