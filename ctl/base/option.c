/*
 * Parses options with getopt_long(3), with messages that say what is valid, as glibc's do not.
 */
#include "ctl/base/option.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/nearest.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "proto/base.h"

#define MAX_OPTIONS    96
#define DEFAULT_SOCKET "/run/ptsnap/io.ptsnap.recorder"

enum { COMMON_SOCKET = 1, COMMON_JSON, COMMON_TIMEOUT, COMMON_VERSION };

static const struct option COMMON[] = {
	{"socket", required_argument, NULL, COMMON_SOCKET},
	{"json", optional_argument, NULL, COMMON_JSON},
	{"timeout", required_argument, NULL, COMMON_TIMEOUT},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, COMMON_VERSION},
};

void settings_init(struct settings *s)
{
	*s = (struct settings){.socket = DEFAULT_SOCKET, .timeout_usec = UINT64_MAX};
}

int option_choice(const char *option, const char *text, const char *const *choices)
{
	char valid[256] = "", hint[NEAREST_MAX + 32];
	struct nearest nearest;
	size_t used = 0;

	nearest_init(&nearest, text);
	for (int i = 0; choices[i]; i++) {
		if (strcmp(choices[i], text) == 0)
			return i;
		nearest_try(&nearest, choices[i]);
		if (used < sizeof(valid))
			used += (size_t)snprintf(valid + used, sizeof(valid) - used, "%s%s",
						 i ? ", " : "", choices[i]);
	}
	return say_error(-1, "%s=%s: unknown value%s; valid values: %s", option, text,
			 nearest_text(&nearest, "", hint, sizeof(hint)), valid);
}

int option_count(const char *option, const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (size_parse_number(text, &n) == 0 && n > 0 && n <= max) {
		*ret = n;
		return 0;
	}
	if (max == UINT64_MAX)
		return say_error(EXIT_CODE_USAGE, "%s=%s is not valid; valid: a number from 1 on",
				 option, text);
	return say_error(EXIT_CODE_USAGE, "%s=%s is not valid; valid: a number from 1 to %ju",
			 option, text, (uintmax_t)max);
}

bool option_good(int r, const char *option, const char *text, const char *valid)
{
	if (r == 0)
		return true;
	if (r == -ERANGE)
		say("%s=%s: the number is too large; needs %s", option, text, valid);
	else
		say("%s=%s: invalid value; needs %s", option, text, valid);
	return false;
}

static enum json_mode json_here(void)
{
	return isatty(STDOUT_FILENO) ? JSON_PRETTY : JSON_SHORT;
}

/* Whether the value of --json is the next word: "--json off". */
static bool takes_next(int argc, char **argv)
{
	static const char *const choices[] = {"pretty", "short", "off"};

	for (size_t i = 0; optind < argc && i < ARRAY_SIZE(choices); i++)
		if (strcmp(argv[optind], choices[i]) == 0)
			return true;
	return false;
}

/* The value of --json in optarg or the next word, if there is one. False: a message was printed. */
static bool take_json(struct settings *s, int argc, char **argv)
{
	static const char *const choices[] = {"pretty", "short", "off", NULL};
	static const enum json_mode modes[] = {JSON_PRETTY, JSON_SHORT, JSON_OFF};
	int i;

	if (!optarg && takes_next(argc, argv))
		optarg = argv[optind++];
	i = optarg ? option_choice("--json", optarg, choices) : -1;
	if (i >= 0)
		s->json = modes[i];
	else if (!optarg)
		s->json = json_here();
	return i >= 0 || !optarg;
}

/* Stores a shared option in S. Returns false if OPTION is another one; else *ret_bad says whether
 * the option's value is invalid, and a message was printed. */
