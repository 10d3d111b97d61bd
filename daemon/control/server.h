/*
 * All connections: accepted, counted, forgotten.
 */
#pragma once

#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/config/config.h"
#include "daemon/control/access.h"
#include "daemon/control/listener.h"
#include "daemon/control/peer.h"

struct server;

/* Connections at a time. */
struct server_limits {
	uint32_t peers, peers_per_uid; /* root is not limited by the second one */
	uint32_t admins;	       /* beyond them, for administrators alone */
	uint64_t idle_usec;	       /* without a call */
	unsigned calls; /* of each connection, which others' go before; 0: no limit */
};
void server_limits_of(const struct config *config, struct server_limits *ret);
/* Of the socket for everybody. */
void server_limits_of_status(const struct config *config, struct server_limits *ret);

/* LISTENER and ACCESS are borrowed. HANDLER hears of calls and of connections that end; those are
 * freed here. */
int server_new(sd_event *event, const struct server_limits *limits, const struct access *access,
	       const struct listener *listener, const struct peer_handler *handler,
	       struct server **ret);
void server_free(struct server *s);
/* Sends every connection what it takes without waiting. */
void server_flush(struct server *s);
