/*
 * /proc/kcore: the kernel's memory as an ELF core file that the kernel makes. The program headers
 * tell which addresses lie where in the file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kcore_segment {
	/* Bytes; neither ADDRESS + SIZE nor OFFSET + SIZE overflows. */
	uint64_t address, size, offset;
};

struct kcore {
	int fd;
	struct kcore_segment *segments; /* owned */
	size_t n_segments;
	const struct kcore_segment *image; /* holds the kernel's own image; NULL: not found */
};

/* Opens PATH ("/proc/kcore") and reads its headers. 0; -EPERM: without CAP_SYS_RAWIO, or the kernel
 * is locked down to confidentiality (fs/proc/kcore.c, open_kcore); -ENOENT: this kernel has no
 * kcore; -EBADMSG: another kind of file; -ENOMEM; -errno. */
int kcore_open(const char *path, struct kcore *ret);
void kcore_close(struct kcore *k);
/* Reads SIZE bytes of memory at ADDRESS to TO. Memory that is not mapped reads as zeros. 0;
 * -EFAULT: no segment holds them all; -ENODATA: the file ended; -errno. */
int kcore_read(const struct kcore *k, uint64_t address, void *to, size_t size);
