/*
 * The traced command: found, started by the emulated source or, where the hardware traces, here,
 * watched, and reaped.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "capture/ring/source.h"

struct command {
	char *const *argv;	 /* borrowed; NULL: there is no command */
	struct source *emulated; /* borrowed; NULL: started natively, by us */
	bool attached;		 /* emulated, and started by another process */
	pid_t pid;		 /* 0: none */
	int pidfd;		 /* owned if native; the channel if attached; -EBADF */
	bool running;
	bool lost;	 /* attached, and the emulator is gone without telling how it ended */
	int exit_status; /* once it has ended: 0 to 255; 128 + signal if killed */
	int killed_by;	 /* that signal; 0: it exited */
};

/* Looks for the program NAME in PATH as shells do. 0; -ENOENT: not found; -EACCES: found, but not
 * executable; on failure WHY is a line for the user. */
int command_find(const char *name, char *why, size_t why_size);
/* Takes over the command that the emulated source started. */
void command_adopt(struct command *c, char *const *argv, struct source *emulated);
/* Watches a command that another process runs in the emulated machine. */
void command_attach(struct command *c, struct source *emulated);
/* Starts the command natively, with MASK as its signal mask. 0 or -errno. */
int command_spawn(struct command *c, char *const *argv, const sigset_t *mask);
/* Call it when pidfd is readable. Returns whether the command has ended: then exit_status is set.
 */
bool command_reap(struct command *c);
/* Tells people how it ended: "the command ended with status 3". */
void command_tell_end(const struct command *c, char *ret, size_t size);
/* Sends SIGNAL. An attached command is not ours to kill and is only let go of. */
void command_kill(struct command *c, int signal);
void command_done(struct command *c);
