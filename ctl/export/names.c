/*
 * Names from traced programs: made safe, and kept once each.
 */
#include "ctl/export/export_private.h"

#include "ctl/base/say.h"

#define FIRST_SLOTS 1024u

void names_clean(const char *text, char to[static EXPORT_MAX_NAME + 1])
{
	size_t size = strlen(text), used = 0, n;
	char shown[TEXT_SHOWN_MAX];

	for (; size > 0; text += n, size -= n) {
		size_t one;

		n = text_show_one(text, size, shown);
		one = strlen(shown);
		if (one > EXPORT_MAX_NAME - 1 - used) {
			to[used++] = '~'; /* cut */
			break;
		}
		memcpy(to + used, shown, one);
		used += one;
	}
	to[used] = '\0';
}

/* FNV-1a. */
static uint32_t hash(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619u;
	return h;
}

/* Where TEXT is in the table, or the free slot for it. */
static uint32_t find(const struct names *s, const char *text)
{
	uint32_t at = hash(text) & (s->n_slots - 1);

	while (s->slots[at] && strcmp(s->list[s->slots[at] - 1], text) != 0)
		at = (at + 1) & (s->n_slots - 1);
	return at;
}

/* Makes a table of N slots. */
static int resize(struct names *s, uint32_t n)
{
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(s->slots);
	s->slots = slots;
	s->n_slots = n;
	for (uint32_t i = 0; i < s->n; i++)
		s->slots[find(s, s->list[i])] = i + 1;
	return 0;
}

int names_init(struct names *s)
{
	uint32_t none;
	int r;

	*s = (struct names){0};
	r = resize(s, FIRST_SLOTS);
	if (r == 0)
		r = names_add(s, "", &none);
	return r;
}

void names_done(struct names *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->list[i]);
	free(s->list);
	free(s->slots);
	*s = (struct names){0};
}

int names_add(struct names *s, const char *text, uint32_t *ret)
{
	char clean[EXPORT_MAX_NAME + 1];
	uint32_t at;
	char *copy;

	names_clean(text, clean);
	at = find(s, clean);
	if (s->slots[at]) {
		*ret = s->slots[at] - 1;
		return 0;
	}
	if (s->bytes + strlen(clean) > EXPORT_MAX_NAMES || s->n == UINT32_MAX / 4)
		return -E2BIG;
	if (ARRAY_RESERVE(s->list, s->capacity, s->n + 1) < 0)
		return -ENOMEM;
	copy = strdup(clean);
	if (!copy)
		return -ENOMEM;
	s->bytes += strlen(clean);
	s->list[s->n++] = copy;
	s->slots[at] = s->n;
	*ret = s->n - 1;
	return s->n > s->n_slots / 2 ? resize(s, 2 * s->n_slots) : 0;
}
