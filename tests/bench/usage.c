/*
 * Measures what a program takes: usage FILE PROGRAM ARGS... writes an object into FILE: wall time
 * and CPU time in s, and the largest resident memory, in bytes, of the program or of a child that
 * it waited for. Exits with PROGRAM's status. The Python script cannot measure this itself: the
 * kernel counts the memory that a process had resident before exec, and the script's process is
 * large.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	FILE *to = argc >= 3 ? fopen(argv[1], "we") : NULL;
	double began = now();
	struct rusage usage;
	int status;
	pid_t pid;

	if (to == NULL)
		return 126;
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return 126;
	fprintf(to, "{\"wall\":%.6f,\"cpu\":%.6f,\"rss\":%lld}\n", now() - began,
		seconds(&usage.ru_utime) + seconds(&usage.ru_stime), usage.ru_maxrss * 1024ll);
	if (fclose(to) != 0)
		return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
