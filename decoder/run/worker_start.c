/*
 * Gets a ptsnap-decode: a program of our own, or a connection to a service.
 */
#include "decoder/run/worker_run.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base.h"

/* Where the worker expects its end of the channel. */
#define WORKER_FD 3
/* Limit of the wait for a place in the queue of the socket. systemd is never busy for so long. */
#define CONNECT_SECONDS 2

/* The worker gets descriptors 0 to 2 and the channel, and nothing else, not even a descriptor that
 * was opened without O_CLOEXEC, and no environment. The caller's thread may block and ignore
 * signals; the worker starts with all signals at their defaults. */
static int spawn(const char *program, int channel, int said, pid_t *ret_pid)
{
	char *nothing[] = {NULL};
	char *argv[] = {(char *)(uintptr_t)program, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (r == 0) {
		sigemptyset(&none);
		sigfillset(&all);
		/* SAID may have the number that CHANNEL gets. */
		r = posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
		if (r == 0)
			r = posix_spawn_file_actions_adddup2(&actions, channel, WORKER_FD);
		if (r == 0)
			r = posix_spawn_file_actions_addclosefrom_np(&actions, WORKER_FD + 1);
		if (r == 0)
			r = posix_spawnattr_setsigmask(&attr, &none);
		if (r == 0)
			r = posix_spawnattr_setsigdefault(&attr, &all);
		if (r == 0)
			r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
								    POSIX_SPAWN_SETSIGDEF);
		if (r == 0)
			r = posix_spawn(ret_pid, program, &actions, &attr, argv, nothing);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int worker_spawn(const char *program, int channel, int said, pid_t *ret_pid, int *ret_pidfd)
{
	int r;

	assert(channel > STDERR_FILENO && said > STDERR_FILENO);
	r = spawn(program, channel, said, ret_pid);
	if (r < 0)
		return r;
	*ret_pidfd = pidfd_open(*ret_pid, 0);
	if (*ret_pidfd >= 0)
		return 0;
	r = -errno;
	/* Until the worker is reaped, nobody else has its pid. */
	kill(*ret_pid, SIGKILL);
	while (waitpid(*ret_pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

int worker_connect(const char *path, int *ret_channel)
{
	const struct timeval patience = {.tv_sec = CONNECT_SECONDS};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	CLEANUP_CLOSE int fd = -EBADF;
	struct ucred listener;
	socklen_t size = sizeof(listener);
	int r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	do
		r = connect(fd, (const struct sockaddr *)&address, sizeof(address));
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	/* A connection's credentials are those of the process that called listen(2), not of the
	 * process that accepts the connection or reads from it (unix(7)). With systemd that is
	 * root, whatever user the socket belongs to. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size) < 0)
		return -errno;
	if (listener.uid != 0 && listener.uid != geteuid())
		return -EPERM;
	*ret_channel = take_fd(&fd);
	return 0;
}
