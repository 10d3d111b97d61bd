/*
 * Reads seeds of the differential fuzzer: hand-written traces and traces from real hardware
 * (PTSNAP_CORPUS; each folder's NOTES.md says which code lies where), and folders that bundle_pages
 * wrote.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "tests/oracle/diff_input.h"

#define PAGE 4096u

static void die(const char *what)
{
	perror(what);
	exit(2);
}

/* NULL: the file cannot be opened. */
static uint8_t *read_file(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *bytes;

	if (f == NULL)
		return NULL;
	if (fstat(fileno(f), &st) != 0)
		die(path);
	bytes = malloc((size_t)st.st_size + 1);
	if (bytes == NULL || fread(bytes, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		die(path);
	fclose(f);
	bytes[st.st_size] = 0;
	*ret_size = (size_t)st.st_size;
	return bytes;
}

static struct diff_seed *add_seed(struct diff_seeds *s, const char *name)
{
	s->list = reallocarray(s->list, s->n + 1, sizeof(*s->list));
	if (s->list == NULL)
		die("memory");
	s->list[s->n] = (struct diff_seed){0};
	snprintf(s->list[s->n].name, sizeof(s->list[s->n].name), "%s", name);
	return &s->list[s->n++];
}

static void add_piece(struct diff_seed *seed, const uint8_t *bytes, uint64_t address, size_t size)
{
	if (seed->n_pieces == DIFF_PIECES_MAX)
		return;
	seed->pieces = reallocarray(seed->pieces, seed->n_pieces + 1, sizeof(*seed->pieces));
	if (seed->pieces == NULL)
		die("memory");
	seed->pieces[seed->n_pieces++] = (struct diff_piece){bytes, address, size};
}

/* A page whose address has low bits set was not recorded: skip. */
static void add_pages(struct diff_seed *seed, const char *folder)
{
	char path[4096];
	uint8_t *addresses, *dump;
	size_t n, size;

	snprintf(path, sizeof(path), "%s/pages.addr", folder);
	addresses = read_file(path, &n);
	snprintf(path, sizeof(path), "%s/pages.dump", folder);
	dump = read_file(path, &size);
	if (addresses == NULL || dump == NULL)
		die(path);
	for (size_t i = 0; i < n / 8 && (i + 1) * PAGE <= size; i++) {
		uint64_t address;

		memcpy(&address, addresses + 8 * i, 8);
		if ((address & (PAGE - 1)) == 0)
			add_piece(seed, dump + i * PAGE, address, PAGE);
	}
	free(addresses);
}

static void add_folder(struct diff_seeds *s, const char *folder)
{
	struct diff_seed *seed = add_seed(s, folder);
	char path[4096];

	snprintf(path, sizeof(path), "%s/pt.bin", folder);
	seed->trace = read_file(path, &seed->size);
	if (seed->trace == NULL)
		die(path);
	add_pages(seed, folder);
	seed->family = 6;
	seed->model = 0x5e;
}

static void add_binary(struct diff_seeds *s, const char *corpus, const char *name, const char *file,
		       size_t offset, size_t length, uint64_t address)
{
	struct diff_seed *seed = add_seed(s, name);
	char path[4096];
	uint8_t *bytes;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s/pt.bin", corpus, name);
	seed->trace = read_file(path, &seed->size);
	snprintf(path, sizeof(path), "%s/%s/%s", corpus, name, file);
	bytes = read_file(path, &size);
	if (seed->trace == NULL || bytes == NULL || offset > size)
		die(path);
	add_piece(seed, bytes + offset, address, MIN_OF(length, size - offset));
	seed->family = 6;
	seed->model = 0x5e;
}

/* Parses a line of INDEX.tsv: NAME, "org=0x...", ... */
static void add_ptt(struct diff_seeds *s, const char *corpus, const char *line)
{
	char name[100], path[4096];
	unsigned long long org;
	struct diff_seed *seed;
	uint8_t *bytes;
	size_t size;

	if (sscanf(line, "%99[^\t]\torg=%llx", name, &org) != 2)
		return;
	seed = add_seed(s, name);
	snprintf(path, sizeof(path), "%s/libipt-ptt/%s.pt", corpus, name);
	seed->trace = read_file(path, &seed->size);
	snprintf(path, sizeof(path), "%s/libipt-ptt/%s.bin", corpus, name);
	bytes = read_file(path, &size);
	if (seed->trace != NULL && seed->size > 0 && bytes != NULL && size > 0) {
		add_piece(seed, bytes, org, size);
		return;
	}
	free(bytes); /* there is no code */
	if (seed->trace != NULL && seed->size > 0)
		return;
	free(seed->trace);
	s->n--;
}

static void add_suite(struct diff_seeds *s, const char *corpus)
{
	char path[4096], *line, *rest = NULL;
	uint8_t *index;
	size_t size;

	snprintf(path, sizeof(path), "%s/libipt-ptt/INDEX.tsv", corpus);
	index = read_file(path, &size);
	if (index == NULL)
		die(path);
	for (line = strtok_r((char *)index, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
		add_ptt(s, corpus, line);
	free(index);
}

void diff_seeds_load(struct diff_seeds *s, const char *corpus, char **folders, size_t n)
{
	static const char *const paged[] = {
		"libxdc-foo",	      "libxdc-unzip",	  "libxdc-dyn_test",
		"libxdc-icelake_tip", "arcus/hello",	  "arcus/cve-2004-0597-poc",
		"arcus/ovf-01-poc",   "arcus/ovf-02-ben", "arcus/ovf-02-poc",
	};
	char path[4096];

	if (corpus != NULL) {
		for (size_t i = 0; i < ARRAY_SIZE(paged); i++) {
			snprintf(path, sizeof(path), "%s/%s", corpus, paged[i]);
			add_folder(s, path);
		}
		add_binary(s, corpus, "dynamorio-hello", "hello", 0x1000, 0x27, 0x401000);
		add_binary(s, corpus, "hase-control_flow-0404", "binary", 0, 0x1000, 0x400000);
		add_binary(s, corpus, "hase-loopy-0514-snapshot", "binary", 0, 0x6c0, 0x400000);
		add_suite(s, corpus);
	}
	for (size_t i = 0; i < n; i++)
		add_folder(s, folders[i]);
}
