/*
 * What can be set (--help) and what is set, by whom (--test-config). Called by main.c; both are the
 * table of settings, so that what can be said is what is shown.
 */
#include "daemon/config/config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/config/config_setting.h"
#include "daemon/config/trigger_set.h"
#include "proto/base.h"
#include "proto/json.h"

#define HELP_COLUMN 25

static void help_setting(FILE *to, const struct config_setting *s)
{
	char words[CONFIG_WORDS_SIZE] = "";
	int used;

	if (s->words)
		config_words(s, "|", words);
	else if (s->argument)
		snprintf(words, sizeof(words), "%s", s->argument);
	used = fprintf(to, "  --%s%s%s", s->option, *words ? "=" : "", words);
	fprintf(to, "%*s%s", MAX_OF(2, HELP_COLUMN - used), "", s->help);
	if (!s->type->is_flag)
		fprintf(to, " (%s)", *s->initial ? s->initial : s->initially);
	fputc('\n', to);
}

void config_help(FILE *to)
{
	fputs("ptsnapd [OPTIONS] [-- COMMAND ARGS]\n"
	      "Records control flow (Intel Processor Trace) into rings and, on a trigger, has the\n"
	      "newest part of them decoded into a report.\n"
	      "\n",
	      to);
	for (size_t i = 0; i < config_n_settings; i++)
		if (!config_settings[i].emulated)
			help_setting(to, &config_settings[i]);
	fputs("\nThe emulated machine (--source=emulated):\n", to);
	for (size_t i = 0; i < config_n_settings; i++)
		if (config_settings[i].emulated)
			help_setting(to, &config_settings[i]);
	fputs("\nInstead of recording:\n"
	      "  --check                whether this host can be traced, and what to do\n"
	      "  --test-config[=json]   what is set, and where that was said\n"
	      "  --json                 the same as JSON\n"
	      "  --help, --version\n"
	      "\n"
	      "  --triggers=DIR         triggers are DIR/*.conf; --triggers= none. Else those of\n"
	      "                         triggers.d/*.conf in the directories below\n"
	      "  --config=FILE          reads only FILE; --config= none. Else ptsnapd.conf and\n"
	      "                         ptsnapd.conf.d/*.conf of",
	      to);
	for (size_t i = 0; config_directories[i]; i++)
		fprintf(to, " %s", config_directories[i]);
	fputs("\n\nTriggers: ptsnapctl snapshot, SIGUSR2. See ptsnapd(8), ptsnapd.conf(5).\n", to);
}

static void show_origin(FILE *to, const struct config_value *v, const struct config_setting *s)
{
	if (v->origin == CONFIG_BY_FILE)
		fprintf(to, "# %s:%u\n", v->file, v->line);
	else if (v->origin == CONFIG_BY_COMMAND_LINE)
		fprintf(to, "# command line\n");
	else if (*v->text)
		fprintf(to, "# default\n");
	else
		fprintf(to, "# default: %s\n", s->initially);
}

static void show_settings(FILE *to, const struct config *c)
{
	const char *section = "";

	for (size_t i = 0; i < config_n_settings; i++) {
		const struct config_setting *s = &config_settings[i];

		if (!s->key)
			continue;
		if (strcmp(section, s->section) != 0)
			fprintf(to, "\n[%s]\n", s->section);
		section = s->section;
		show_origin(to, &c->values[i], s);
		fprintf(to, "%s=%s\n", s->key, c->values[i].text);
	}
}

/* Comments, as a file cannot say them. */
static void show_options(FILE *to, const struct config *c)
{
	fputs("\n# Only on the command line:\n", to);
	for (size_t i = 0; i < config_n_settings; i++) {
		const struct config_setting *s = &config_settings[i];

		if (s->key)
			continue;
		fprintf(to, "# --%s=%s (%s)\n", s->option, c->values[i].text,
			c->values[i].origin == CONFIG_BY_DEFAULT ? "default" : "command line");
	}
}

static int show_text(const struct config *c, int fd)
{
	FILE *to = fdopen(dup(fd), "w");
	int r = 0;

	if (!to)
		return -errno;
	for (size_t i = 0; i < c->n_files; i++)
		fprintf(to, "# read: %s\n", c->files[i]);
	if (c->n_files == 0)
		fputs("# no file was read\n", to);
	show_settings(to, c);
	show_options(to, c);
	trigger_set_show(c->triggers, to);
	if (ferror(to))
		r = -EIO;
	if (fclose(to) != 0 && r == 0)
		r = -errno;
	return r;
}

static void json_value(struct json_writer *w, const struct config_setting *s,
		       const struct config *c, const char *text)
{
	const void *field = (const char *)c + s->offset;

	switch (s->type->json) {
	case CONFIG_JSON_BOOL: json_bool(w, "value", *(const bool *)field); return;
	case CONFIG_JSON_U32: json_u64(w, "value", *(const uint32_t *)field); return;
	case CONFIG_JSON_U64:
		if (*text) {
			json_u64(w, "value", *(const uint64_t *)field);
			return;
		}
		break;
	case CONFIG_JSON_TEXT: break;
	}
	json_string(w, "value", *text ? text : NULL);
}

static void json_setting(struct json_writer *w, const struct config *c, size_t index)
{
	static const char *const origins[] = {"default", "file", "command-line"};
	const struct config_setting *s = &config_settings[index];
	const struct config_value *v = &c->values[index];

	json_begin_object(w, NULL);
	json_string(w, "section", s->section);
	json_string(w, "key", s->key);
	json_string(w, "option", s->option);
	json_string(w, "text", v->text);
	json_value(w, s, c, v->text);
	json_string(w, "origin", origins[v->origin]);
	if (v->origin == CONFIG_BY_FILE) {
		json_string(w, "file", v->file);
		json_u64(w, "line", v->line);
	}
	json_end_object(w);
}

static int show_json(const struct config *c, int fd)
{
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	int r = json_writer_new_fd(fd, 0, true, &w);

	if (r < 0)
		return r;
	json_begin_object(w, NULL);
	json_begin_array(w, "files");
	for (size_t i = 0; i < c->n_files; i++)
		json_string(w, NULL, c->files[i]);
	json_end_array(w);
	json_begin_array(w, "settings");
	for (size_t i = 0; i < config_n_settings; i++)
		json_setting(w, c, i);
	json_end_array(w);
	trigger_set_show_json(c->triggers, w);
	json_end_object(w);
	return json_writer_finish(w);
}

int config_show(const struct config *c, int fd)
{
	return c->json ? show_json(c, fd) : show_text(c, fd);
}
