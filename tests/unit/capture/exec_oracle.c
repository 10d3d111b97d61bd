/*
 * The kernel as an oracle for follow.c. Called by test_follow.c. Children speak through a
 * descriptor with a number that nobody else uses; what is at its other end tells program and
 * emulator from the tests.
 */
#include "tests/unit/capture/exec_oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/emu/machine/emustart.h"
#include "capture/emu/plugin/guest.h"
#include "proto/base.h"
#include "tests/support/child.h"

#define SPEAK_FD 200

extern char **environ;

/* The guest is this process. */
bool guest_read(uint64_t address, void *to, size_t size)
{
	struct iovec local = {to, size};
	struct iovec remote = {(void *)(uintptr_t)address, size};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* In the children: no assertion would be heard there. */

static void say(const void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(SPEAK_FD, (const char *)bytes + done, size - done);

		if (n <= 0)
			_exit(99);
		done += (size_t)n;
	}
}

static void say_string(const char *text)
{
	say(text != NULL ? text : "-", strlen(text != NULL ? text : "-") + 1);
}

static void say_file(const char *path)
{
	char text[64];
	struct stat st = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		snprintf(text, sizeof(text), "%s", strerror(errno));
	else
		snprintf(text, sizeof(text), "%lu:%lu", (unsigned long)st.st_dev,
			 (unsigned long)st.st_ino);
	say_string(text);
}

static void be_program(int argc, char **argv)
{
	char comm[16] = "";

	prctl(PR_GET_NAME, comm);
	say("P", 1);
	say_string(comm);
	say_file("/proc/self/exe");
	for (int i = 0; i < argc; i++)
		say_string(argv[i]);
	say("\n", 2);
	for (size_t i = 0; environ[i] != NULL; i++)
		say_string(environ[i]);
	_exit(0);
}

/* As plugins/loader.c does: the value of comm= in the option. */
static const char *comm_in(const char *option)
{
	static char value[256];
	const char *at = strstr(option, ",comm=");

	if (at == NULL)
		return "";
	snprintf(value, sizeof(value), "%s", at + 6);
	value[strcspn(value, ",")] = '\0';
	return value;
}

static void say_self(void)
{
	struct follow_self self;
	char seed[2] = "0";

	if (follow_self_read(&self) < 0)
		_exit(98);
	seed[0] = self.repeatable ? '1' : '0';
	say_string(self.qemu);
	say_string(self.plugin);
	say_string(self.ring);
	say_string(self.truth);
	say_string(self.exec_path);
	say_string(seed);
}

/* Two of one name, of which QEMU would forget one. */
static bool has_double(size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (strncmp(environ[i], environ[j], strcspn(environ[i], "=") + 1) == 0)
				return true;
	return false;
}

/* linux-user/main.c and util/envlist.c in small; then the plugin's part. */
static void be_emulator(int argc, char **argv)
{
	int at = strcmp(argv[1], "-seed") == 0 ? 3 : 1;
	size_t n = 0;
	char comm[16];

	if (argc < at + 6 || strcmp(argv[at + 2], "-0") != 0 || strcmp(argv[at + 4], "--") != 0)
		_exit(97);
	emustart_unescape(comm_in(argv[at + 1]), comm, sizeof(comm));
	say("E", 1);
	say_self();
	say_string(comm);
	say_file(argv[at + 5]);
	say_string(argv[at + 3]);
	for (int i = at + 6; i < argc; i++)
		say_string(argv[i]);
	say("\n", 2);
	while (environ[n] != NULL)
		n++;
	if (has_double(n))
		_exit(92);
	while (n-- > 0) {
		const char *text = environ[n];

		if (strchr(text, '=') == NULL || strncmp(text, "LD_", 3) == 0)
			_exit(96);
		say_string(strlen(text) >= EMUSTART_PREFIX_SIZE && emustart_is_prefix(text)
				   ? text + EMUSTART_PREFIX_SIZE
				   : text);
	}
	_exit(0);
}

void exec_oracle_serve(int argc, char **argv)
{
	if (fcntl(SPEAK_FD, F_GETFD) < 0)
		return;
	if (argc > 2 && (strcmp(argv[1], "-plugin") == 0 || strcmp(argv[1], "-seed") == 0))
		be_emulator(argc, argv);
	be_program(argc, argv);
}

static int exec_native(const struct follow_call *c)
{
	if (c->at)
		syscall(SYS_execveat, c->dirfd, c->path, c->argv, c->envp, c->flags);
	else
		syscall(SYS_execve, c->path, c->argv, c->envp);
	return errno;
}

