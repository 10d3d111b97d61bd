/*
 * Makes and reads the command line of the emulator, and makes its environment. This code in QEMU
 * 7.2 reads them: util/qemu-option.c (get_opt_value), plugins/loader.c (plugin_add),
 * linux-user/main.c (parse_args), util/envlist.c.
 */
#include "capture/emu/machine/emustart.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define PREFIX "\001pt"

void emustart_free(char **strings)
{
	for (size_t i = 0; strings && strings[i]; i++)
		free(strings[i]);
	free(strings);
}

static void put_value(FILE *f, const char *value)
{
	for (; *value != '\0'; value++) {
		if (*value == ',')
			fputc(',', f);
		fputc(*value, f);
	}
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void emustart_unescape(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	for (; *text != '\0' && n + 1 < size; n++) {
		int high = text[0] == '%' ? hex_value(text[1]) : -1;
		int low = high >= 0 ? hex_value(text[2]) : -1;

		ret[n] = low >= 0 ? (char)(high * 16 + low) : text[0];
		text += low >= 0 ? 3 : 1;
	}
	if (size > 0)
		ret[n] = '\0';
}

/* "file=" is needed because QEMU would take a path with "=" for another option. */
static char *plugin_option(const struct emustart *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fputs("file=", f);
	put_value(f, s->plugin);
	fputs(",ring=", f);
	put_value(f, s->ring);
	fputs(",comm=", f);
	/* A task's name may have any byte; the command line gets only printable ones. */
	for (const char *c = s->comm; *c != '\0'; c++)
		if (isascii(*c) && (isalnum(*c) || strchr("_-.+:@ ", *c)))
			fputc(*c, f);
		else
			fprintf(f, "%%%02X", (unsigned char)*c);
	if (s->truth) {
		fputs(",truth=", f);
		put_value(f, s->truth);
	}
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static size_t count(char *const *strings)
{
	size_t n = 0;

	while (strings && strings[n])
		n++;
	return n;
}

char **emustart_argv(const struct emustart *s)
{
	size_t n_args = count(s->argv), n = 0;
	CLEANUP_FREE const char **argv = calloc(n_args + 10, sizeof(*argv));
	CLEANUP_FREE char *option = plugin_option(s);
	char **copies;

	if (!argv || !option)
		return NULL;
	argv[n++] = s->qemu;
	if (s->repeatable) {
		argv[n++] = "-seed";
		argv[n++] = "1";
	}
	argv[n++] = "-plugin";
	argv[n++] = option;
	argv[n++] = "-0";
	argv[n++] = s->argv[0];
	argv[n++] = "--";
	argv[n++] = s->program;
	for (size_t i = 1; i < n_args; i++)
		argv[n++] = s->argv[i];
	copies = calloc(n + 1, sizeof(*copies));
	for (size_t i = 0; copies && i < n; i++) {
		copies[i] = strdup(argv[i]);
		if (!copies[i]) {
			emustart_free(copies);
			return NULL;
		}
	}
	return copies;
}

bool emustart_is_prefix(const char *text)
{
	if (memcmp(text, PREFIX, strlen(PREFIX)) != 0 || text[EMUSTART_PREFIX_SIZE - 1] != '=')
		return false;
	for (size_t i = strlen(PREFIX); i < EMUSTART_PREFIX_SIZE - 1; i++)
		if (hex_value(text[i]) < 0)
			return false;
	return true;
}

struct variable {
	const char *text;
	size_t index;
};

/* Size of the name with the "=", which envlist_setenv compares. */
static size_t name_size(const char *variable)
{
	size_t n = strcspn(variable, "=");

	return variable[n] == '=' ? n + 1 : n;
}

static int compare_names(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;
	size_t n = name_size(x->text), m = name_size(y->text);
	int r = memcmp(x->text, y->text, MIN_OF(n, m));

	if (r != 0)
		return r;
	return (n > m) - (n < m);
}

/* Sets HIDE[i] if the emulator must not see ENVP[i] unchanged. SORTED has room for N. */
static void choose_hidden(char *const *envp, size_t n, struct variable *sorted, bool *hide)
{
	/* These act on QEMU's dynamic linker, malloc, glib, GnuTLS or options. */
	static const char *const names[] = {"LD_",     "GLIBC_TUNABLES=", "MALLOC_", "QEMU_",
					    "G_",      "GCONV_PATH=",	  "GNUTLS_", "P11_KIT_",
					    "LIBNUMA_"};

	for (size_t i = 0; i < n; i++) {
		sorted[i] = (struct variable){envp[i], i};
		hide[i] = !strchr(envp[i], '=') || strncmp(envp[i], PREFIX, strlen(PREFIX)) == 0;
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			if (strncmp(envp[i], names[k], strlen(names[k])) == 0)
				hide[i] = true;
	}
	qsort(sorted, n, sizeof(*sorted), compare_names);
	for (size_t i = 1; i < n; i++)
		if (compare_names(&sorted[i - 1], &sorted[i]) == 0)
			hide[sorted[i - 1].index] = hide[sorted[i].index] = true;
}

char **emustart_envp(char *const *envp)
{
	size_t n = count(envp);
	CLEANUP_FREE struct variable *sorted = calloc(n + 1, sizeof(*sorted));
	CLEANUP_FREE bool *hide = calloc(n + 1, sizeof(*hide));
	char **result = calloc(n + 1, sizeof(*result));

	if (!sorted || !hide || !result) {
		free(result);
		return NULL;
	}
	choose_hidden(envp, n, sorted, hide);
	for (size_t i = 0; i < n; i++) {
		size_t from = n - 1 - i;

		if (!hide[from])
			result[i] = strdup(envp[from]);
		else if (asprintf(&result[i], PREFIX "%06X=%s", (unsigned int)from & 0xffffff,
				  envp[from]) < 0)
			result[i] = NULL;
		if (!result[i]) {
			emustart_free(result);
			return NULL;
		}
	}
	return result;
}

/* The next string of a command line, or NULL. */
static const char *next(const char **at, const char *end)
{
	const char *text = *at;
	const char *nul = memchr(text, '\0', (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

/* Takes one "NAME=VALUE" of an option and replaces double commas; *AT moves behind it. */
static int take_item(const char **at, struct emustart_line *ret)
{
	CLEANUP_FREE char *item = malloc(strlen(*at) + 1);
	const struct {
		const char *name;
		char **to;
	} names[] = {{"file=", &ret->plugin}, {"ring=", &ret->ring}, {"truth=", &ret->truth}};
	size_t n = 0;

	if (!item)
		return -ENOMEM;
	for (; **at != '\0'; (*at)++) {
		if (**at == ',' && *++*at != ',')
			break;
		item[n++] = **at;
	}
	item[n] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t size = strlen(names[i].name);

		if (strncmp(item, names[i].name, size) != 0 || *names[i].to)
			continue;
		*names[i].to = strdup(item + size);
		return *names[i].to ? 0 : -ENOMEM;
	}
	return 0;
}

static int take_line(const char *text, size_t size, struct emustart_line *ret)
{
	const char *at = text, *end = text + size, *word = next(&at, end);
	int r = 0;

	while (r == 0 && (word = next(&at, end)) && strcmp(word, "--") != 0) {
		const char *value = next(&at, end);

		if (!value)
			return -EINVAL;
		if (strcmp(word, "-seed") == 0)
			ret->repeatable = true;
		else if (strcmp(word, "-plugin") == 0)
			while (r == 0 && *value != '\0')
				r = take_item(&value, ret);
	}
	word = word ? next(&at, end) : NULL;
	if (r < 0 || !word || !ret->plugin || !ret->ring)
		return r < 0 ? r : -EINVAL;
	ret->program = strdup(word);
	return ret->program ? 0 : -ENOMEM;
}

int emustart_read(const char *text, size_t size, struct emustart_line *ret)
{
	int r;

	*ret = (struct emustart_line){0};
	r = take_line(text, size, ret);
	if (r < 0)
		emustart_line_done(ret);
	return r;
}

void emustart_line_done(struct emustart_line *l)
{
	free(l->plugin);
	free(l->ring);
	free(l->truth);
	free(l->program);
	*l = (struct emustart_line){0};
}

/* Whether NAME is one of QEMU's programs, and none of its tools, which emulate nothing. */
static bool is_emulator_name(const char *name)
{
	static const char *const tools[] = {"qemu-img",
					    "qemu-io",
					    "qemu-nbd",
					    "qemu-ga",
					    "qemu-edid",
					    "qemu-keymap",
					    "qemu-storage-daemon",
					    "qemu-pr-helper",
					    "qemu-bridge-helper",
					    "qemu-vmsr-helper"};

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (strcmp(name, tools[i]) == 0)
			return false;
	return strncmp(name, "qemu-", 5) == 0;
}

bool emustart_is_nested(const char *name, char *const *argv)
{
	if (strcmp(name, "ptsnapd") != 0)
		return is_emulator_name(name);
	for (size_t i = 1; argv[0] && argv[i] && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--source=emulated") == 0 ||
		    (strcmp(argv[i], "--source") == 0 && argv[i + 1] &&
		     strcmp(argv[i + 1], "emulated") == 0))
			return true;
	return false;
}
