/*
 * Fuzzes the emulator's command line, and the escaping of a name on that command line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/emu/machine/emustart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct emustart_line line;
	char text[64], back[64], *argv[] = {text, NULL}, **made;
	const struct emustart start = {.qemu = "/q",
				       .plugin = text,
				       .ring = text,
				       .comm = text,
				       .program = text,
				       .argv = argv};

	if (emustart_read((const char *)data, size, &line) == 0)
		emustart_line_done(&line);
	memcpy(text, data, size < sizeof(text) ? size : sizeof(text) - 1);
	text[size < sizeof(text) ? size : sizeof(text) - 1] = '\0';
	made = emustart_argv(&start);
	if (made == NULL)
		return 0;
	/* Unescaping gives the original; in this input nothing follows ",comm=". */
	emustart_unescape(strrchr(made[2], '=') + 1, back, sizeof(back));
	if (strcmp(back, text) != 0)
		__builtin_trap();
	emustart_free(made);
	return 0;
}
