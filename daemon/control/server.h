/*
 * The control socket and the socket for everybody: made or taken from systemd, and their
 * connections accepted and limited.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "daemon/config/config.h"
#include "daemon/control/peer.h"

/* A listening socket. */
struct listener {
	int fd;
	char *path; /* of a socket that was made here; NULL: it is systemd's */
	dev_t dev;  /* of the socket's file */
	ino_t ino;
};

/* Opens the control socket. Call before anything is traced, so that a socket in use stops us before
 * COMMAND runs. 0, or -errno with one line in WHY (-EADDRINUSE: another recorder or another file
 * has the path). */
int listener_open(const char *path, struct listener *ret, char *why, size_t why_size);
/* Opens the socket for everybody, PATH.status, where PATH is that of CONTROL: takes systemd's, or,
 * if it is WANTED and CONTROL was made here, makes it. 0, with an fd of -EBADF if there is none;
 * else -errno and WHY as above. */
int listener_open_status(const char *path, const struct listener *control, bool wanted,
			 struct listener *ret, char *why, size_t why_size);
/* Makes a SOCK_SEQPACKET socket; results as above. */
int listener_open_channel(const char *path, struct listener *ret, char *why, size_t why_size);
/* A pidfd of the process that called connect(2) or listen(2) for the other end of FD; the caller's.
 * -ESRCH: the process has ended; or -errno. */
int listener_process(int fd);
/* Closes the socket, and removes its file if that is still the one that was made. */
void listener_done(struct listener *l);

/* All connections of one socket. */
struct server;

/* Limits of connections that are open at a time. */
struct server_limits {
	uint32_t peers, peers_per_uid; /* root is not limited by the second one */
	uint32_t admins;	       /* more connections, for administrators alone */
	uint64_t idle_usec;	       /* without a call */
	unsigned calls; /* of each connection, which is served after others; 0: no limit */
};
void server_limits_of(const struct config *config, struct server_limits *ret);
/* For the socket for everybody. */
void server_limits_of_status(const struct config *config, struct server_limits *ret);

/* LISTENER and ACCESS are borrowed. HANDLER hears of calls and of connections that end; the server
 * frees the connections. */
int server_new(sd_event *event, const struct server_limits *limits, const struct access *access,
	       const struct listener *listener, const struct peer_handler *handler,
	       struct server **ret);
void server_free(struct server *s);
/* Sends every connection what it takes without waiting. */
void server_flush(struct server *s);
