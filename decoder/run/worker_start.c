/*
 * A worker's beginning, either way: as a program of our own, with clean descriptors and signals,
 * or as the other end of a connection that a service takes. Called by worker.c.
 */
#include "decoder/run/worker_start.h"

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

/* Where the worker finds its end. */
#define WORKER_FD 3
/* For a place in the queue of who listens; longer than he is ever busy. */
#define CONNECT_SECONDS 2

/* Descriptors 0-2 and the channel, nothing else: not even what somebody opened without O_CLOEXEC.
 */
static int set_fds(posix_spawn_file_actions_t *actions, int channel)
{
	int r = posix_spawn_file_actions_adddup2(actions, channel, WORKER_FD);

	return r ? r : posix_spawn_file_actions_addclosefrom_np(actions, WORKER_FD + 1);
}

/* The caller's thread may block and ignore signals; the worker starts without either. */
static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setsigmask(attr, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attr, &all);
	if (r == 0)
		r = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return r;
}

static int spawn(const char *program, int channel, pid_t *ret_pid)
{
	char *argv[] = {(char *)(uintptr_t)program, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (r == 0) {
		r = set_fds(&actions, channel);
		if (r == 0)
			r = set_signals(&attr);
		if (r == 0)
			r = posix_spawn(ret_pid, program, &actions, &attr, argv, environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int worker_spawn(const char *program, int channel, pid_t *ret_pid, int *ret_pidfd)
{
	int r = spawn(program, channel, ret_pid);

	if (r < 0)
		return r;
	*ret_pidfd = pidfd_open(*ret_pid, 0);
	if (*ret_pidfd >= 0)
		return 0;
	r = -errno;
	/* Until it is reaped the pid is the worker's. */
	kill(*ret_pid, SIGKILL);
	while (waitpid(*ret_pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

/* The credentials of a connection's other end are those of who called listen(2) (unix(7)), and not
 * those of who accepts it or reads from it. */
static int check_listener(int fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
		return -errno;
	return who.uid == 0 || who.uid == geteuid() ? 0 : -EPERM;
}

int worker_connect(const char *path, int *ret_channel)
{
	const struct timeval patience = {.tv_sec = CONNECT_SECONDS};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	CLEANUP_CLOSE int fd = -EBADF;
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
	r = check_listener(fd);
	if (r < 0)
		return r;
	*ret_channel = take_fd(&fd);
	return 0;
}
