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

/* A pager that ends early has seen enough. */
static void feed(int fd, const char *text, size_t size)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;

	sigaction(SIGPIPE, &ignore, &before);
	while (size > 0) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno != EINTR)
			break;
		text += MAX_OF(n, 0);
		size -= (size_t)MAX_OF(n, 0);
	}
	sigaction(SIGPIPE, &before, NULL);
}

bool pager_show(const char *text, size_t size)
{
	const char *command = pager_choose(getenv("PTSNAP_PAGER"), getenv("PAGER"));
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	int ends[2], status = 0;
	pid_t pid;

	if (!command || pipe(ends) < 0)
		return false;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_pager(command, ends[0], ends[1]);
	close(ends[0]);
	/* Ctrl-C is the pager's. */
	sigaction(SIGINT, &ignore, &before);
	if (pid > 0)
		feed(ends[1], text, size);
	close(ends[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &before, NULL);
	return pid > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) >= SHELL_CANNOT);
}

void pager_begin(struct pager *p)
{
	const char *command = pager_choose(getenv("PTSNAP_PAGER"), getenv("PAGER"));
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	int ends[2];

	*p = (struct pager){0};
	if (!command || pipe(ends) < 0)
		return;
	fflush(stdout);
	p->before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	p->pid = p->before < 0 ? -1 : fork();
	if (p->pid == 0)
		run_pager(command, ends[0], ends[1]);
	close(ends[0]);
	if (p->pid > 0) {
		dup2(ends[1], STDOUT_FILENO);
		/* Ctrl-C is the pager's, which may also end early. */
		sigaction(SIGINT, &ignore, &p->interrupt);
		sigaction(SIGPIPE, &ignore, &p->pipe);
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
