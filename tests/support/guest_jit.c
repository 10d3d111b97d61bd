/*
 * A program for the emulated machine that makes its own code: writes anonymous memory, makes it
 * executable, calls it, leaves it by return and by indirect jumps, and rewrites it in some modes.
 * Writes the names of that code to /tmp/perf-PID.map, as JIT compilers do. guest_jit MODE STOP
 *
 * MODE: "once": writes the code once; "rewrite": writes other code at the same place again and
 * again; "gone": unmaps the code before waiting; "fork": writes the code once and also runs it in a
 * child; "memfd": the code is in a memory file that is mapped twice, for writing and for executing;
 * "self": the memory is writable and executable, and pieces of straight code are written over in
 * each round; no packet tells one from the other, but their numbers of instructions differ; "dump":
 * the same, and each piece is written to jit-PID.dump in the directory of STOP, with its time;
 * "file": the straight code is in a file that is mapped privately, and is written over in memory
 * once; "touched": the file is not written to, but its mode changes in each round. Makes the file
 * STOP.ready after a number of rounds, and continues until the file STOP exists.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
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

#define SPOTS 5u
/* lea 7(%rdi),%rax; 10 times nop; ret. The other one: lea 7(%rdi),%rax; a nop of 10 bytes; ret. */
static const uint8_t many_nops[] = {0x48, 0x8d, 0x47, 0x07, 0x90, 0x90, 0x90, 0x90,
				    0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3};
static const uint8_t one_nop[] = {0x48, 0x8d, 0x47, 0x07, 0x66, 0x2e, 0x0f, 0x1f,
				  0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc3};

static uint64_t call(const uint8_t *code, uint64_t v);

/* Calls other code at each spot, one round after the other. The last round has the long code. */
static uint64_t write_and_run(uint8_t *code)
{
	uint64_t sum = 0;

	for (unsigned int round = 0; round < 60; round++)
		for (unsigned int i = 0; i < SPOTS; i++) {
			uint8_t *spot = code + (uint64_t)i * 2 * PAGE;

			memcpy(spot, round % 2 ? many_nops : one_nop, sizeof(many_nops));
			sum += call(spot, round);
		}
	return sum;
}

static uint64_t run_spots(const uint8_t *code)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < 60 * SPOTS; i++)
		sum += call(code + (uint64_t)(i % SPOTS) * 2 * PAGE, i);
	return sum;
}

/* --- jit-PID.dump (tools/perf/Documentation/jitdump-specification.txt) --- */

struct dump_header {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t time, flags;
};

struct dump_load {
	uint32_t id, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, address, code_size, index;
	char name[9]; /* with the NUL */
	uint8_t code[sizeof(many_nops)];
} __attribute__((packed));

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Begins the dump, and maps it, which tells everybody that it is there. */
static int begin_dump(const char *stop)
{
	struct dump_header header = {0x4a695444, 1, sizeof(header), 62, 0, (uint32_t)getpid(),
				     now(),	 0};
	int length = (int)(strrchr(stop, '/') + 1 - stop), fd;
	char path[4096];

	snprintf(path, sizeof(path), "%.*sjit-%d.dump", length, stop, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, &header, sizeof(header)) != sizeof(header) ||
	    mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(1);
	return fd;
}

static void dump_code(int fd, uint8_t *spot, const uint8_t *code, const char *name)
{
	static uint64_t index;
	struct dump_load load = {.size = sizeof(load),
				 .time = now(),
				 .pid = (uint32_t)getpid(),
				 .tid = (uint32_t)getpid(),
				 .vma = (uint64_t)spot,
				 .address = (uint64_t)spot,
				 .code_size = sizeof(load.code),
				 .index = index++};

	memcpy(spot, code, sizeof(load.code));
	memcpy(load.name, name, sizeof(load.name));
	memcpy(load.code, code, sizeof(load.code));
	if (write(fd, &load, sizeof(load)) != sizeof(load))
		exit(1);
}

/* Replaces the code at all spots, and runs it a little later: the clocks of the dump and of the
 * trace are not the same, and the more apart the longer ago it was. */
static uint64_t dump_and_run(int fd, uint8_t *code, unsigned int round)
{
	uint64_t sum = 0;

	usleep(3000);
	for (unsigned int i = 0; i < SPOTS; i++)
		dump_code(fd, code + (uint64_t)i * 2 * PAGE, round % 2 ? many_nops : one_nop,
			  round % 2 ? "jit_many" : "jit_ones");
	usleep(3000);
	/* Code beside the first spot that is not in the dump. */
	if (round == 1)
		memcpy(code + 64, one_nop, sizeof(one_nop));
	sum += call(code + 64, round);
	for (unsigned int i = 0; i < 10 * SPOTS; i++)
		sum += call(code + (uint64_t)(i % SPOTS) * 2 * PAGE, i);
	return sum;
}

static void *map_code(int prot, int flags, int fd)
{
	void *p = mmap(NULL, PAGES * PAGE, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

/* Maps the file STOP.code, which is open as *ret_fd. */
static uint8_t *map_file(const char *stop, bool write, int *ret_fd)
{
	char path[4096];
	uint8_t *code;

	snprintf(path, sizeof(path), "%s.code", stop);
	*ret_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (*ret_fd < 0 || ftruncate(*ret_fd, PAGES * PAGE) != 0)
		exit(1);
	for (unsigned int i = 0; i < SPOTS; i++)
		if (pwrite(*ret_fd, one_nop, sizeof(one_nop), (off_t)i * 2 * PAGE) < 0)
			exit(1);
	code = map_code(PROT_READ | PROT_EXEC, MAP_PRIVATE, *ret_fd);
	if (!write)
		return code;
	mprotect(code, PAGES * PAGE, PROT_READ | PROT_WRITE);
	for (unsigned int i = 0; i < SPOTS; i++)
		memcpy(code + (uint64_t)i * 2 * PAGE, many_nops, sizeof(many_nops));
	mprotect(code, PAGES * PAGE, PROT_READ | PROT_EXEC);
	return code;
}

static uint8_t *make_code(const char *mode)
{
	bool memfd = strcmp(mode, "memfd") == 0;
	uint8_t *code;
	int fd;

	if (strcmp(mode, "self") == 0 || strcmp(mode, "dump") == 0)
		return map_code(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
				-1);
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
	bool write, file, dump;
	uint64_t sum = 0;
	pid_t child = -1;
	uint8_t *code;
	int fd = -1;

	if (argc < 3)
		return 2;
	write = strcmp(argv[1], "file") == 0;
	file = write || strcmp(argv[1], "touched") == 0;
	dump = strcmp(argv[1], "dump") == 0;
	code = file ? map_file(argv[2], write, &fd) : make_code(argv[1]);
	if (dump)
		fd = begin_dump(argv[2]);
	else if (!file)
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
		else if (file)
			sum += run_spots(code);
		else if (dump)
			sum += dump_and_run(fd, code, round);
		else if (strcmp(argv[1], "self") == 0)
			sum += write_and_run(code);
		else
			sum += run_code(code);
		if (file && !write)
			fchmod(fd, round % 2 ? 0700 : 0600);
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
