/*
 * A program for the emulated machine that makes, replaces and ends processes and threads in unusual
 * ways. Prints one line per step; the lines are the same on every machine. guest_odd DIRECTORY
 * [STEP...]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/futex.h>

#define STACK (256 * 1024)

static const char *directory;
static volatile sig_atomic_t told;
static volatile uint64_t counter;

static __attribute__((noinline)) uint64_t compute(uint64_t v)
{
	for (unsigned int i = 0; i < 3000; i++)
		v = v & 1 ? v * 3 + 1 : v / 2 + i;
	return v;
}

static void say(const char *step, long value)
{
	printf("%s %ld\n", step, value);
	fflush(stdout);
}

static void say_status(const char *step, pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, __WALL) != pid)
		say(step, -1);
	else
		say(step, WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void vfork_and_exec(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit 42", (char *)NULL);
		_exit(99);
	}
	say_status("vfork", pid);
	pid = vfork();
	if (pid == 0)
		_exit(7);
	say_status("vfork without exec", pid);
}

static int in_clone(void *argument)
{
	return (int)(compute((uintptr_t)argument) % 50);
}

/* Runs the work by clone with FLAGS. An emulator may refuse such flags; then plain fork does the
 * work. */
static void clone_flags(const char *step, int flags)
{
	char *stack = malloc(STACK);
	pid_t pid = stack ? clone(in_clone, stack + STACK, flags | SIGCHLD, (void *)11) : -1;

	if (pid < 0) {
		pid = fork();
		if (pid == 0)
			_exit(in_clone((void *)11));
	}
	say_status(step, pid);
	free(stack);
}

struct raw_thread {
	uint64_t value;
	volatile int tid;
};

static int in_raw_thread(void *argument)
{
	struct raw_thread *t = argument;

	t->value = compute(t->value);
	return 0;
}

/* A thread that shares the TLS of its parent while the parent waits. */
static void raw_thread(void)
{
	struct raw_thread *t = calloc(1, sizeof(*t));
	char *stack = malloc(STACK);
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
	int r = -1;

	if (t != NULL && stack != NULL) {
		t->value = 5;
		t->tid = 1;
		r = clone(in_raw_thread, stack + STACK, flags, t, NULL, NULL, &t->tid);
	}
	while (r > 0 && t->tid != 0)
		syscall(SYS_futex, &t->tid, FUTEX_WAIT, 1, NULL, NULL, 0);
	say("clone without SETTLS", r > 0 ? (long)(t->value % 1000) : -1);
	free(stack);
	free(t);
}

static void close_all(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (syscall(SYS_close_range, 3u, ~0u, 0) < 0)
			for (int fd = 3; fd < 1024; fd++)
				close(fd);
		compute(1);
		execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
		_exit(99);
	}
	say_status("all fds closed", pid);
}

static void names(void)
{
	char name[17] = "";

	prctl(PR_SET_NAME, "first name");
	compute(2);
	prctl(PR_SET_NAME, "a name that is much too long");
	compute(3);
	prctl(PR_GET_NAME, name);
	printf("name %s\n", name);
	fflush(stdout);
}

static void on_usr1(int signo)
{
	(void)signo;
	told = 1;
}

/* Forks a child that computes until it is killed. Returns when the child is known to run. Never
 * returns -1, which kill(2) would take for all processes. */