static void run_native(const struct exec_try *t)
{
	int error = exec_native(&t->call);

	say("F", 1);
	say(&error, sizeof(error));
}

static void run_follow(const struct exec_try *t)
{
	struct follow *f = NULL;
	char why[512] = "";
	enum follow_verdict v = follow_prepare(t->self, &t->call, &f, why, sizeof(why));

	say("V", 1);
	say(&v, sizeof(v));
	say_string(why);
	if (v == FOLLOW_READY)
		_exit(follow_exec(f) == 0 ? 95 : 94);
}

/* All that a child says while it runs RUN. */
static void listen_to(const struct exec_try *t, void (*run)(const struct exec_try *),
		      struct exec_outcome *ret)
{
	char bytes[65536];
	int fds[2], status;
	FILE *f;
	ssize_t n;
	pid_t pid;

	*ret = (struct exec_outcome){0};
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (dup2(fds[1], SPEAK_FD) < 0)
			_exit(93);
		close(fds[0]);
		close(fds[1]);
		if (t->prepare != NULL)
			t->prepare();
		run(t);
		_exit(0);
	}
	close(fds[1]);
	f = open_memstream(&ret->text, &ret->size);
	assert_non_null(f);
	while ((n = read(fds[0], bytes, sizeof(bytes))) > 0)
		fwrite(bytes, 1, (size_t)n, f);
	fclose(f);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* A child that is killed was killed by the damaged program that it exec'ed. */
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
}

static void drop(struct exec_outcome *o, size_t size)
{
	assert_true(size <= o->size);
	memmove(o->text, o->text + size, o->size - size);
	o->size -= size;
}

void exec_oracle_native(const struct exec_try *t, struct exec_outcome *ret)
{
	listen_to(t, run_native, ret);
	if (ret->size == 0)
		return;
	if (ret->text[0] == 'F')
		memcpy(&ret->error, ret->text + 1, sizeof(ret->error));
	ret->told = ret->text[0] == 'P';
	drop(ret, 1);
}

static void take_strings(struct exec_outcome *o, size_t n, char *to, size_t size)
{
	size_t used = 0;

	to[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		const char *text = o->text;

		assert_non_null(memchr(text, '\0', o->size));
		used += (size_t)snprintf(to + used, used < size ? size - used : 0, "%s%s", text,
					 n > 1 ? "\n" : "");
		drop(o, strlen(text) + 1);
	}
}

void exec_oracle_follow(const struct exec_try *t, struct exec_followed *ret)
{
	struct exec_outcome *o = &ret->outcome;

	listen_to(t, run_follow, o);
	assert_true(o->size > 1 + sizeof(ret->verdict) && o->text[0] == 'V');
	memcpy(&ret->verdict, o->text + 1, sizeof(ret->verdict));
	drop(o, 1 + sizeof(ret->verdict));
	take_strings(o, 1, ret->why, sizeof(ret->why));
	if (ret->verdict != FOLLOW_READY)
		return;
	assert_true(o->size > 0 && o->text[0] == 'E');
	o->told = true;
	drop(o, 1);
	take_strings(o, 6, ret->self, sizeof(ret->self));
}

static void cut_string(struct exec_outcome *o, size_t at)
{
	size_t size = strlen(o->text + at) + 1;

	memmove(o->text + at, o->text + at + size, o->size - at - size);
	o->size -= size;
}

/* Comm and file come first. */
static void leave_out(struct exec_outcome *o, unsigned int without)
{
	if (without & EXEC_ORACLE_NO_INODE)
		cut_string(o, strlen(o->text) + 1);
	if (without & EXEC_ORACLE_NO_COMM)
		cut_string(o, 0);
}

enum follow_verdict exec_oracle_compare(const struct exec_try *t, char *why, size_t why_size)
{
	struct exec_outcome native;
	struct exec_followed followed;

	exec_oracle_native(t, &native);
	exec_oracle_follow(t, &followed);
	snprintf(why, why_size, "%s", followed.why);
	if (followed.verdict == FOLLOW_FAILS)
		assert_int_not_equal(native.error, 0);
	if (followed.verdict == FOLLOW_READY) {
		assert_int_equal(native.error, 0);
		if (native.told) {
			leave_out(&native, t->without);
			leave_out(&followed.outcome, t->without);
			assert_int_equal(native.size, followed.outcome.size);
			assert_memory_equal(native.text, followed.outcome.text, native.size);
		}
	}
	free(native.text);
	free(followed.outcome.text);
	return followed.verdict;
}
