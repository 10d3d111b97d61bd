/*
 * Starts a pager, writes the text to its standard input, and waits.
 */
#include "ctl/show/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base.h"

/* A shell's exit status for a command that it cannot find or run. */
#define SHELL_CANNOT 126
#define KEPT	     (128u << 10) /* bytes: more than a pipe holds (pipe(7)) */

const char *pager_choose(const char *own, const char *pager)
{
	const char *chosen = own ? own : pager;

	if (!chosen)
		return "less";
	return *chosen == '\0' || strcmp(chosen, "cat") == 0 ? NULL : chosen;
}

static _Noreturn void run_pager(const char *command, int from, int to)
{
	const char *less = getenv("PTSNAP_LESS");

	/* The pipe has the number of the standard input if that was closed. */
	if (from != STDIN_FILENO) {
		if (dup2(from, STDIN_FILENO) < 0)
			_exit(SHELL_CANNOT);
		close(from);
	}
	close(to);
	setenv("LESS", less ? less : "FRSXMK", 1);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(SHELL_CANNOT);
}

/* Writes all of TEXT, with SIGPIPE ignored. False: nobody reads any more. */
static bool feed(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno != EINTR)
			return false;
		text += MAX_OF(n, 0);
		size -= (size_t)MAX_OF(n, 0);
	}
	return true;
}

static void ignore_signal(int signal, struct sigaction *before)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(signal, &ignore, before);
}

/* Starts the pager, with *ret_fd as its input. -1: that failed. */
static pid_t start(const char *command, int *ret_fd)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		run_pager(command, ends[0], ends[1]);
	close(ends[0]);
	if (pid < 0)
		close(ends[1]);
	else
		*ret_fd = ends[1];
	return pid;
}

/* Waits for the pager's end. Whether it had started. */
static bool has_shown(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return !(WIFEXITED(status) && WEXITSTATUS(status) >= SHELL_CANNOT);
}

bool pager_show(const char *text, size_t size)
{
	const char *command = pager_choose(getenv("PTSNAP_PAGER"), getenv("PAGER"));
	struct sigaction interrupt, broken;
	bool shown;
	pid_t pid;
	int fd;

	if (!command)
		return false;
	fflush(stdout);
	pid = start(command, &fd);
	if (pid < 0)
		return false;
	/* Ctrl-C is the pager's, and a pager that ends early has seen enough. */
	ignore_signal(SIGINT, &interrupt);
	ignore_signal(SIGPIPE, &broken);
	feed(fd, text, size);
	close(fd);
	shown = has_shown(pid);
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGPIPE, &broken, NULL);
	return shown;
}

static size_t read_some(int fd, char *to, size_t size)
{
	ssize_t n;

	do
		n = read(fd, to, size);
	while (n < 0 && errno == EINTR);
	return (size_t)MAX_OF(n, 0);
}

/* The process between ptsnapctl and the pager. If the pager cannot be started, all that it was
 * given goes to stdout: one that has taken more than a pipe holds has started. */
static _Noreturn void run_relay(const char *command, int from)
{
	static char chunk[4096], kept[KEPT];
	size_t n, n_kept = 0;
	bool all_kept = true;
	int to = -1;
	pid_t pid = start(command, &to);

	ignore_signal(SIGINT, NULL);
	ignore_signal(SIGPIPE, NULL);
	while (pid > 0 && (n = read_some(from, chunk, sizeof(chunk))) > 0) {
		all_kept = all_kept && n <= sizeof(kept) - n_kept;
		if (all_kept) {
			memcpy(kept + n_kept, chunk, n);
			n_kept += n;
		}
		if (!feed(to, chunk, n))
			break;
	}
	if (pid > 0)
		close(to);
	if ((pid < 0 || !has_shown(pid)) && all_kept && feed(STDOUT_FILENO, kept, n_kept))
		while ((n = read_some(from, chunk, sizeof(chunk))) > 0)
			if (!feed(STDOUT_FILENO, chunk, n))
				break;
	_exit(0);
}

void pager_begin(struct pager *p)
{
	const char *command = pager_choose(getenv("PTSNAP_PAGER"), getenv("PAGER"));
	int ends[2];

	*p = (struct pager){0};
	if (!command || pipe(ends) < 0)
		return;
	fflush(stdout);
	p->before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	p->pid = p->before < 0 ? -1 : fork();
	if (p->pid == 0) {
		close(ends[1]);
		run_relay(command, ends[0]);
	}
	close(ends[0]);
	if (p->pid > 0) {
		dup2(ends[1], STDOUT_FILENO);
		/* Ctrl-C is the pager's, which may also end early. */
		ignore_signal(SIGINT, &p->interrupt);
		ignore_signal(SIGPIPE, &p->pipe);
	} else {
		close_fd(p->before);
		p->pid = 0;
	}
	close(ends[1]);
}

void pager_end(struct pager *p)
{
	int status;

	if (p->pid == 0)
		return;
	fflush(stdout);
	clearerr(stdout);
	dup2(p->before, STDOUT_FILENO);
	close(p->before);
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &p->interrupt, NULL);
	sigaction(SIGPIPE, &p->pipe, NULL);
	p->pid = 0;
}
