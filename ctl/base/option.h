/*
 * The command line of one verb: the options that every verb has, those of its own, and messages
 * that list what is valid.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_mode {
	JSON_UNSET = 0, /* not asked: what suits the output */
	JSON_OFF,
	JSON_SHORT,
	JSON_PRETTY,
};

/* What the common options say. */
struct settings {
	const char *socket;
	enum json_mode json;
	uint64_t timeout_usec; /* UINT64_MAX: not asked; 0: never */
	bool quiet;
	bool help, version;
};

void settings_init(struct settings *s);

/* Values that option_next gives besides those of the verb's own table (which are above 255, so
 * that only the letters below are short options). */
#define OPTION_END   (-1)
#define OPTION_USAGE (-2) /* a message was printed: exit with EXIT_CODE_USAGE */
#define OPTION_OWN   256  /* the first value for long options of a verb */

/* The next option of the verb; common ones are put into S on the way. OWN ends with a zero entry;
 * SHORTS are the verb's own short options in getopt's form ("" or "o:"). With AFTER false, stops at
 * the first operand. getopt's optarg and optind are set. */
int option_next(struct settings *s, int argc, char **argv, const struct option *own,
		const char *shorts, bool after);

/* Index of TEXT in CHOICES (NULL-terminated); else says which there are for OPTION, and gives -1.
 */
int option_choice(const char *option, const char *text, const char *const *choices);
/* True, or a message that OPTION does not take TEXT but VALID. R is a size.h result. */
bool option_good(int r, const char *option, const char *text, const char *valid);
