/*
 * The command line of one verb: the options that all verbs share, and the verb's own.
 *
 * This room has what every verb of ptsnapctl needs, and nothing that knows the recorder, a report
 * or a bundle: option.c and size.c read the command line, say.c prints messages for people, field.c
 * reads JSON and formats numbers, file.c writes output files atomically and finds our programs.
 *
 * Decisions that govern the room:
 * - stdout is for data and stderr for messages. A message is one line, begins with "ptsnapctl:",
 *   and says what is valid where the user gave a value that is not.
 * - All text that ptsnapctl did not write itself is untrusted, also in messages, and is escaped
 *   before it reaches a terminal.
 * - An output file is complete or does not exist.
 * - A function that printed a message returns an exit code (enum exit_code) or false. The caller
 *   passes the code on, and no failure is reported twice. Functions that print nothing return 0 or
 *   -errno.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_mode {
	JSON_UNSET = 0, /* no --json: the verb chooses */
	JSON_OFF,
	JSON_SHORT,
	JSON_PRETTY,
};

/* The values of the options that all verbs share. */
struct settings {
	const char *socket; /* borrowed from the command line */
	enum json_mode json;
	uint64_t timeout_usec; /* UINT64_MAX: not given; 0: no limit */
	bool quiet;
	bool help, version;
};

void settings_init(struct settings *s);

/* option_next() returns these values besides the values of the verb's own options. Long options of
 * a verb have values from OPTION_OWN on; smaller values are letters of short options. */
#define OPTION_END   (-1)
#define OPTION_USAGE (-2) /* a message was printed: exit with EXIT_CODE_USAGE */
#define OPTION_OWN   256

/*
 * Returns the next option of the verb, with optarg and optind as getopt_long(3) sets them. Shared
 * options are stored in S and not returned. OWN are the verb's options, ending in a zero entry, and
 * SHORTS the verb's short options as for getopt(3) ("" or "o:"). Options may follow operands if
 * AFTER is true; else parsing ends at the first operand.
 */
int option_next(struct settings *s, int argc, char **argv, const struct option *own,
		const char *shorts, bool after);

/* Returns the index of TEXT in CHOICES, which ends in NULL, or -1 after a message that lists the
 * choices for OPTION. */
int option_choice(const char *option, const char *text, const char *const *choices);
/* Takes TEXT, the value of OPTION, as a number from 1 to MAX (UINT64_MAX: no limit). 0 and *ret, or
 * EXIT_CODE_USAGE after a message. */
int option_count(const char *option, const char *text, uint64_t max, uint64_t *ret);
/* Returns whether R, the result of a function of size.h for TEXT, is 0; else prints that OPTION
 * needs VALID. */
bool option_good(int r, const char *option, const char *text, const char *valid);
/* The operand behind the options of verb argv[0], or "latest" if there is none. NULL after a
 * message if there are several, or if the operand is empty; TAKES says what an operand is. */
const char *option_operand(int argc, char **argv, const char *takes);
