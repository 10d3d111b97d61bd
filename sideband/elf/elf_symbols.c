/*
 * Function symbols: of the file itself, of the file packed within it, and of the debug file apart.
 *
 * All are collected as candidates, and the best at each offset becomes a symbol. The program
 * headers of the mapped file lead from every symbol's address to an offset, whichever file the
 * symbol comes from.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <lzma.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"

#define MAX_SYMBOLS ((size_t)4 << 20)
#define MAX_TABLES  8u
/* How much of two names is compared. */
#define MAX_UNDERSCORES 16u
#define MAX_COMPARED	256u
#define MAX_UNPACKED	(UINT64_C(64) << 20)
/* xz packs symbol tables to a third to a tenth of their size. */
#define MAX_RATIO 64u
/* The memory of the unpacker itself: data packed by "xz -9" needs 65 MiB. */
#define MAX_DECODER_BYTES (UINT64_C(68) << 20)
#define FIRST_BYTES	  ((size_t)64 << 10)

/* --- Symbol tables --- */

int elf_add_candidate(struct elf_file *f, const struct elf_symbol *symbol, unsigned rank)
{
	if (f->n_candidates == MAX_SYMBOLS)
		return 0;
	if (ARRAY_RESERVE(f->candidates, f->candidates_capacity, f->n_candidates + 1) < 0)
		return -ENOMEM;
	f->candidates[f->n_candidates++] = (struct elf_candidate){*symbol, rank};
	return 0;
}

static unsigned rank_of(const GElf_Sym *sym)
{
	unsigned rank;

	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE: rank = 0; break;
	case STB_WEAK: rank = 1; break;
	default: rank = 2;
	}
	return 2 * rank + (sym->st_size == 0);
}

/* Adds symbol number INDEX of the table DATA if it is a function with a name. */
static int read_symbol(struct elf_file *f, Elf_Data *data, int index,
		       const struct elf_strings *strings)
{
	struct elf_symbol s;
	unsigned type;
	GElf_Sym sym;

	if (!gelf_getsym(data, index, &sym))
		return 0;
	type = GELF_ST_TYPE(sym.st_info);
	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym.st_shndx == SHN_UNDEF ||
	    !elf_offset_of(f, sym.st_value, &s.offset))
		return 0;
	s.size = sym.st_size;
	s.name = elf_string(strings, sym.st_name);
	if (!s.name || s.name[0] == 0)
		return 0;
	return elf_add_candidate(f, &s, rank_of(&sym));
}

