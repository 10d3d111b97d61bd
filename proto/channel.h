/*
 * One message plus its fds over a SOCK_SEQPACKET socketpair: daemon-worker.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CHANNEL_MAX_FDS	 8
#define CHANNEL_MAX_SIZE 65536u

/* A connected pair, close-on-exec. 0 or -errno. */
int channel_pair(int ret_fds[2]);
/* Sends SIZE bytes (1..CHANNEL_MAX_SIZE) and N_FDS fds (borrowed) as one message. 0 or -errno. */
int channel_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds);
/* Receives one message of at most CAPACITY bytes. Fds beyond MAX_FDS are closed and the message is
 * refused. *ret_fds become the caller's. Returns 0; CHANNEL_END when the peer is gone; -EMSGSIZE,
 * -EAGAIN (non-blocking or receive timeout) or another -errno; on any of them no fd is left open.
 */
#define CHANNEL_END 1
int channel_receive(int fd, void *data, size_t capacity, size_t *ret_size, int *ret_fds,
		    size_t max_fds, size_t *ret_n_fds);
