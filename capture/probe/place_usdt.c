/*
 * Static probes of an ELF file, as offsets in the file.
 *
 * The format is that of SystemTap's sys/sdt.h: ELF notes with owner "stapsdt" and type 3 in the
 * section .note.stapsdt. Each holds three addresses (place, .stapsdt.base, semaphore) and three
 * strings (provider, name, arguments). A prelink moves the section .stapsdt.base with the places,
 * but not the notes.
 */
#include <string.h>

#include "capture/probe/elffile.h"
#include "capture/probe/place.h"
#include "capture/probe/probe_private.h"

#define NOTE_TYPE  3
#define NOTE_OWNER "stapsdt"

struct search {
	const struct elffile *file;
	const char *provider, *name;
	uint64_t base; /* address of .stapsdt.base; 0: no such section */
	struct place_usdt *ret;
	size_t n, max;
};

/* The string at *AT of a description of SIZE bytes; *AT moves behind it. NULL: it has no end. */
static const char *next_string(const char *text, size_t size, size_t *at)
{
	const char *begin = text + *at, *end;

	end = *at < size ? memchr(begin, 0, size - *at) : NULL;
	if (!end)
		return NULL;
	*at = (size_t)(end - text) + 1;
	return begin;
}

static int add_place(struct search *s, const uint64_t addresses[3])
{
	uint64_t moved = s->base && addresses[1] ? s->base - addresses[1] : 0;
	struct place_usdt place = {0};

	if (s->n == s->max)
		return -E2BIG;
	if (elffile_offset(s->file, addresses[0] + moved, PF_X, &place.offset) < 0)
		return -EBADMSG;
	if (addresses[2] &&
	    elffile_offset(s->file, addresses[2] + moved, PF_W, &place.semaphore) < 0)
		return -EBADMSG;
	s->ret[s->n++] = place;
	return 0;
}

static int read_note(struct search *s, const char *text, size_t size)
{
	size_t at = 3 * sizeof(uint64_t);
	const char *provider, *name;
	uint64_t addresses[3];

	if (size < at)
		return -EBADMSG;
	memcpy(addresses, text, at);
	provider = next_string(text, size, &at);
	name = provider ? next_string(text, size, &at) : NULL;
	if (!name)
		return -EBADMSG;
	if (strcmp(provider, s->provider) != 0 || strcmp(name, s->name) != 0)
		return 0;
	return add_place(s, addresses);
}

static size_t round4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static int read_notes(struct search *s, const char *notes, size_t size)
{
	for (size_t at = 0; at < size;) {
		Elf64_Nhdr h;
		size_t name, text, end;

		if (size - at < sizeof(h))
			return -EBADMSG;
		memcpy(&h, notes + at, sizeof(h));
		name = at + sizeof(h);
		text = name + round4(h.n_namesz);
		end = text + round4(h.n_descsz);
		/* The last note may lack its padding. */
		if (text > size || h.n_descsz > size - text)
			return -EBADMSG;
		if (h.n_type == NOTE_TYPE && h.n_namesz == sizeof(NOTE_OWNER) &&
		    memcmp(notes + name, NOTE_OWNER, sizeof(NOTE_OWNER)) == 0) {
			int r = read_note(s, notes + text, h.n_descsz);

			if (r < 0)
				return r;
		}
		at = end;
	}
	return 0;
}

static int search_file(struct search *s)
{
	const Elf64_Shdr *notes = elffile_section(s->file, SHT_NOTE, ".note.stapsdt");
	const Elf64_Shdr *base = elffile_section(s->file, SHT_PROGBITS, ".stapsdt.base");
	CLEANUP_FREE char *bytes = NULL;
	int r;

	if (!notes)
		return 0;
	if (!elffile_section_ok(s->file, notes, PLACE_MAX_NOTES))
		return -EBADMSG;
	s->base = base ? base->sh_addr : 0;
	bytes = malloc(notes->sh_size + 1);
	if (!bytes)
		return -ENOMEM;
	r = elffile_read(s->file, bytes, notes->sh_size, notes->sh_offset);
	return r < 0 ? r : read_notes(s, bytes, notes->sh_size);
}

static int search_fd(int fd, struct search *s, const char *text, char **ret_error)
{
	struct elffile f;
	int r = elffile_open(fd, &f);

	if (r < 0)
		return probe_fail(ret_error, r, "The file is no ELF file for x86-64: %s.",
				  strerror(-r));
	s->file = &f;
	r = search_file(s);
	elffile_close(&f);
	if (r < 0)
		return probe_fail(ret_error, r, "The static probes of the file cannot be read: %s.",
				  strerror(-r));
	if (!s->n)
		return probe_fail(ret_error, -ENOENT, "The file has no static probe %s.", text);
	return (int)s->n;
}

int place_usdt(int fd, const char *text, struct place_usdt *ret, size_t max, char **ret_error)
{
	CLEANUP_FREE char *provider = strdup(text);
	struct search s = {.ret = ret, .max = max};
	char *colon = provider ? strchr(provider, ':') : NULL;

	if (!provider)
		return -ENOMEM;
	if (!colon || colon == provider || !colon[1])
		return probe_fail(ret_error, -EINVAL, "\"%s\" is not PROVIDER:NAME.", text);
	*colon = 0;
	s.provider = provider;
	s.name = colon + 1;
	return search_fd(fd, &s, text, ret_error);
}
