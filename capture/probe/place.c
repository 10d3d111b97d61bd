/*
 * A symbol of an ELF file, as an offset in the file.
 */
#include "capture/probe/place.h"

#include <string.h>

#include "capture/probe/elffile.h"
#include "capture/probe/probe_private.h"

#define PIECE	 65536u
#define MAX_SAME 4096u

/* The name of the symbol to find, and where that name ends in the string table. Linkers share the
 * ends of strings, so a symbol's name may begin inside another one. */
struct wanted {
	char name[PROBE_STRING];
	uint64_t offset; /* behind '+' */
	uint32_t at[MAX_SAME];
	unsigned n;
};

struct found {
	int rank; /* 0: nothing yet */
	bool twice, ifunc;
	uint64_t address, size;
};

static int parse(const char *text, struct wanted *w, char **ret_error)
{
	const char *plus = strchr(text, '+');
	size_t length = plus ? (size_t)(plus - text) : strlen(text);
	char *end = NULL;

	if (!length || length >= sizeof(w->name))
		return probe_fail(ret_error, -EINVAL, "\"%s\" is no symbol.", text);
	memcpy(w->name, text, length);
	w->name[length] = 0;
	w->offset = 0;
	w->n = 0;
	if (!plus)
		return 0;
	errno = 0;
	w->offset = strtoull(plus + 1, &end, 0);
	if (errno || *end || plus[1] < '0' || plus[1] > '9')
		return probe_fail(ret_error, -EINVAL, "\"%s\" is no offset of a symbol.", plus + 1);
	return 0;
}

/* Adds the places of the name in PIECE, which begins at OFFSET of the string table. */
static int search_piece(struct wanted *w, const char *piece, size_t size, uint64_t offset)
{
	size_t length = strlen(w->name) + 1;
	const char *p = piece;

	while ((p = memmem(p, size - (size_t)(p - piece), w->name, length))) {
		if (w->n == MAX_SAME)
			return -E2BIG;
		w->at[w->n++] = (uint32_t)(offset + (size_t)(p - piece));
		p++;
	}
	return 0;
}

static int find_names(const struct elffile *f, const Elf64_Shdr *names, struct wanted *w)
{
	/* Pieces overlap by the name without its end, so that none is found twice. */
	size_t overlap = strlen(w->name);
	CLEANUP_FREE char *piece = malloc(PIECE);
	int r = 0;

	w->n = 0;
	if (!piece)
		return -ENOMEM;
	for (uint64_t at = 0; r == 0 && at + overlap < names->sh_size; at += PIECE - overlap) {
		size_t size = MIN_OF(PIECE, names->sh_size - at);

		r = elffile_read(f, piece, size, names->sh_offset + at);
		if (r == 0)
			r = search_piece(w, piece, size, at);
	}
	return r;
}

static bool has_wanted_name(const struct wanted *w, uint32_t name)
{
	unsigned low = 0, high = w->n;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (w->at[middle] < name)
			low = middle + 1;
		else
			high = middle;
	}
	return low < w->n && w->at[low] == name;
}

/* Whether symbol N of .dynsym is an old version (bit 15: VERSYM_HIDDEN). */
static bool is_old(const struct elffile *f, const Elf64_Shdr *table, uint64_t n)
{
	const Elf64_Shdr *versions = elffile_section(f, SHT_GNU_versym, NULL);
	uint16_t version;

	return table->sh_type == SHT_DYNSYM && versions && n < versions->sh_size / 2 &&
	       elffile_section_ok(f, versions, PLACE_MAX_SYMBOLS) &&
	       elffile_read(f, &version, 2, versions->sh_offset + 2 * n) == 0 && (version & 0x8000);
}

static void consider(struct found *found, const Elf64_Sym *s, bool old)
{
	unsigned bind = ELF64_ST_BIND(s->st_info);
	int rank = old ? 1 : bind == STB_LOCAL ? 2 : bind == STB_WEAK ? 3 : 4;

	if (rank < found->rank)
		return;
	if (rank == found->rank) {
		found->twice |= s->st_value != found->address;
		return;
	}
	*found = (struct found){.rank = rank,
				.ifunc = ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC,
				.address = s->st_value,
				.size = s->st_size};
}

