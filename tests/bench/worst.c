/*
 * Programs that are the worst case for a decoder: worst bits, worst indirect, worst once. `make
 * bench' records them.
 *
 *   bits      conditional branches with nothing between them: one node for each TNT bit
 *   indirect  indirect jumps with almost nothing between them: one TIP for each
 *   once      conditional branches that execute only once each: compiled nodes are never reused
 */
#include <stdio.h>
#include <string.h>

/* je to what is behind it, and all are taken. */
extern void worst_bits(void);
asm(".text\n"
    "worst_bits:\n"
    "	cmp %eax, %eax\n"
    "	.fill 0x10000, 2, 0x0074\n"
    "	ret\n");

/* lea behind(%rip), %rax; jmp *%rax */
extern void worst_indirect(void);
asm("worst_indirect:\n"
    "	.rept 0x1000\n"
    "	lea 2(%rip), %rax\n"
    "	jmp *%rax\n"
    "	.endr\n"
    "	ret\n");

extern void worst_once(void);
asm("worst_once:\n"
    "	cmp %eax, %eax\n"
    "	.fill 0x100000, 2, 0x0074\n"
    "	ret\n");

int main(int argc, char **argv)
{
	const char *which = argc == 2 ? argv[1] : "";

	if (strcmp(which, "once") == 0) {
		worst_once();
	} else if (strcmp(which, "bits") == 0) {
		for (int i = 0; i < 500; i++)
			worst_bits();
	} else if (strcmp(which, "indirect") == 0) {
		for (int i = 0; i < 500; i++)
			worst_indirect();
	} else {
		fprintf(stderr, "usage: worst bits|indirect|once\n");
		return 2;
	}
	return 0;
}
