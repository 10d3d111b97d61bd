/*
 * The control socket, and the one that tells everybody how the recorder is: handed over by systemd,
 * or made here.
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
/* The socket for everybody, PATH.status, of PATH, which CONTROL is: systemd's; or, where CONTROL
 * was made here and it is WANTED, made here. 0, with an fd of -EBADF where there is none; -errno
 * and WHY as above. */
int listener_open_status(const char *path, const struct listener *control, bool wanted,
			 struct listener *ret, char *why, size_t why_size);
/* The same for a SOCK_SEQPACKET socket, which is always made here. */
int listener_open_channel(const char *path, struct listener *ret, char *why, size_t why_size);
/* Closes it, and removes the file if it is still the one that was made. */
void listener_done(struct listener *l);
