/*
 * COMMAND: found, started (by the emulated source, or here where the hardware traces), reaped.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "capture/ring/source.h"

struct command {
	char *const *argv;	 /* borrowed; NULL: there is none */
	struct source *emulated; /* borrowed; NULL: we started it natively */
	bool attached;		 /* emulated, and not started by us */
	pid_t pid;		 /* 0: none */
	int pidfd;		 /* owned when native; -EBADF; the channel when attached */
	bool running;
	bool lost;	 /* attached, and nobody told how it ended */
	int exit_status; /* when it ended: 0..255, 128 + signal when killed */
	int killed_by;	 /* that signal; 0: it ended by itself */
};

/* Is there such a program, by PATH as shells look for it? 0; -ENOENT: not found; -EACCES: found,
 * but not executable. WHY gets the line for the user. */
int command_find(const char *name, char *why, size_t why_size);
/* Takes over what the emulated source started. */
void command_adopt(struct command *c, char *const *argv, struct source *emulated);
/* Looks after what another process runs in the emulated machine. */
void command_attach(struct command *c, struct source *emulated);
/* Starts it natively, with MASK as its signal mask. 0 or -errno. */
int command_spawn(struct command *c, char *const *argv, const sigset_t *mask);
/* After pidfd became readable. True when it has ended: exit_status is set then. */
bool command_reap(struct command *c);
/* How it ended, for people: "the command ended with status 3". */
void command_tell_end(const struct command *c, char *ret, size_t size);
/* What is attached is let go of instead: it is not ours to kill. */
void command_kill(struct command *c, int signal);
void command_done(struct command *c);
