/*
 * /proc/kcore: the kernel's memory as an ELF core file that the kernel itself makes. Its program
 * headers say which addresses lie where in the file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kcore_segment {
	uint64_t address, size,
		offset; /* bytes; neither address + size nor offset + size overflows */
};

struct kcore {
	int fd;
	struct kcore_segment *segments; /* owned */
	size_t n_segments;
	const struct kcore_segment *image; /* the kernel's own; NULL: not found */
};

/* Opens PATH ("/proc/kcore") and reads its headers. It takes CAP_SYS_RAWIO and a kernel that is not
 * locked down to confidentiality (fs/proc/kcore.c, open_kcore): else -EPERM; -ENOENT: this kernel
 * has none; -EBADMSG: not the file that it should be; -ENOMEM; -errno. */
int kcore_open(const char *path, struct kcore *ret);
void kcore_close(struct kcore *k);
/* SIZE bytes of memory from ADDRESS to TO; memory that is not mapped reads as zeros. 0; -EFAULT: no
 * segment holds them all; -ENODATA: the file ended; -errno. */
int kcore_read(const struct kcore *k, uint64_t address, void *to, size_t size);
