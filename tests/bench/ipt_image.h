/*
 * Code as sections of a libipt image, for bench_ipt.
 */
#pragma once

#include <intel-pt.h>

#include "tests/bench/code.h"

struct ipt_image {
	struct pt_image_section_cache *cache;
	struct pt_image *image;
};

/* 0 or -errno; call ipt_image_close() in either case. CODE is borrowed until then. */
int ipt_image_open(const struct code *c, struct ipt_image *ret);
void ipt_image_close(struct ipt_image *image);
