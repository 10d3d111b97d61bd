/*
 * A program for the emulated machine that makes its own code: writes anonymous memory, makes it
 * executable, calls it, leaves it by return and by indirect jumps, and rewrites it in some modes.
 * Writes the names of that code to /tmp/perf-PID.map, as JIT compilers do. guest_jit MODE STOP
 *
 * MODE: "once": writes the code once; "rewrite": writes other code at the same place again and
 * again; "gone": unmaps the code before waiting; "fork": writes the code once and also runs it in a
 * child; "memfd": the code is in a memory file that is mapped twice, for writing and for executing.
 * Makes the file STOP.ready after a number of rounds, and continues until the file STOP exists.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096u
#define PAGES 16u
#define READY 200u /* rounds */

typedef uint64_t piece_fn(uint64_t, uint64_t (*)(uint64_t));

/* lea 7(%rdi),%rax; 1: add $3,%rax; sub $1,%rdi; ja 1b; ret */
static const uint8_t jit_loop[] = {0x48, 0x8d, 0x47, 0x07, 0x48, 0x83, 0xc0, 0x03,
				   0x48, 0x83, 0xef, 0x01, 0x77, 0xf6, 0xc3};
/* lea 7(%rdi),%rax; 1: test $1,%dil; je 2f; add $5,%rax; 2: sub $1,%rdi; ja 1b; ret */
static const uint8_t jit_odd[] = {0x48, 0x8d, 0x47, 0x07, 0x40, 0xf6, 0xc7, 0x01, 0x74, 0x04, 0x48,
				  0x83, 0xc0, 0x05, 0x48, 0x83, 0xef, 0x01, 0x77, 0xf0, 0xc3};
/* push %rbx; mov %rdi,%rbx; call *%rsi; add %rbx,%rax; pop %rbx; ret */
static const uint8_t jit_caller[] = {0x53, 0x48, 0x89, 0xfb, 0xff, 0xd6,
				     0x48, 0x01, 0xd8, 0x5b, 0xc3};

static uint64_t __attribute__((noinline)) ahead_of_time(uint64_t v)
{
	return v % 3 ? v * 5 : v + 1;
}

static const char *map_path(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	return path;
}

static void tell(const uint8_t *code)
{
	FILE *f = fopen(map_path(), "we");

	if (!f)
		exit(1);
	fprintf(f, "%lx %zx jit_old_name\n", (unsigned long)code, sizeof(jit_loop));
	fprintf(f, "%lx %zx jit_loop\n", (unsigned long)code, sizeof(jit_loop));
	fprintf(f, "%lx %zx jit_odd\n", (unsigned long)code + 5 * PAGE, sizeof(jit_odd));
	fprintf(f, "%lx %zx jit_caller\n", (unsigned long)code + 5 * PAGE + 64, sizeof(jit_caller));
	fclose(f);
}

static void put_code(uint8_t *to, unsigned int round)
{
	if (round % 2 == 0)
		memcpy(to, jit_loop, sizeof(jit_loop));
	else
		memcpy(to, jit_odd, sizeof(jit_odd));
	memcpy(to + 5 * PAGE, jit_odd, sizeof(jit_odd));
	memcpy(to + 5 * PAGE + 64, jit_caller, sizeof(jit_caller));
}

static void write_code(uint8_t *code, unsigned int round)
{
	mprotect(code, PAGES * PAGE, PROT_READ | PROT_WRITE);
	put_code(code, round);
	mprotect(code, PAGES * PAGE, PROT_READ | PROT_EXEC);
}

static void *map_code(int prot, int flags, int fd)
{
	void *p = mmap(NULL, PAGES * PAGE, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

static uint8_t *make_code(bool memfd)
{
	uint8_t *code;
	int fd;

	if (!memfd) {
		code = map_code(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		write_code(code, 0);
		return code;
	}
	fd = memfd_create("jit", 0);
	if (fd < 0 || ftruncate(fd, PAGES * PAGE) != 0)
		exit(1);
	put_code(map_code(PROT_READ | PROT_WRITE, MAP_SHARED, fd), 0);
	return map_code(PROT_READ | PROT_EXEC, MAP_SHARED, fd);
}

static uint64_t call(const uint8_t *code, uint64_t v)
{
	piece_fn *f;

	memcpy(&f, &code, sizeof(f));
	return f(v, ahead_of_time);
}

static uint64_t run_code(const uint8_t *code)
{
	uint64_t sum = 0;

	for (uint64_t i = 1; i < 50; i++) {
		sum += call(code, i);
		sum += call(code + 5 * PAGE, i);
		sum += call(code + 5 * PAGE + 64, i);
	}
	return sum;
}

static void say_ready(const char *stop)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s.ready", stop);
	f = fopen(path, "we");
	if (!f)
		exit(1);
	fclose(f);
}

int main(int argc, char **argv)
{
	uint8_t *code = make_code(argc > 1 && strcmp(argv[1], "memfd") == 0);
	uint64_t sum = 0;
	pid_t child = -1;

	if (argc < 3)
		return 2;
	tell(code);
	if (strcmp(argv[1], "fork") == 0)
		child = fork();
	for (unsigned int round = 1; access(argv[2], F_OK) != 0; round++) {
		bool gone = strcmp(argv[1], "gone") == 0 && round >= READY;

		if (gone && round == READY)
			munmap(code, PAGES * PAGE);
		if (round == READY)
			say_ready(argv[2]);
		if (gone)
			usleep(10000);
		else
			sum += run_code(code);
		if (strcmp(argv[1], "rewrite") == 0)
			write_code(code, round);
	}
	if (child == 0)
		_exit(0);
	if (child > 0)
		waitpid(child, NULL, 0);
	unlink(map_path());
	printf("%s\n", sum > 0 ? "done" : "");
	return 0;
}
