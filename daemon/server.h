/*
 * All connections: accepted, counted, forgotten.
 */
#pragma once

#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/access.h"
#include "daemon/config.h"
#include "daemon/listener.h"
#include "daemon/peer.h"

struct server;

/* LISTENER, CONFIG and ACCESS are borrowed. HANDLER hears of calls and of connections that end;
 * those are freed here. */
int server_new(sd_event *event, const struct config *config, const struct access *access,
	       const struct listener *listener, const struct peer_handler *handler,
	       struct server **ret);
void server_free(struct server *s);
void server_freep(struct server **s);
/* Sends every connection what it takes without waiting. */
void server_flush(struct server *s);
