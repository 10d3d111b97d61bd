/*
 * The members of the kernel's structures that the programs read. libbpf finds their offsets in the
 * running kernel's BTF. Names and types as in Linux 6.1 and 6.18; other members are left out.
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#pragma once

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* include/linux/fs.h */
struct super_block {
	__u32 s_dev;
};
struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
};
struct file {
	struct inode *f_inode;
};

/* include/linux/kernfs.h, include/linux/cgroup-defs.h */
struct kernfs_node {
	__u64 id;
};
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};
struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};
struct css_set {
	struct cgroup *dfl_cgrp;
};

/* include/linux/sched.h, sched/signal.h, signal_types.h, cred.h, mm_types.h, binfmts.h */
typedef struct {
	__u32 val;
} kuid_t;
struct cred {
	kuid_t uid;
};
struct mm_struct {
	struct file *exe_file;
};
typedef struct {
	unsigned long sig[1];
} sigset_t;
struct sigaction {
	void *sa_handler;
	unsigned long sa_flags;
	void *sa_restorer;
	sigset_t sa_mask;
};
struct k_sigaction {
	struct sigaction sa;
};
struct sighand_struct {
	struct k_sigaction action[64];
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
	unsigned int flags;
	int group_exit_code;
};
struct thread_info {
	__u32 status;
	__u32 cpu;
};
struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	unsigned int ptrace;
	int on_cpu;
	int pid;
	int tgid;
	int exit_code;
	__u64 start_time;
	struct task_struct *group_leader;
	const struct cred *cred;
	char comm[16];
	struct mm_struct *mm;
	struct css_set *cgroups;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	sigset_t blocked;
};
struct kernel_siginfo {
	int si_signo;
	int si_code;
	union {
		struct {
			void *_addr;
		} _sigfault;
	} _sifields;
};
struct linux_binprm {
	struct file *file;
};

/* arch/x86/include/asm/ptrace.h */
struct pt_regs {
	unsigned long ax;
	unsigned long ip;
	unsigned long sp;
};

#pragma clang attribute pop