static bool take_common(struct settings *s, int option, int argc, char **argv, bool *ret_bad)
{
	switch (option) {
	case COMMON_SOCKET:
		s->socket = optarg;
		*ret_bad = !*optarg;
		if (*ret_bad)
			say("--socket= needs the path of the recorder's socket");
		break;
	case COMMON_JSON: *ret_bad = !take_json(s, argc, argv); break;
	case 'j': s->json = json_here(); break;
	case COMMON_TIMEOUT:
		*ret_bad = !option_good(size_parse_time(optarg, &s->timeout_usec), "--timeout",
					optarg, TIME_VALID);
		break;
	case 'q': s->quiet = true; break;
	case 'h': s->help = true; break;
	case COMMON_VERSION: s->version = true; break;
	default: return false;
	}
	return true;
}

/* Writes "--output= (-o), ..." to TEXT. The many options with a colon are left to the manual. */
static void list_options(const struct option *options, char *text, size_t capacity)
{
	char letter[8];
	size_t used = 0;

	for (; options->name && used < capacity; options++) {
		if (strchr(options->name, ':'))
			continue;
		letter[0] = '\0';
		if (options->val > ' ' && options->val < OPTION_OWN)
			snprintf(letter, sizeof(letter), " (-%c)", options->val);
		used += (size_t)snprintf(text + used, capacity - used, "--%s%s%s, ", options->name,
					 options->has_arg == required_argument ? "=" : "", letter);
	}
	if (used < capacity)
		snprintf(text + used, capacity - used, "-j");
}

/* The option that WORD, "--optoin=value", may mean. */
static const char *near_option(const char *word, const struct option *all, char *buffer,
			       size_t size)
{
	CLEANUP_FREE char *name =
		strndup(word + strspn(word, "-"), strcspn(word + strspn(word, "-"), "="));
	struct nearest nearest;

	if (!name)
		return "";
	nearest_init(&nearest, name);
	for (; all->name; all++)
		nearest_try(&nearest, all->name);
	return nearest_text(&nearest, "--", buffer, size);
}

/* Prints what getopt_long() found wrong. optopt is 0 for an unknown long option, else the value of
 * a known long option or the letter of a short one. */
static int say_bad(int result, char **argv, const struct option *all)
{
	const char *word = argv[optind > 0 ? optind - 1 : 0];
	bool is_long = optopt < ' ' || optopt >= OPTION_OWN || strchr(word, '=');
	char valid[1024], hint[NEAREST_MAX + 32];

	if (result == ':')
		return say_error(OPTION_USAGE, "%s needs a value", word);
	if (is_long && optopt != 0)
		return say_error(OPTION_USAGE, "%s: this option takes no value", word);
	list_options(all, valid, sizeof(valid));
	if (is_long)
		return say_error(OPTION_USAGE, "unknown option %s%s; valid options: %s", word,
				 near_option(word, all, hint, sizeof(hint)), valid);
	return say_error(OPTION_USAGE, "unknown option -%c; valid options: %s", optopt, valid);
}

int option_next(struct settings *s, int argc, char **argv, const struct option *own,
		const char *shorts, bool after)
{
	struct option all[MAX_OPTIONS] = {{.name = NULL}};
	char letters[32];
	size_t n = 0;
	bool bad = false;
	int r;

	for (; own[n].name; n++) {
		assert(n < MAX_OPTIONS - ARRAY_SIZE(COMMON) - 1);
		all[n] = own[n];
	}
	memcpy(all + n, COMMON, sizeof(COMMON));
	snprintf(letters, sizeof(letters), "%s:jqh%s", after ? "" : "+", shorts);
	opterr = 0;
	do {
		r = getopt_long(argc, argv, letters, all, NULL);
	} while (r != -1 && take_common(s, r, argc, argv, &bad) && !bad);
	if (bad)
		return OPTION_USAGE;
	return r == '?' || r == ':' ? say_bad(r, argv, all) : r;
}

const char *option_operand(int argc, char **argv, const char *takes)
{
	const char *operand = optind < argc ? argv[optind] : "latest";

	if (argc - optind <= 1 && *operand)
		return operand;
	say("%s takes %s operand: %s", argv[0], *operand ? "one" : "no empty", takes);
	return NULL;
}
