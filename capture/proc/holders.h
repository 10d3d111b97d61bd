/*
 * Who has perf events open. The kernel does not tell who has Intel PT; but whoever has it holds a
 * perf event.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOLDERS_MAX 8

struct holder {
	uint32_t pid;
	char comm[17]; /* as /proc says: its owner chose it */
};

struct holders {
	struct holder all[HOLDERS_MAX]; /* the first of them, by pid */
	size_t n;			/* all of them; may be more than HOLDERS_MAX */
	bool partial;			/* the files of some process could not be looked at */
};

/* Processes below PROC ("/proc") other than OWN_PID with an open "anon_inode:[perf_event]". 0 or
 * -errno. */
int holders_find(const char *proc, uint32_t own_pid, struct holders *ret);
/* "perf (pid 12), top (pid 34) and 2 more"; where there are none: "no process that can be seen".
 * Names are made printable. */
void holders_format(const struct holders *h, char *ret, size_t size);
