/*
 * A program for the emulated machine that loads and unloads two libraries in turns, and calls a
 * function that both have at the same place: guest_swap N LIBRARY LIBRARY. A LIBRARY defines
 * `uint64_t piece(uint64_t)`.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS 3000u
#define PAGE   4096u

typedef uint64_t piece_fn(uint64_t);

static uint64_t use(const char *path, uint64_t v)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *symbol = library != NULL ? dlsym(library, "piece") : NULL;
	piece_fn *f;

	if (symbol == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(&f, &symbol, sizeof(f));
	for (unsigned int i = 0; i < ROUNDS; i++)
		v = f(v & 0xffffffff);
	dlclose(library);
	return v;
}

/* Makes both libraries load at the same address. A kernel maps in the highest gap that is large
 * enough. The emulator maps behind its previous mapping; where that place is occupied, the emulator
 * asks the kernel, then and for all later mappings. */
static int be_in_the_way(void)
{
	char *p = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	p = mmap(p + 2 * PAGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? -1 : 0;
}

int main(int argc, char **argv)
{
	uint64_t v = 27;

	if (argc != 4 || be_in_the_way() != 0)
		return 2;
	for (unsigned long i = 0, n = strtoul(argv[1], NULL, 10); i < n; i++)
		v = use(argv[2 + i % 2], v);
	printf("%llu\n", (unsigned long long)v);
	return 0;
}
