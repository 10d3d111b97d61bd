/*
 * Fuzzes the parser of /proc/PID/maps. Invariant: an accepted line is a mapping whose path lies
 * within the line.
 */
#include "capture/proc/procmaps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at < size;) {
		const uint8_t *newline = memchr(bytes + at, '\n', size - at);
		size_t length = newline != NULL ? (size_t)(newline - bytes) - at : size - at;
		char *line = malloc(length + 1);
		struct procmaps_entry entry;

		memcpy(line, bytes + at, length);
		line[length] = '\0';
		if (procmaps_parse(line, &entry) == 0) {
			assert(entry.begin < entry.end && entry.prot <= 7);
			assert(entry.path >= line &&
			       entry.path + strlen(entry.path) <= line + length);
		}
		free(line);
		at += length + 1;
	}
	return 0;
}
