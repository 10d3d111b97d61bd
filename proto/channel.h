/*
 * Messages with descriptors over a SOCK_SEQPACKET socket, between ptsnap-decode and the program
 * that runs it. Neither side trusts what the other sends.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CHANNEL_MAX_FDS	 8
#define CHANNEL_MAX_SIZE 65536u

/* Makes a connected pair of sockets, close-on-exec. 0 or -errno. */
int channel_pair(int ret_fds[2]);
/* Sends SIZE bytes (1..CHANNEL_MAX_SIZE) and N_FDS fds (borrowed) as one message. 0 or -errno. */
int channel_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds);
/* Receives one message of at most CAPACITY bytes and MAX_FDS descriptors; *ret_fds become the
 * caller's. 0; CHANNEL_END: the peer is gone; -EMSGSIZE: the message is larger or has more
 * descriptors; -EAGAIN (non-blocking or receive timeout); or another -errno. Without success all
 * received descriptors are closed. */
#define CHANNEL_END 1
int channel_receive(int fd, void *data, size_t capacity, size_t *ret_size, int *ret_fds,
		    size_t max_fds, size_t *ret_n_fds);
