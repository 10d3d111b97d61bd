/*
 * Prints what can be set (--help), and what is set and who said it (--test-config), from the table
 * of settings.
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
	      "Records control flow (Intel Processor Trace) into rings. On a trigger, copies the\n"
	      "newest part of the rings and decodes the copy into a report.\n"
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
	      "  --check                say whether this host can be traced, and what to do if not\n"
	      "  --test-config[=json]   print all settings and where each was set\n"
	      "  --json                 print either as JSON\n"
	      "  --help, --version\n"
	      "\n"
	      "  --triggers=DIR         read triggers from DIR/*.conf, or none if DIR is empty; by\n"
	      "                         default from triggers.d/*.conf in the directories below\n"
	      "  --config=FILE          read only FILE, or no file if FILE is empty; by default\n"
	      "                         ptsnapd.conf and ptsnapd.conf.d/*.conf in",
	      to);
	for (size_t i = 0; config_directories[i]; i++)
		fprintf(to, " %s", config_directories[i]);
	fputs("\n\nTriggers: ptsnapctl snapshot, SIGUSR2. See ptsnapd(8), ptsnapd.conf(5).\n", to);
}

static void show_settings(FILE *to, const struct config *c)
{
	const char *section = "";

	for (size_t i = 0; i < config_n_settings; i++) {
		const struct config_setting *s = &config_settings[i];
		const struct config_value *v = &c->values[i];

		if (!s->key)
			continue;
		if (strcmp(section, s->section) != 0)
			fprintf(to, "\n[%s]\n", s->section);
		section = s->section;
		if (v->origin == CONFIG_BY_FILE)
			fprintf(to, "# %s:%u\n", v->file, v->line);
		else if (v->origin == CONFIG_BY_COMMAND_LINE)
			fprintf(to, "# command line\n");
		else if (*v->text)
			fprintf(to, "# default\n");
		else
			fprintf(to, "# default: %s\n", s->initially);
		fprintf(to, "%s=%s\n", s->key, v->text);
	}
}

/* Prints a trigger as comments, as ptsnapd.conf cannot have triggers. */
static void show_trigger(FILE *to, const struct trigger_object *o)
{
	char buffer[TRIGGER_TEXT_SIZE];

	fprintf(to, "\n# Trigger %s (%s)\n", o->name, o->file ? o->file : "built in");
	for (size_t i = 0; i < TRIGGER_N_KEYS; i++) {
		enum trigger_key_id key = (enum trigger_key_id)i;

		/* A key of another kind says nothing. */
		if (trigger_keys[key].needs && !(trigger_keys[key].needs & (1u << o->on)))
			continue;
		fprintf(to, "#   %s=%s", trigger_keys[i].name, trigger_object_text(o, key, buffer));
		if (o->values[i].text)
			fprintf(to, "  # line %u", o->values[i].line);
		fputc('\n', to);
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
	/* Options are comments, as a file cannot set them. */
	fputs("\n# Only on the command line:\n", to);
	for (size_t i = 0; i < config_n_settings; i++)
		if (!config_settings[i].key)
			fprintf(to, "# --%s=%s (%s)\n", config_settings[i].option,
				c->values[i].text,
				c->values[i].origin == CONFIG_BY_DEFAULT ? "default"
									 : "command line");
	for (size_t i = 0; i < c->triggers->n; i++)
		show_trigger(to, &c->triggers->all[i]);
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

static void json_triggers(const struct trigger_set *s, struct json_writer *w)
{
	json_begin_array(w, "triggers");
	for (size_t i = 0; i < s->n; i++) {
		const struct trigger_object *o = &s->all[i];

		json_begin_object(w, NULL);
		json_string(w, "name", o->name);
		json_bool(w, "builtIn", o->built_in);
		json_string(w, "file", o->file);
		json_begin_array(w, "settings");
		for (size_t k = 0; k < TRIGGER_N_KEYS; k++) {
			const struct trigger_value *v = &o->values[k];
			char buffer[TRIGGER_TEXT_SIZE];

			json_begin_object(w, NULL);
			json_string(w, "key", trigger_keys[k].name);
			json_string(w, "text",
				    trigger_object_text(o, (enum trigger_key_id)k, buffer));
			json_string(w, "origin", v->text ? "file" : "default");
			if (v->text)
				json_u64(w, "line", v->line);
			json_end_object(w);
		}
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
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
	json_triggers(c->triggers, w);
	json_end_object(w);
	return json_writer_finish(w);
}

int config_show(const struct config *c, int fd)
{
	return c->json ? show_json(c, fd) : show_text(c, fd);
}
