/*
 * Fuzzes the demangler with untrusted names. Invariants: the result is not empty, not too long, and
 * ends with the name's "@" suffix where there is one; no memory is leaked. Set a timeout to find
 * slow names.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sideband/symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1), *text;
	const char *added;

	assert(name);
	memcpy(name, data, size);
	name[size] = 0;
	text = demangle(name);
	added = strchr(name, '@');
	if (text) {
		assert(name[0] == '_');
		assert(text[0] != 0 && strlen(text) <= DEMANGLE_MAX_TEXT);
		assert(!added || strlen(added) <= strlen(text));
		assert(!added || strcmp(text + strlen(text) - strlen(added), added) == 0);
	}
	free(text);
	free(name);
	return 0;
}
