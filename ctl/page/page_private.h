/*
 * What the files of this room share: the compressed block, and the parts of the page that make
 * joins from web/.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

/* The page in front of the block and behind it. */
extern const char page_web_head[];
extern const char page_web_tail[];

/* Bytes in, zlib and base64 out. */
struct pack {
	int fd;
	int error; /* 0 or -errno; stays */
	z_stream deflate;
	size_t n_in, n_packed;
	uint8_t in[32768];
	uint8_t packed[49152]; /* divisible by 3: base64 needs no padding before the end */
	char text[65537];      /* a line: packed in base64, and a newline */
};

/* 0 or -ENOMEM. pack_done() also after a failure of anything but pack_init(). */
int pack_init(struct pack *k, int fd);
void pack_done(struct pack *k);
void pack_byte(struct pack *k, uint8_t byte);
void pack_number(struct pack *k, uint64_t v);
void pack_two(struct pack *k, uint64_t v); /* 64 bits as two numbers */
void pack_text(struct pack *k, const char *text);
/* Writes what is left. 0 or -errno. */
int pack_finish(struct pack *k);
