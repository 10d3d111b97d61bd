/*
 * A program for the emulated machine in which one address has several meanings: two files mapped in
 * turns at one place, two libraries loaded and unloaded in turns, and exec of itself, also by a
 * thread that is not the first. guest_maps DIRECTORY [LIBRARY LIBRARY]
 *
 * A LIBRARY defines `uint64_t piece(uint64_t)`. Two files of machine code are written to DIRECTORY.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACE	((void *)0x5000000000)
#define TIMES	20
#define N_FILES 2

typedef uint64_t piece_fn(uint64_t);

/* Both files begin alike, so that the first instruction does not reveal a stale image. */
static const uint8_t code[N_FILES][32] = {
	/* lea 7(%rdi),%rax; 1: add $3,%rax; sub $1,%rdi; ja 1b; ret */
	{0x48, 0x8d, 0x47, 0x07, 0x48, 0x83, 0xc0, 0x03, 0x48, 0x83, 0xef, 0x01, 0x77, 0xf6, 0xc3},
	/* lea 7(%rdi),%rax; 1: test $1,%dil; je 2f; add $5,%rax; 2: sub $1,%rdi; ja 1b; ret */
	{0x48, 0x8d, 0x47, 0x07, 0x40, 0xf6, 0xc7, 0x01, 0x74, 0x04, 0x48,
	 0x83, 0xc0, 0x05, 0x48, 0x83, 0xef, 0x01, 0x77, 0xf0, 0xc3},
};
static char **arguments;

static int write_code(const char *directory, int i)
{
	char path[4096];
	uint8_t page[4096];
	int fd;

	memset(page, 0xcc, sizeof(page));
	memcpy(page, code[i], sizeof(code[i]));
	snprintf(path, sizeof(path), "%s/code%d", directory, i);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || pwrite(fd, page, sizeof(page), 0) != sizeof(page)) {
		perror(path);
		exit(1);
	}
	return fd;
}

static uint64_t call_at_place(int fd, int flags, uint64_t v)
{
	void *p = mmap(PLACE, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | flags, fd, 0);
	piece_fn *f;

	if (p != PLACE)
		return 0;
	memcpy(&f, &p, sizeof(f));
	return f(v);
}

static uint64_t files(const char *directory)
{
	int fds[N_FILES];
	uint64_t sum = 0;

	for (int i = 0; i < N_FILES; i++)
		fds[i] = write_code(directory, i);
	for (unsigned int t = 0; t < TIMES; t++) {
		/* Replace the mapping of the other file. */
		sum += call_at_place(fds[t % 2], MAP_FIXED, 100 + t);
		if (t % 5 != 0)
			continue;
		/* Call an address where nothing is mapped any more. */
		munmap(PLACE, 4096);
		sum += call_at_place(fds[t / 5 % 2], MAP_FIXED_NOREPLACE, 50);
	}
	for (int i = 0; i < N_FILES; i++)
		close(fds[i]);
	return sum;
}

static uint64_t library(const char *path, uint64_t v)
{
	void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *symbol = l != NULL ? dlsym(l, "piece") : NULL;
	piece_fn *f;

	if (symbol == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(&f, &symbol, sizeof(f));
	v = f(v);
	dlclose(l);
	return v;
}

static void *exec_from_thread(void *step)
{
	arguments[0] = step;
	execv("/proc/self/exe", arguments);
	return NULL;
}

/* Has a conditional branch: a trace does not show how often a loop without one ran. */
static void *spin(void *v)
{
	for (volatile uint64_t *n = v; *n != UINT64_MAX; ++*n)
		;
	return NULL;
}

/* argv[0] names the current step. */
int main(int argc, char **argv)
{
	static uint64_t spun;
	uint64_t sum;
	pthread_t t;

	if (argc < 2)
		return 2;
	arguments = argv;
	sum = files(argv[1]);
	for (uint64_t i = 0; argc > 3 && i < TIMES; i++)
		sum += library(argv[2 + i % 2], i + 10);
	printf("%s %llu\n",
	       strcmp(argv[0], "two") == 0     ? "two"
	       : strcmp(argv[0], "three") == 0 ? "three"
					       : "one",
	       (unsigned long long)sum);
	fflush(stdout);
	if (strcmp(argv[0], "three") == 0)
		return 3;
	if (strcmp(argv[0], "two") != 0) {
		argv[0] = (char[]){"two"};
		execv("/proc/self/exe", argv);
		return 4;
	}
	/* This thread execs while another thread computes. */
	if (pthread_create(&t, NULL, spin, &spun) != 0 ||
	    pthread_create(&t, NULL, exec_from_thread, (char[]){"three"}) != 0)
		return 5;
	pthread_join(t, NULL);
	return 6;
}