static pid_t computing_child(void)
{
	int fds[2];
	char byte = 0;
	pid_t pid;

	if (pipe(fds) < 0)
		exit(3);
	pid = fork();
	if (pid < 0)
		exit(3);
	if (pid == 0) {
		signal(SIGUSR1, on_usr1);
		if (write(fds[1], &byte, 1) != 1)
			_exit(1);
		while (!told)
			counter += compute(counter);
		_exit(9);
	}
	if (read(fds[0], &byte, 1) != 1)
		exit(3);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static void stopped_and_continued(void)
{
	pid_t pid = computing_child();
	int status = 0;

	usleep(5000);
	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	say("stopped", WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
	for (int i = 0; i < 50; i++)
		counter += compute(counter);
	kill(pid, SIGCONT);
	waitpid(pid, &status, WCONTINUED);
	say("continued", WIFCONTINUED(status));
	usleep(5000);
	kill(pid, SIGUSR1);
	say_status("ended", pid);
}

static void killed(void)
{
	for (int i = 0; i < 5; i++) {
		pid_t pid = computing_child();

		usleep(1000 * i);
		kill(pid, SIGKILL);
		say_status("killed", pid);
	}
}

static void killed_while_stopped(void)
{
	pid_t pid = computing_child();
	int status = 0;

	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	kill(pid, SIGKILL);
	say_status("killed while stopped", pid);
}

static void crashed(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		const struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		compute(4);
		*(volatile int *)(uintptr_t)(told * 8) = 1;
		_exit(1);
	}
	say_status("crashed", pid);
}

static void *compute_thread(void *argument)
{
	uint64_t *v = argument;

	*v = compute(*v);
	return NULL;
}

static void *wait_thread(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

/* A child of a process with threads makes threads itself. */
static void fork_with_threads(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t v = 3;
	pthread_t t, u;
	pid_t pid;

	pthread_mutex_lock(&lock);
	if (pthread_create(&t, NULL, wait_thread, &lock) != 0)
		return say("threads", -1);
	pid = fork();
	if (pid == 0) {
		if (pthread_create(&u, NULL, compute_thread, &v) != 0)
			_exit(99);
		pthread_join(u, NULL);
		_exit((int)(v % 50));
	}
	say_status("thread of a fork", pid);
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
}

static const char *write_file(const char *name, const char *text, mode_t mode)
{
	static char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "we");
	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0 || chmod(path, mode) < 0) {
		perror(path);
		exit(1);
	}
	return path;
}

static void exec_errors(void)
{
	static const struct {
		const char *name, *text;
		mode_t mode;
	} files[] = {
		{"not_executable", "#!/bin/sh\n", 0644},
		{"no_format", "neither this nor that\n", 0755},
		{"empty", "", 0755},
		{"bad_interpreter", "#!/nonexistent/interpreter\n", 0755},
		{"short_elf", "\177ELF\2\1\1", 0755},
	};
	char *const argv[] = {"x", NULL};

	errno = 0;
	execv("/nonexistent", argv);
	say("exec of nothing", errno);
	execv(directory, argv);
	say("exec of a directory", errno);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		execv(write_file(files[i].name, files[i].text, files[i].mode), argv);
		say(files[i].name, errno);
	}
	execvp("no-such-program-anywhere", argv);
	say("exec of no program", errno);
	syscall(SYS_execve, 8ul, argv, argv);
	say("exec of a bad address", errno);
}

static void run(const char *step, int (*exec)(const char *, char *const *), const char *path)
{
	char *const argv[] = {"zero", "one", "two words", "", NULL};
	pid_t pid = fork();

	if (pid == 0) {
		exec(path, argv);
		_exit(99);
	}
	say_status(step, pid);
}

static void scripts(void)
{
	char path[4200];

	run("script", execv,
	    write_file("script", "#!/bin/sh -e\necho \"$# $1 $2 $3.\"\nfalse\nexit 3\n", 0755));
	snprintf(path, sizeof(path), "#!%s/script\necho never\n", directory);
	run("script of a script", execv, write_file("script2", path, 0755));
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", directory);
	setenv("PATH", path, 1);
	write_file("in_path", "#!/bin/sh\necho in path $1\nexit 6\n", 0755);
	run("execvp", execvp, "in_path");
	write_file("no_magic", "echo no magic $1\nexit 8\n", 0755);
	run("execvp by sh", execvp, "no_magic");
}

/* Execs a file descriptor that is closed on exec. */
static void exec_of_fd(void)
{
	char *const argv[] = {"sh", "-c", "exit 12", NULL};
	int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	pid_t pid = fork();

	if (pid == 0) {
		fexecve(fd, argv, environ);
		_exit(99);
	}
	close(fd);
	say_status("fexecve", pid);
}

static void odd_clones(void)
{
	clone_flags("clone FILES FS", CLONE_FILES | CLONE_FS);
	clone_flags("clone VM VFORK", CLONE_VM | CLONE_VFORK);
	clone_flags("clone nothing", 0);
	raw_thread();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} steps[] = {
		{"vfork", vfork_and_exec},
		{"clone", odd_clones},
		{"close", close_all},
		{"names", names},
		{"stop", stopped_and_continued},
		{"kill", killed},
		{"killstop", killed_while_stopped},
		{"crash", crashed},
		{"forkthreads", fork_with_threads},
		{"errors", exec_errors},
		{"scripts", scripts},
		{"fexecve", exec_of_fd},
	};

	if (argc < 2)
		return 2;
	directory = argv[1];
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int wanted = argc == 2;

		for (int a = 2; a < argc; a++)
			wanted |= strcmp(argv[a], steps[i].name) == 0;
		if (wanted)
			steps[i].fn();
	}
	return 17;
}
