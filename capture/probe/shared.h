/*
 * What the BPF programs and the code that loads them share.
 */
#pragma once

#include <linux/types.h>

#define SHARED_COMM  16
#define SHARED_STACK 32
#define SHARED_TESTS 8
#define SHARED_TEXT  32
/* Calls of one function, one in another, whose entry a thread remembers. */
#define SHARED_FRAMES 8

/* One comparison with a field of a tracepoint. */
struct shared_test {
	__u32 offset; /* in the tracepoint's record */
	__u8 size;    /* 1, 2, 4, 8; of a text: bytes that are compared, at most SHARED_TEXT */
	__u8 is_signed;
	__u8 is_text; /* 0, or where the text is */
	__u8 op;      /* enum shared_op */
	__u64 value;
	char text[SHARED_TEXT]; /* compared with SIZE bytes */
};

enum shared_text {
	SHARED_TEXT_HERE = 1, /* at the offset */
	SHARED_TEXT_ELSEWHERE /* __data_loc: at the offset is the text's offset */
};

enum shared_op { SHARED_EQ, SHARED_NE, SHARED_LT, SHARED_LE, SHARED_GT, SHARED_GE, SHARED_AND };

/* The kernel's numbers for a file: inode and i_sb->s_dev (major << 20 | minor). */
struct shared_file {
	__u64 ino; /* 0: any file */
	__u32 dev;
};

/* The specification as the programs read it. */
struct shared_params {
	__u32 kind;
	__u32 tgid; /* 0: any */
	__u32 uid;
	__u8 has_uid;
	__u8 status_min, status_max;
	__u8 n_tests;
	char comm[SHARED_COMM]; /* "": any */
	__u64 cgroup;		/* 0: any */
	struct shared_file exe, file;
	__u64 signals; /* bit N - 1 */
	__u64 limit_ns;
	__u64 syscalls[8];
	struct shared_test tests[SHARED_TESTS];
};

/* A record of the ring of events. */
struct shared_event {
	__u64 time_ns, duration_ns, address, data;
	__s64 value;
	__u32 cpu, pid, tid, by, uid;
	__u32 stack_bytes;
	char comm[SHARED_COMM];
	__u64 stack[SHARED_STACK];
};
