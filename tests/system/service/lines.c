/*
 * A program with DWARF, whose thread waits in a function that was inlined: for case_lines. Works a
 * little and waits, for ever.
 */
#include <unistd.h>

static volatile unsigned sum;

static inline __attribute__((always_inline)) void rest(void)
{
	usleep(100000);
}

__attribute__((noinline, noclone)) static void work(unsigned n)
{
	while (n-- > 0)
		sum += n;
	rest();
	sum++;
}

int main(void)
{
	for (;;)
		work(50);
}
