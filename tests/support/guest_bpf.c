/*
 * guest_bpf ROUNDS: loads a BPF program, has it look at packets of a socket pair, and frees it,
 * ROUNDS times: for a machine that traces itself. Prints one line; status 0 if each program ran.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PACKETS 50

/* R0 = LENGTH, after a loop of COUNT rounds: what the filter keeps of a packet. */
static int load(int count, int length)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = count},
		{.code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = BPF_REG_2, .imm = 1},
		{.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_2, .off = -2},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = length},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insn_cnt = sizeof(code) / sizeof(code[0]),
		.insns = (uintptr_t)code,
		.license = (uintptr_t) "GPL",
	};

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* Whether program PROG cuts packets to LENGTH bytes. */
static int run(int prog, int length)
{
	char packet[64] = "packet";
	int ends[2], good = 1;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0 ||
	    setsockopt(ends[0], SOL_SOCKET, SO_ATTACH_BPF, &prog, sizeof(prog)) != 0)
		return 0;
	for (int i = 0; i < PACKETS; i++)
		good &= write(ends[1], packet, sizeof(packet)) == (ssize_t)sizeof(packet) &&
			read(ends[0], packet, sizeof(packet)) == length;
	close(ends[0]);
	close(ends[1]);
	return good;
}

int main(int argc, char **argv)
{
	int rounds = argc == 2 ? atoi(argv[1]) : 1, good = 1;

	for (int i = 0; i < rounds && good; i++) {
		int prog = load(3 + i, 8 + i % 40);

		good = prog >= 0 && run(prog, 8 + i % 40);
		if (prog < 0)
			perror("bpf");
		else
			close(prog);
	}
	printf("%d programs, %s\n", rounds, good ? "each ran" : "one failed");
	return good ? 0 : 1;
}
