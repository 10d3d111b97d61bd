/*
 * How one comes by a ptsnap-decode: it is started, or connected to. Used by worker.c alone.
 */
#pragma once

#include <sys/types.h>

/* Starts PROGRAM with CHANNEL (borrowed) as its fd 3; *ret_pidfd is the caller's, who reaps it. 0
 * or -errno. */
int worker_spawn(const char *program, int channel, pid_t *ret_pid, int *ret_pidfd);

/* Connects to PATH. Who made the socket listen is root (systemd does, whatever user the socket is
 * given to) or ourselves; else -EPERM. What starts behind it is its business. 0: *ret_channel is
 * the caller's; -ENOENT, -ECONNREFUSED, -EACCES: nobody is there for us; -EAGAIN: too many are;
 * -ENAMETOOLONG. */
int worker_connect(const char *path, int *ret_channel);
