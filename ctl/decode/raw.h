/*
 * The offline form without a recorder: PT bytes in a file, executable bytes in files, composed into
 * a bundle in memory, so that everything behind it is the ordinary path.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/decode/pevent_option.h"

struct raw_image {
	char *path; /* owned */
	uint64_t offset;
	uint64_t length; /* UINT64_MAX: to the end of the file */
	uint64_t vaddr;
};

struct raw {
	const char *pt_path; /* borrowed */
	struct raw_image *images;
	size_t n_images;
	bool have_cpu;
	uint32_t family, model, stepping;
	uint32_t mtc_period; /* libipt's mtc_freq; UINT32_MAX: none */
	uint32_t max_nonturbo_ratio;
	uint32_t tsc_art_num, tsc_art_den;
	struct pevent_options pevents;
};

void raw_init(struct raw *raw);
void raw_done(struct raw *raw);
/* FILE[:OFFSET:LENGTH]@VADDR, read from the right, so that FILE may hold both signs. 0, -EINVAL,
 * -ERANGE (a number, or the end of the range, beyond 64 bits), -ENOMEM. */
int raw_add_image(struct raw *raw, const char *text);
/* FAMILY/MODEL[/STEPPING]. 0, -EINVAL or -ERANGE. */
int raw_set_cpu(struct raw *raw, const char *text);
/* EAX,EBX of CPUID leaf 0x15, as ptxed takes them. 0, -EINVAL or -ERANGE. */
int raw_set_cpuid_0x15(struct raw *raw, const char *text);
#define RAW_IMAGE_VALID "FILE[:OFFSET:LENGTH]@VADDR, numbers decimal or 0x"
#define RAW_CPU_VALID	"FAMILY/MODEL or FAMILY/MODEL/STEPPING, like 6/85/4"
#define RAW_CPUID_VALID "EAX,EBX, like 2,308"

/* The bundle, in a sealed memfd (the caller's), with an id. 0, or an exit code after a message;
 * *ret_cut: how many ranges ended beyond their file. */
int raw_compose(const struct raw *raw, int *ret_fd, size_t *ret_cut);
