/*
 * Produces load for a recorder of sideband: processes started one after another, and threads that
 * pass a byte back and forth. Run by bench_sideband.py; exits when standard input closes.
 */
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void spawn_for_ever(void)
{
	char *const argv[] = {"true", NULL}, *const environment[] = {NULL};
	pid_t pid;

	die_with_parent();
	while (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environment) == 0)
		waitpid(pid, NULL, 0);
	_exit(EXIT_FAILURE);
}

static void echo_for_ever(int from, int to)
{
	char byte;

	die_with_parent();
	while (read(from, &byte, 1) == 1)
		if (write(to, &byte, 1) != 1)
			break;
	_exit(EXIT_FAILURE);
}

static void start_pair(void)
{
	int there[2], back[2];

	if (pipe(there) < 0 || pipe(back) < 0)
		exit(EXIT_FAILURE);
	if (fork() == 0)
		echo_for_ever(there[0], back[1]);
	if (fork() == 0)
		echo_for_ever(back[0], there[1]);
	if (write(there[1], "", 1) != 1)
		exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	int spawners = argc > 1 ? atoi(argv[1]) : 1, pairs = argc > 2 ? atoi(argv[2]) : 0;
	char byte;

	for (int i = 0; i < pairs; i++)
		start_pair();
	for (int i = 0; i < spawners; i++)
		if (fork() == 0)
			spawn_for_ever();
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return EXIT_SUCCESS;
}
