/*
 * Reads and writes inputs of the differential fuzzer as text (to keep findings), finds code by
 * address, and makes random numbers.
 *
 * Lines of the text: "cpu FAMILY MODEL", "trace HEX", "code ADDRESS HEX", each any number of times.
 * Lines that begin with '#' are comments.
 */
#include "tests/oracle/diff_input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define LINE_BYTES 32u

uint64_t diff_random(struct diff_random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

size_t diff_below(struct diff_random *r, size_t n)
{
	return (size_t)(diff_random(r) % n);
}

static int by_address(const void *a, const void *b)
{
	const struct diff_piece *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

void diff_input_order(struct diff_input *in)
{
	size_t n = 0;

	if (in->n_pieces > 1)
		qsort(in->pieces, in->n_pieces, sizeof(in->pieces[0]), by_address);
	for (size_t i = 0; i < in->n_pieces; i++) {
		struct diff_piece p = in->pieces[i];
		const struct diff_piece *before = n > 0 ? &in->pieces[n - 1] : NULL;
		uint64_t end = before != NULL ? before->address + before->size : 0;

		p.size = (size_t)MIN_OF((uint64_t)p.size, -p.address - 1);
		if (before != NULL && p.address < end) {
			uint64_t cut = MIN_OF(end - p.address, (uint64_t)p.size);

			p.address += cut;
			p.bytes += cut;
			p.size -= (size_t)cut;
		}
		if (p.size > 0)
			in->pieces[n++] = p;
	}
	in->n_pieces = n;
}

const struct diff_piece *diff_input_find(const struct diff_input *in, uint64_t address)
{
	size_t low = 0, high = in->n_pieces;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (in->pieces[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address - in->pieces[low - 1].address >= in->pieces[low - 1].size)
		return NULL;
	return &in->pieces[low - 1];
}

static size_t read_hex(const char *text, uint8_t *to, size_t max)
{
	size_t n = 0;
	unsigned int byte;

	while (n < max && sscanf(text, "%2x", &byte) == 1) {
		to[n++] = (uint8_t)byte;
		text += strspn(text, " ");
		text += 2;
	}
	return n;
}

static void read_code(struct diff_input *in, const char *text)
{
	unsigned long long address;
	size_t size;
	int at;

	if (sscanf(text, "%llx %n", &address, &at) != 1 || in->n_pieces == DIFF_PIECES_MAX)
		return;
	size = strlen(text + at) / 2;
	if (in->n_own == 0 ||
	    in->pieces[in->n_pieces - 1].address + in->pieces[in->n_pieces - 1].size != address) {
		if (in->n_own == ARRAY_SIZE(in->own_bytes))
			return;
		in->pieces[in->n_pieces++] =
			(struct diff_piece){in->own_bytes[in->n_own++], address, 0};
	}
	{
		struct diff_piece *p = &in->pieces[in->n_pieces - 1];

		size = MIN_OF(size, sizeof(in->own_bytes[0]) - p->size);
		p->size += read_hex(text + at, in->own_bytes[in->n_own - 1] + p->size, size);
	}
}

bool diff_input_read(struct diff_input *in, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[4096];

	*in = (struct diff_input){0};
	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "trace ", 6) == 0)
			in->size +=
				read_hex(line + 6, in->trace + in->size, DIFF_TRACE_MAX - in->size);
		else if (strncmp(line, "code ", 5) == 0)
			read_code(in, line + 5);
		else
			sscanf(line, "cpu %" SCNu32 " %" SCNu32, &in->family, &in->model);
	}
	fclose(f);
	diff_input_order(in);
	return in->size > 0;
}

static void write_hex(FILE *f, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%02x", bytes[i]);
	fputc('\n', f);
}

void diff_input_write(const struct diff_input *in, const char *path, const char *comment)
{
	FILE *f = fopen(path, "w");

	if (f == NULL) {
		perror(path);
		return;
	}
	fprintf(f, "# %s\ncpu %" PRIu32 " %" PRIu32 "\n", comment, in->family, in->model);
	for (size_t i = 0; i < in->size; i += LINE_BYTES) {
		fputs("trace ", f);
		write_hex(f, in->trace + i, MIN_OF(LINE_BYTES, in->size - i));
	}
	for (size_t p = 0; p < in->n_pieces; p++)
		for (size_t i = 0; i < in->pieces[p].size; i += LINE_BYTES) {
			fprintf(f, "code %" PRIx64 " ", in->pieces[p].address + i);
			write_hex(f, in->pieces[p].bytes + i,
				  MIN_OF(LINE_BYTES, in->pieces[p].size - i));
		}
	fclose(f);
}
