/*
 * Owns all long-lived objects and the event loop.
 */
#pragma once

#include "capture/source.h"
#include "daemon/command.h"
#include "daemon/config.h"
#include "daemon/listener.h"
#include "daemon/store.h"

struct manager;

/* What main.c has opened. Source and store are taken over by manager_new when it succeeds; config,
 * listener and command are borrowed. */
struct manager_parts {
	const struct config *config;
	const struct listener *listener;
	struct command *command;
	struct source *source;
	struct store *store;
};

/* SIGTERM, SIGINT, SIGHUP and SIGUSR2 must be blocked. 0 or -errno. */
int manager_new(const struct manager_parts *parts, struct manager **ret);
/* Frees in reverse order. */
void manager_free(struct manager *m);
void manager_freep(struct manager **m);
/* Serves until SIGTERM, or until COMMAND's last snapshot is stored. The exit status, or -errno. */
int manager_run(struct manager *m);