static bool is_code(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	return s->st_shndx != SHN_UNDEF && s->st_shndx < SHN_LORESERVE &&
	       (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC);
}

static int search_table(const struct elffile *f, const Elf64_Shdr *table, const struct wanted *w,
			struct found *found)
{
	const uint64_t n = table->sh_size / sizeof(Elf64_Sym), step = PIECE / sizeof(Elf64_Sym);
	CLEANUP_FREE Elf64_Sym *piece = malloc(step * sizeof(*piece));

	if (!piece)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i += step) {
		size_t m = MIN_OF(step, n - i);
		int r = elffile_read(f, piece, m * sizeof(*piece),
				     table->sh_offset + i * sizeof(*piece));

		if (r < 0)
			return r;
		for (size_t j = 0; j < m; j++)
			if (has_wanted_name(w, piece[j].st_name) && is_code(&piece[j]))
				consider(found, &piece[j], is_old(f, table, i + j));
	}
	return 0;
}

/* Looks into the table of TYPE, if the file has one. */
static int search(const struct elffile *f, uint32_t type, struct wanted *w, struct found *found)
{
	const Elf64_Shdr *table = elffile_section(f, type, NULL), *names;
	int r;

	if (!table)
		return 0;
	if (table->sh_link >= f->n_sections)
		return -EBADMSG;
	names = &f->sections[table->sh_link];
	if (table->sh_size > PLACE_MAX_SYMBOLS || names->sh_size > PLACE_MAX_NAMES)
		return -E2BIG;
	if (!elffile_section_ok(f, table, PLACE_MAX_SYMBOLS) ||
	    !elffile_section_ok(f, names, PLACE_MAX_NAMES))
		return -EBADMSG;
	r = find_names(f, names, w);
	return r < 0 || !w->n ? r : search_table(f, table, w, found);
}

static int judge(const struct elffile *f, const struct wanted *w, const struct found *found,
		 uint64_t *ret, char **ret_error)
{
	uint64_t address;

	if (!found->rank)
		return probe_fail(ret_error, -ENOENT, "The file has no function %s.", w->name);
	if (found->twice)
		return probe_fail(ret_error, -ENOTUNIQ, "The file has several functions %s.",
				  w->name);
	if (found->ifunc)
		return probe_fail(
			ret_error, -EOPNOTSUPP,
			"%s is an IFUNC: the file chooses the function when it is loaded.",
			w->name);
	if (w->offset && w->offset >= found->size)
		return probe_fail(ret_error, -EINVAL, "%s has %llu bytes only.", w->name,
				  (unsigned long long)found->size);
	if (__builtin_add_overflow(found->address, w->offset, &address) ||
	    elffile_offset(f, address, PF_X, ret) < 0)
		return probe_fail(ret_error, -EBADMSG, "%s is in no executable part of the file.",
				  w->name);
	return 0;
}

static int find(const struct elffile *f, struct wanted *w, uint64_t *ret, char **ret_error)
{
	struct found found = {0};
	int r = search(f, SHT_SYMTAB, w, &found);

	if (r == 0 && !found.rank)
		r = search(f, SHT_DYNSYM, w, &found);
	if (r < 0)
		return probe_fail(ret_error, r, "The symbols of the file cannot be read: %s.",
				  strerror(-r));
	return judge(f, w, &found, ret, ret_error);
}

int place_symbol(int fd, const char *text, uint64_t *ret, char **ret_error)
{
	CLEANUP_FREE struct wanted *w = malloc(sizeof(*w));
	struct elffile f;
	int r;

	if (!w)
		return -ENOMEM;
	r = parse(text, w, ret_error);
	if (r < 0)
		return r;
	r = elffile_open(fd, &f);
	if (r < 0)
		return probe_fail(ret_error, r, "The file is no ELF file for x86-64: %s.",
				  strerror(-r));
	r = find(&f, w, ret, ret_error);
	elffile_close(&f);
	return r;
}
