/*
 * ptsnapd.conf, read at start below what the command line said, and read again by a reload.
 *
 * A fleet has one configuration for hosts of many versions and kinds. Nothing in a file therefore
 * keeps the recorder from starting: a setting that is wrong is reported and ignored.
 *
 * Rings, store and socket, which were opened with the old settings, stay as they are when the files
 * are read again. Their settings keep the old values, so that nobody acts on a value that is not in
 * force, and the reload reports what the files say of them by now.
 */
#include "daemon/config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config/conffile.h"
#include "daemon/config/config_setting.h"
#include "daemon/config/trigger_set.h"
#include "proto/base.h"

#ifndef PTSNAP_VENDORDIR
#define PTSNAP_VENDORDIR "/usr/lib/ptsnap"
#endif

#define FILE_NAME "ptsnapd.conf"
/* Between the words of lists that grow. */
#define SEPARATORS ", \t"

const char *const config_directories[] = {"/run/ptsnap", "/etc/ptsnap", PTSNAP_VENDORDIR, NULL};

struct reading {
	struct config *config;
	struct config_warn *warn;
	int r; /* -ENOMEM */
};

/* Tells one line about FILE. LINE 0: the whole file. LOST: as in struct config_warn. */
static void PRINTF_LIKE(5, 6) reading_warn(struct reading *g, const char *file, unsigned line,
					   bool lost, const char *format, ...)
{
	char text[1024];
	size_t used;
	va_list args;

	if (line)
		used = (size_t)snprintf(text, sizeof(text), "%s:%u: ", file, line);
	else
		used = (size_t)snprintf(text, sizeof(text), "%s: ", file);
	va_start(args, format);
	if (used < sizeof(text))
		vsnprintf(text + used, sizeof(text) - used, format, args);
	va_end(args);
	g->warn->n_lost += lost;
	g->warn->line(g->warn->userdata, text);
}

static void on_file(void *userdata, const char *file)
{
	struct reading *g = userdata;
	struct config *c = g->config;
	char *copy = strdup(file);

	if (copy && ARRAY_EXTEND(c->files, c->n_files) == 0)
		c->files[c->n_files++] = TAKE_PTR(copy);
	else
		g->r = -ENOMEM;
	free(copy);
}

static bool on_section(void *userdata, const char *name)
{
	(void)userdata;
	for (size_t i = 0; i < config_n_settings; i++)
		if (config_settings[i].key && strcmp(config_settings[i].section, name) == 0)
			return true;
	return false;
}

static void on_setting(void *userdata, const struct conffile_setting *setting)
{
	struct reading *g = userdata;
	const struct config_setting *s = config_settings;
	char valid[CONFIG_WORDS_SIZE];
	size_t i = 0;
	int r;

	/* Case counts, as in systemd's files. */
	while (i < config_n_settings && !(s[i].key && strcmp(s[i].section, setting->section) == 0 &&
					  strcmp(s[i].key, setting->key) == 0))
		i++;
	if (i == config_n_settings) {
		reading_warn(g, setting->file, setting->line, false,
			     "unknown key %s in section [%s], ignored", setting->key,
			     setting->section);
		return;
	}
	/* An empty value takes back what files have said. */
	if (*setting->value)
		r = config_set(g->config, i, setting->value, CONFIG_BY_FILE, setting->file,
			       setting->line);
	else
		r = g->config->values[i].origin == CONFIG_BY_FILE ? config_reset(g->config, i) : 0;
	config_words(&config_settings[i], ", ", valid);
	if (r == -EINVAL)
		reading_warn(g, setting->file, setting->line, true,
			     "%s=%s is not valid, ignored; valid: %s", setting->key, setting->value,
			     valid);
	else if (r < 0)
		g->r = r;
}

static void on_warning(void *userdata, const struct conffile_warning *w)
{
	reading_warn(userdata, w->file, w->line, w->lost, "%s", w->text);
}

/* Resets setting INDEX, which a file has set, as it needs NEEDS. 0 or -ENOMEM. */
static int reading_drop(struct reading *g, size_t index, const char *needs)
{
	struct config_value *v = &g->config->values[index];

	reading_warn(g, v->file, v->line, true, "%s=%s needs %s, ignored",
		     config_settings[index].key, v->text, needs);
	return config_reset(g->config, index);
}

/* Checks what files and the command line say together. */
static int reading_check(struct reading *g, const struct config_why *why)
{
	struct config *c = g->config;
	size_t source = config_index(offsetof(struct config, source));
	size_t socket = config_index(offsetof(struct config, emu_socket));
	size_t preset = config_index(offsetof(struct config, preset));
	bool custom = c->preset && strcmp(c->preset, "custom") == 0;
	int r = 0;

	/* A file is written for the service; a COMMAND means a machine of its own. */
	if (c->command && c->values[socket].origin == CONFIG_BY_FILE)
		r = config_reset(c, socket);
	if (r == 0 && c->source == CONFIG_EMULATED && !c->command && !c->emu_socket &&
	    c->action == CONFIG_SERVE && c->values[source].origin == CONFIG_BY_FILE)
		r = reading_drop(g, source, "EmulatorSocket= or a COMMAND on the command line");
	if (r == 0 && custom && !c->pt_terms && c->values[preset].origin == CONFIG_BY_FILE)
		r = reading_drop(g, preset, "Terms=");
	else if (r == 0 && custom && !c->pt_terms) {
		snprintf(why->text, why->size, "--preset=custom needs terms: --pt=TERMS or Terms=");
		return -EINVAL;
	}
	return r < 0 ? r : config_check(c, why);
}

