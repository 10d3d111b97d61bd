/*
 * Owns all long-lived objects and the event loop.
 */
#pragma once

#include "capture/ring/source.h"
#include "daemon/config/config.h"
#include "daemon/control/server.h"
#include "daemon/record/command.h"
#include "daemon/store/fdstore.h"
#include "daemon/store/store.h"

struct manager;

/* What main.c has opened. Source and store are taken over by manager_new when it succeeds; what was
 * kept of the last run loses what is taken up; all else is borrowed. */
struct manager_parts {
	const struct config *config;
	const struct listener *listener;
	const struct listener *status_listener; /* its fd may be -EBADF: there is none */
	struct command *command;
	struct source *source;
	struct store *store;
	struct fdstore_item *kept; /* of the last run */
	size_t n_kept;
};

/* SIGTERM, SIGINT, SIGHUP and SIGUSR2 must be blocked. 0 or -errno. */
int manager_new(const struct manager_parts *parts, struct manager **ret);
/* Frees in reverse order. */
void manager_freep(struct manager **m);
/* Serves until SIGTERM, or until COMMAND's last snapshot is stored. The exit status, or -errno. */
int manager_run(struct manager *m);
