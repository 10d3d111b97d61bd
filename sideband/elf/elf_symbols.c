/*
 * The symbols of functions: collected from the tables of the file itself, of the small one packed
 * within it and of the one apart, and reduced to the best at each place. Of whichever file a symbol
 * is, its address is led into the file that is mapped by that file's program headers. Part of
 * elf.c.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"

#define MAX_SYMBOLS ((size_t)4 << 20)
#define MAX_TABLES  8u
/* How much of two names is compared. */
#define MAX_UNDERSCORES 16u
#define MAX_COMPARED	256u

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

static bool is_function(const GElf_Sym *sym)
{
	unsigned type = GELF_ST_TYPE(sym->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && sym->st_shndx != SHN_UNDEF;
}

static int read_symbol(struct elf_file *f, Elf_Data *data, int index,
		       const struct elf_strings *strings)
{
	struct elf_symbol s;
	GElf_Sym sym;

	if (!gelf_getsym(data, index, &sym) || !is_function(&sym) ||
	    !elf_offset_of(f, sym.st_value, &s.offset))
		return 0;
	s.size = sym.st_size;
	s.name = elf_string(strings, sym.st_name);
	if (!s.name || s.name[0] == 0)
		return 0;
	return elf_add_candidate(f, &s, rank_of(&sym));
}

/* Of FROM, for F. */
static int read_table(struct elf_file *f, struct elf_file *from, Elf_Scn *scn, const GElf_Shdr *h)
{
	struct elf_strings strings;
	bool have = elf_have_section(from, h) && elf_strings_of(from, h->sh_link, &strings);
	Elf_Data *data = have ? elf_getdata(scn, NULL) : NULL;
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

static size_t underscores(const char *name)
{
	size_t n = 0;

	while (n < MAX_UNDERSCORES && name[n] == '_')
		n++;
	return n;
}

/* Aliases differ in underscores first (malloc, __libc_malloc), and the plainest is known best. Of
 * those that are alike for long the one that comes first may win. */
static int by_plainness(const char *a, const char *b)
{
	size_t x = underscores(a), y = underscores(b);

	if (x != y)
		return x < y ? -1 : 1;
	return strncmp(a, b, MAX_COMPARED);
}

static int by_offset(const void *a, const void *b)
{
	const struct elf_candidate *x = a, *y = b;

	if (x->symbol.offset != y->symbol.offset)
		return x->symbol.offset < y->symbol.offset ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return by_plainness(x->symbol.name, y->symbol.name);
}

static void choose_each(struct elf_file *f)
{
	for (size_t i = 0; i < f->n_candidates; i++) {
		const struct elf_candidate *c = &f->candidates[i];
		size_t n = f->n_symbols;

		if (n > 0 && f->symbols[n - 1].offset == c->symbol.offset)
			continue;
		f->ranks[n] = (uint8_t)c->rank;
		f->symbols[n] = c->symbol;
		f->n_symbols++;
	}
}

int elf_choose_symbols(struct elf_file *f)
{
	if (f->n_candidates == 0)
		return 0;
	qsort(f->candidates, f->n_candidates, sizeof(*f->candidates), by_offset);
	f->symbols = calloc(f->n_candidates, sizeof(*f->symbols));
	f->ranks = calloc(f->n_candidates, sizeof(*f->ranks));
	if (!f->symbols || !f->ranks)
		return -ENOMEM;
	choose_each(f);
	free(TAKE_PTR(f->candidates));
	f->n_candidates = f->candidates_capacity = 0;
	return 0;
}

const struct elf_symbol *elf_file_symbols(const struct elf_file *f, size_t *ret_n)
{
	*ret_n = f->n_symbols;
	return f->symbols;
}

/* --- Of a file apart --- */

static bool same_build_id(const struct elf_file *a, const struct elf_file *b)
{
	return a->build_id_size > 0 && a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

/* What was chosen is to be chosen among more. */
static int choose_again(struct elf_file *f)
{
	int r = 0;

	for (size_t i = 0; i < f->n_symbols && r == 0; i++)
		r = elf_add_candidate(f, &f->symbols[i], f->ranks[i]);
	free(TAKE_PTR(f->symbols));
	free(TAKE_PTR(f->ranks));
	f->n_symbols = 0;
	return r;
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
	r = choose_again(f);
	if (r == 0)
		r = elf_add_tables(f, f->debug);
	if (r == 0)
		r = elf_choose_symbols(f);
	return r;
}
