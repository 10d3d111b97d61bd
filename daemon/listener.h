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
/* The same for a SOCK_SEQPACKET socket, which is always made here. */
int listener_open_channel(const char *path, struct listener *ret, char *why, size_t why_size);
/* Closes it, and removes the file if it is still the one that was made. */
void listener_done(struct listener *l);
