/*
 * The control socket: handed over by systemd, or made here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct listener {
	int fd;
	char *path; /* ours to remove; NULL: systemd's */
	dev_t dev;  /* what we made there */
	ino_t ino;
};

/* 0, or -errno with one line in WHY (-EADDRINUSE: another recorder, or something else, has it). */
int listener_open(const char *path, struct listener *ret, char *why, size_t why_size);
/* Whose write permission the socket file grants to a group. True: *ret_gid is that group. */
bool listener_group(const struct listener *l, gid_t *ret_gid);
/* Closes it, and removes the file if it is still the one that was made. */
void listener_done(struct listener *l);