/* Adds the symbols of one table of FROM to F. */
static int read_table(struct elf_file *f, struct elf_file *from, Elf_Scn *scn, const GElf_Shdr *h)
{
	struct elf_strings strings;
	bool brought = elf_bring_section(from, h) && elf_bring_strings(from, h->sh_link, &strings);
	Elf_Data *data = brought ? elf_getdata(scn, NULL) : NULL;
	size_t entry = gelf_fsize(from->elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t n = data && entry ? MIN_OF(data->d_size / entry, MAX_SYMBOLS) : 0;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = read_symbol(f, data, (int)i, &strings);
	return r;
}

int elf_add_tables(struct elf_file *f, struct elf_file *from)
{
	unsigned tables = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr h;
	int r;

	while (tables < MAX_TABLES && (scn = elf_nextscn(from->elf, scn))) {
		if (!gelf_getshdr(scn, &h) || (h.sh_type != SHT_SYMTAB && h.sh_type != SHT_DYNSYM))
			continue;
		tables++;
		r = read_table(f, from, scn, &h);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- The packed file ---
 *
 * Some distributions pack a small ELF file by xz into .gnu_debugdata of a stripped file
 * (MiniDebugInfo). It has the symbols of functions that .dynsym lacks. Its size is limited before
 * it is unpacked, and only its symbol tables are read, so a packed file within it does not count.
 */

struct unpacked {
	uint8_t *bytes;
	size_t size, capacity, most;
};

/* False: the limit is reached, or no memory. */
static bool grow(struct unpacked *u)
{
	size_t capacity = u->capacity ? 2 * u->capacity : FIRST_BYTES;

	capacity = MIN_OF(capacity, u->most);
	if (capacity == 0 || ARRAY_FIT(u->bytes, capacity) < 0)
		return false;
	u->capacity = capacity;
	return true;
}

/* Unpacks all, or returns false. */
static bool unpack(lzma_stream *z, struct unpacked *u)
{
	lzma_ret r = LZMA_OK;

	if (lzma_stream_decoder(z, MAX_DECODER_BYTES, 0) != LZMA_OK)
		return false;
	while (r == LZMA_OK) {
		if (u->size == u->capacity && !grow(u))
			return false;
		z->next_out = u->bytes + u->size;
		z->avail_out = u->capacity - u->size;
		r = lzma_code(z, LZMA_FINISH);
		u->size = u->capacity - z->avail_out;
	}
	return r == LZMA_STREAM_END;
}

/* RET->bytes NULL: the section cannot be unpacked within its limits. */
static void unpack_section(const struct elf_file *f, const GElf_Shdr *h, struct unpacked *ret)
{
	uint64_t most = MIN_OF(h->sh_size * MAX_RATIO, MAX_UNPACKED);
	lzma_stream z = LZMA_STREAM_INIT;

	*ret = (struct unpacked){.most = (size_t)(f->room ? MIN_OF(most, *f->room) : most)};
	z.next_in = f->bytes + h->sh_offset;
	z.avail_in = (size_t)h->sh_size;
	if (unpack(&z, ret)) {
		(void)ARRAY_FIT(ret->bytes, ret->size); /* gives the rest back */
		ret->capacity = ret->size;
	} else {
		free(ret->bytes);
		*ret = (struct unpacked){0};
	}
	lzma_end(&z);
}

static bool find_debugdata(struct elf_file *f, GElf_Shdr *ret)
{
	Elf_Scn *scn = NULL;

	if (!elf_bring_section_names(f))
		return false;
	while ((scn = elf_nextscn(f->elf, scn)))
		if (gelf_getshdr(scn, ret) && ret->sh_type == SHT_PROGBITS &&
		    strcmp(elf_section_name(f, ret), ".gnu_debugdata") == 0)
			return ret->sh_offset <= f->size &&
			       ret->sh_size <= f->size - ret->sh_offset &&
			       elf_bring_section(f, ret);
	return false;
}

int elf_add_mini(struct elf_file *f)
{
	struct unpacked u;
	GElf_Shdr h;
	int r;

	if (!find_debugdata(f, &h))
		return 0;
	unpack_section(f, &h, &u);
	if (!u.bytes)
		return 0;
	f->mini_bytes = u.bytes;
	f->mini_room = u.size;
	if (f->room)
		*f->room -= u.size;
	r = elf_file_open(&(struct elf_bytes){.bytes = u.bytes, .size = u.size}, ELF_BUILD_ID,
			  &f->mini);
	if (r == 0)
		r = elf_add_tables(f, f->mini);
	else
		elf_drop_mini(f);
	return MIN_OF(r, 0);
}

void elf_drop_mini(struct elf_file *f)
{
	elf_file_free(TAKE_PTR(f->mini));
	free(TAKE_PTR(f->mini_bytes));
	if (f->room)
		*f->room += f->mini_room;
	f->mini_room = 0;
}

/* --- The best at each offset ---
 *
 * A symbol without a size takes the size of the next best one that has a size. An entry of the
 * unwind table that begins within a symbol with a size is a part of that function: code written by
 * hand often has no unwind information for its first instructions. */

static size_t underscores(const char *name)
{
	size_t n = 0;

	while (n < MAX_UNDERSCORES && name[n] == '_')
		n++;
	return n;
}

/* Best first at each offset. Aliases differ in underscores first (malloc, __libc_malloc), and the
 * name with the fewest is known best. Names that are equal for MAX_COMPARED bytes count as equal.
 */
static int by_offset(const void *a, const void *b)
{
	const struct elf_candidate *x = a, *y = b;
	size_t x_underscores, y_underscores;

	if (x->symbol.offset != y->symbol.offset)
		return x->symbol.offset < y->symbol.offset ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->rank == ELF_RANK_UNNAMED)
		return x->symbol.size < y->symbol.size ? -1 : x->symbol.size > y->symbol.size;
	x_underscores = underscores(x->symbol.name);
	y_underscores = underscores(y->symbol.name);
	if (x_underscores != y_underscores)
		return x_underscores < y_underscores ? -1 : 1;
	return strncmp(x->symbol.name, y->symbol.name, MAX_COMPARED);
}

static int by_offset_of(const void *a, const void *b)
{
	return by_offset(*(const struct elf_candidate *const *)a,
			 *(const struct elf_candidate *const *)b);
}

/* Sorts N candidates to TO. Pointers are sorted, as they are fast to move. 0 or -ENOMEM. */
static int sort_to(const struct elf_candidate *from, size_t n, struct elf_candidate *to)
{
	const struct elf_candidate **order = calloc(n + 1, sizeof(struct elf_candidate *));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = &from[i];
	qsort(order, n, sizeof(struct elf_candidate *), by_offset_of);
	for (size_t i = 0; i < n; i++)
		to[i] = *order[i];
	free(order);
	return 0;
}

/* Sorts the candidates as two lists, of which *RET is the length of the first. Entries of an unwind
 * table mostly are in order, except for parts of functions that lie apart: the first list has
 * entries that need not be compared with more than one other. 0 or -ENOMEM. */
static int sort_candidates(struct elf_file *f, size_t *ret)
{
	struct elf_candidate *others = calloc(f->n_candidates, sizeof(*others)), *all;
	size_t n = 0, n_others = 0;
	int r;

	if (!others)
		return -ENOMEM;
	all = f->candidates;
	for (size_t i = 0; i < f->n_candidates; i++) {
		bool follows = all[i].rank == ELF_RANK_UNNAMED &&
			       (n == 0 || by_offset(&all[n - 1], &all[i]) <= 0);

		if (follows)
			all[n++] = all[i];
		else
			others[n_others++] = all[i];
	}
	r = sort_to(others, n_others, all + n);
	free(others);
	*ret = n;
	return r;
}

int elf_choose_symbols(struct elf_file *f)
{
	size_t n_first, first = 0, second;
	uint64_t end = 0; /* of the symbols with names so far */

	if (f->n_candidates == 0)
		return 0;
	if (sort_candidates(f, &n_first) < 0)
		return -ENOMEM;
	second = n_first;
	f->symbols = calloc(f->n_candidates, sizeof(*f->symbols));
	f->ranks = calloc(f->n_candidates, sizeof(*f->ranks));
	if (!f->symbols || !f->ranks)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_candidates; i++) {
		bool next = first < n_first &&
			    (second == f->n_candidates ||
			     by_offset(&f->candidates[first], &f->candidates[second]) <= 0);
		const struct elf_candidate *c = &f->candidates[next ? first++ : second++];
		size_t n = f->n_symbols;

		if (n > 0 && f->symbols[n - 1].offset == c->symbol.offset) {
			if (f->symbols[n - 1].size == 0)
				f->symbols[n - 1].size = c->symbol.size;
			continue;
		}
		if (c->rank == ELF_RANK_UNNAMED && c->symbol.offset < end)
			continue;
		if (c->rank != ELF_RANK_UNNAMED && c->symbol.size <= UINT64_MAX - c->symbol.offset)
			end = MAX_OF(end, c->symbol.offset + c->symbol.size);
		f->ranks[n] = (uint8_t)c->rank;
		f->symbols[n] = c->symbol;
		f->n_symbols++;
	}
	free(TAKE_PTR(f->candidates));
	f->n_candidates = f->candidates_capacity = 0;
	return 0;
}

const struct elf_symbol *elf_file_symbols(const struct elf_file *f, size_t *ret_n)
{
	*ret_n = f->n_symbols;
	return f->symbols;
}

/* --- The debug file apart --- */

static bool same_build_id(const struct elf_file *a, const struct elf_file *b)
{
	return a->build_id_size > 0 && a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

int elf_file_add_names(struct elf_file *f, const struct elf_bytes *debug)
{
	int r;

	assert(!f->debug);
	r = elf_file_open(debug, ELF_BUILD_ID, &f->debug);
	if (r != 0)
		return r;
	if (!same_build_id(f, f->debug)) {
		elf_file_free(TAKE_PTR(f->debug));
		return ELF_NOT;
	}
	/* The present symbols are candidates again, beside those of the debug file. */
	for (size_t i = 0; i < f->n_symbols && r == 0; i++)
		r = elf_add_candidate(f, &f->symbols[i], f->ranks[i]);
	free(TAKE_PTR(f->symbols));
	free(TAKE_PTR(f->ranks));
	f->n_symbols = 0;
	if (r < 0)
		return r;
	r = elf_add_tables(f, f->debug);
	if (r < 0)
		return r;
	return elf_choose_symbols(f);
}
