/*
 * The program ptsnapd: what it is made of, and the event loop that owns it.
 *
 * main.c reads options and configuration, opens the state directory, the sockets and the source,
 * and starts COMMAND. manager.c then owns all long-lived objects and runs the loop until the
 * recorder ends. manager_settings.c applies the configuration: names of users, exclusion, and a new
 * configuration at a reload. hotplug.c has the source look after its events when CPUs come and go
 * or the host has slept. emulate.c is another program in one: `ptsnapd --emulate` keeps an emulated
 * machine for a recorder that may not run COMMAND. generator.c is the program ptsnap-generator,
 * which tells systemd memory limits.
 *
 * Decisions that govern the room:
 * - Whatever can fail for a reason of the user's (options, COMMAND, state directory, sockets, PMU)
 *   fails in main.c, before anything runs, with one line and an exit status of its own.
 * - The daemon has these threads: the drain's thread empties DATA rings into a queue in memory and
 *   does nothing else; the loop takes records out of the queue and answers; each job freezes,
 *   copies, writes and decodes in a thread of its own; what a stranger can hold up (a command line,
 *   a mapped file, a name of a user, the file of metrics) happens in threads that can be left
 *   behind. Threads share no other mutable state; they speak by pipes and short queues.
 * - The manager frees in the reverse order of making. Only timeline and store grow, each within a
 *   limit of bytes.
 * - A configuration is const. A reload makes a new one, and manager_settings.c tells everybody who
 *   keeps a pointer. An old one is freed when no job, check or remake runs, as their threads read
 *   the one that they began with. The first one is main.c's and is never freed by a reload.
 * - Excluded users must be known before anything is recorded, however long that takes.
 * - The recorder ends when a signal or the end of COMMAND (--exit-with-command) wants it, and no
 *   job runs and COMMAND is gone. Decoding is cancelled then, and bundles are kept.
 */
#pragma once

#include <stddef.h>

#include "capture/ring/source.h"
#include "daemon/config/config.h"
#include "daemon/control/server.h"
#include "daemon/record/command.h"
#include "daemon/store/fdstore.h"
#include "daemon/store/store.h"

struct manager;

/* The objects that main.c has opened. Source and store are taken over by manager_new() if it
 * succeeds, and recover_all() takes descriptors of kept. The rest is borrowed. */
struct manager_parts {
	const struct config *config;
	const struct listener *listener;
	const struct listener *status_listener; /* its fd may be -EBADF: there is none */
	struct command *command;
	struct source *source;
	struct store *store;
	struct fdstore_item *kept; /* what systemd kept of the last run */
	size_t n_kept;
};

/* SIGTERM, SIGINT, SIGHUP and SIGUSR2 must be blocked. 0; -EINTR: a signal to end came before the
 * recording began; or -errno. */
int manager_new(const struct manager_parts *parts, struct manager **ret);
/* Frees in reverse order. */
void manager_freep(struct manager **m);
/* Serves until SIGTERM, or until COMMAND's last snapshot is stored. The exit status, or -errno. */
int manager_run(struct manager *m);

/* emulate.c, ptsnapd --emulate: offers MACHINE (source_emu_open) to recorders that connect to
 * LISTENER (SOCK_SEQPACKET, non-blocking), one at a time, until COMMAND ends. SIGTERM, SIGINT,
 * SIGHUP, SIGUSR2 must be blocked; the first three are passed on to COMMAND, which has two seconds
 * to end. Returns COMMAND's exit status, or 1 after a line to the log. */
int emulate_run(struct source *machine, struct command *command, int listener);