int config_read_files(struct config *c, const char *const *directories, struct config_warn *warn,
		      char *why, size_t why_size)
{
	const struct config_why because = {why, why_size};
	struct reading g = {.config = c, .warn = warn};
	const struct conffile_handler handler = {&g, on_file, on_section, on_setting, on_warning};
	const char *triggers = c->triggers_dir;

	snprintf(why, why_size, "no memory");
	if (!c->config_file)
		conffile_read_all(directories, FILE_NAME, &handler);
	else if (*c->config_file && conffile_read(c->config_file, &handler) == -ENOENT) {
		snprintf(why, why_size, "--config=%s: there is no such file", c->config_file);
		return -EINVAL;
	}
	if (g.r == 0)
		g.r = reading_check(&g, &because);
	if (g.r < 0)
		return g.r;
	/* --config=FILE means only that file, so not the system's triggers either. */
	if (c->config_file && !triggers)
		triggers = "";
	return trigger_set_read(c->triggers, directories, triggers, warn);
}

/* --- Reload --- */

/* Tells one line about a setting that has no effect before a restart. */
static void PRINTF_LIKE(2, 3) reload_warn(struct config_warn *warn, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	warn->n_lost++;
	warn->line(warn->userdata, text);
}

/* TEXT for people: a default that is not set is told in words. */
static const char *shown(const struct config_setting *s, const char *text)
{
	return *text ? text : s->initially ? s->initially : "nothing";
}

/* Keeps the old value of a setting that needs a restart, and tells the new one. 0 or -ENOMEM. */
static int keep_setting(const struct config *old, struct config *c, size_t index,
			struct config_warn *warn)
{
	const struct config_setting *s = &config_settings[index];
	const struct config_value *was = &old->values[index];
	struct config_value *is = &c->values[index];
	char *text, *file;

	if (strcmp(was->text, is->text) == 0)
		return 0;
	if (is->origin == CONFIG_BY_FILE)
		reload_warn(warn, "%s:%u: %s=%s takes effect after a restart (now: %s)", is->file,
			    is->line, s->key, is->text, shown(s, was->text));
	else
		reload_warn(warn, "%s=%s (no longer %s) takes effect after a restart", s->key,
			    shown(s, is->text), shown(s, was->text));
	text = strdup(was->text);
	file = was->file ? strdup(was->file) : NULL;
	if (!text || (was->file && !file)) {
		free(text);
		free(file);
		return -ENOMEM;
	}
	free(is->text);
	free(is->file);
	*is = (struct config_value){text, was->origin, file, was->line};
	/* The text is valid, as it was taken before. The field borrows the copy. */
	return s->type->take(s, is->text, c);
}

static bool has_word(const char *text, const char *word, size_t size)
{
	for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
		size_t n = strcspn(text, SEPARATORS);

		if (n == size && memcmp(text, word, n) == 0)
			return true;
		text += n;
	}
	return false;
}

/* Appends the words of TEXT that are not in OTHER to *RET (owned; NULL: empty). 0 or -ENOMEM. */
static int add_others(const char *text, const char *other, char **ret)
{
	for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
		size_t n = strcspn(text, SEPARATORS);
		char *grown = NULL;

		if (!has_word(other, text, n)) {
			if (asprintf(&grown, "%s%s%.*s", *ret ? *ret : "", *ret && **ret ? "," : "",
				     (int)n, text) < 0)
				return -ENOMEM;
			free(*ret);
			*ret = grown;
		}
		text += n;
	}
	return 0;
}

/* Adds the new words of a list to those in force. Words that are gone stay until a restart, which
 * is told. 0 or -ENOMEM. */
static int grow_setting(const struct config *old, struct config *c, size_t index,
			struct config_warn *warn)
{
	const struct config_setting *s = &config_settings[index];
	const struct config_value *was = &old->values[index];
	struct config_value *is = &c->values[index];
	CLEANUP_FREE char *gone = NULL;
	char *all = strdup(was->text);
	int r = all ? add_others(was->text, is->text, &gone) : -ENOMEM;

	if (r == 0)
		r = add_others(is->text, was->text, &all);
	if (r < 0) {
		free(all);
		return r;
	}
	if (gone)
		reload_warn(warn, "%s=%s is no longer said, which takes effect after a restart",
			    s->key, gone);
	if (is->origin == CONFIG_BY_DEFAULT)
		is->origin = was->origin;
	free(is->text);
	is->text = all;
	return s->type->take(s, is->text, c);
}

int config_reload(const struct config *old, const char *const *directories, struct config *ret,
		  struct config_warn *warn, char *why, size_t why_size)
{
	struct config c;
	int r = config_parse(old->argc, old->argv, &c, why, why_size);

	if (r != 0)
		return r < 0 ? r : -EINVAL;
	r = config_read_files(&c, directories, warn, why, why_size);
	for (size_t i = 0; i < config_n_settings && r == 0; i++)
		if (config_settings[i].grows)
			r = grow_setting(old, &c, i, warn);
		else if (!config_settings[i].live)
			r = keep_setting(old, &c, i, warn);
	if (r < 0) {
		config_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}
