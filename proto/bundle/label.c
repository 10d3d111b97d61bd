/*
 * Labels: checked when they are added, so that their users need no checks.
 */
#include "proto/bundle/label.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "proto/base.h"

/* Returns the place of KEY in L, and whether L has the key. */
static size_t find(const struct labels *l, const char *key, bool *ret_found)
{
	size_t i = 0;

	while (i < l->n && strcmp(l->list[i].key, key) < 0)
		i++;
	*ret_found = i < l->n && strcmp(l->list[i].key, key) == 0;
	return i;
}

bool label_is_plain(const char *text)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return false;
	return true;
}

int labels_add(struct labels *l, const char *key, const char *value)
{
	size_t length = 0, i;
	bool found;

	assert(l->n <= LABEL_MAX);
	while (isalnum((unsigned char)key[length]) || key[length] == '_')
		length++;
	if (length == 0 || length >= LABEL_KEY_SIZE || key[length] ||
	    isdigit((unsigned char)*key) || strlen(value) >= LABEL_VALUE_SIZE ||
	    !label_is_plain(value))
		return -EINVAL;
	i = find(l, key, &found);
	if (!found && l->n == LABEL_MAX)
		return -E2BIG;
	if (!found) {
		memmove(&l->list[i + 1], &l->list[i], (l->n - i) * sizeof(l->list[0]));
		l->n++;
	}
	strcpy(l->list[i].key, key);
	strcpy(l->list[i].value, value);
	return 0;
}

int labels_parse(struct labels *l, const char *text)
{
	const char *equals = strchr(text, '=');
	char key[LABEL_KEY_SIZE];
	size_t n = equals ? (size_t)(equals - text) : 0;

	if (n == 0 || n >= sizeof(key))
		return -EINVAL;
	memcpy(key, text, n);
	key[n] = '\0';
	return labels_add(l, key, equals + 1);
}

const char *labels_get(const struct labels *l, const char *key)
{
	bool found;
	size_t i = find(l, key, &found);

	return found ? l->list[i].value : NULL;
}
