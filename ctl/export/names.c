/*
 * Names from traced programs: made safe, and kept once each.
 */
#include "ctl/export/export_private.h"

#include "ctl/base/say.h"

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

/* Finds TEXT, which has HASH, among the names. */
static bool find(const struct names *s, const char *text, uint32_t hash, uint32_t *ret)
{
	uint32_t step = 0, number;

	while (slots_next(&s->slots, hash, &step, &number))
		if (strcmp(s->list[number], text) == 0) {
			*ret = number;
			return true;
		}
	return false;
}

int names_init(struct names *s)
{
	uint32_t none;
	int r;

	*s = (struct names){0};
	r = slots_init(&s->slots);
	if (r == 0)
		r = names_add(s, "", &none);
	return r;
}

void names_done(struct names *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->list[i]);
	free(s->list);
	slots_done(&s->slots);
	*s = (struct names){0};
}

int names_add(struct names *s, const char *text, uint32_t *ret)
{
	char clean[EXPORT_MAX_NAME + 1];
	CLEANUP_FREE char *copy = NULL;
	uint32_t hash;
	size_t size;
	int r;

	names_clean(text, clean);
	size = strlen(clean);
	hash = slots_hash(&s->slots, clean, size);
	if (find(s, clean, hash, ret))
		return 0;
	if (s->bytes + size > EXPORT_MAX_NAMES || s->n == UINT32_MAX / 4)
		return -E2BIG;
	if (ARRAY_RESERVE(s->list, s->capacity, s->n + 1) < 0)
		return -ENOMEM;
	copy = strdup(clean);
	if (!copy)
		return -ENOMEM;
	r = slots_add(&s->slots, hash, s->n);
	if (r < 0)
		return r;
	s->bytes += size;
	s->list[s->n] = TAKE_PTR(copy);
	*ret = s->n++;
	return 0;
}
