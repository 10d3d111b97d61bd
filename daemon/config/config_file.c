/*
 * ptsnapd.conf -> struct config, below what the command line said. Called by main.c and
 * config_reload.c. A fleet has one configuration for hosts of many versions and kinds: nothing in a
 * file keeps the recorder from starting, it is told and left out.
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

const char *const config_directories[] = {"/run/ptsnap", "/etc/ptsnap", PTSNAP_VENDORDIR, NULL};

struct reading {
	struct config *config;
	struct config_warn *warn;
	int r; /* -ENOMEM */
};

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

/* Case counts, as everywhere in systemd's files. */
static size_t find_key(const char *section, const char *key)
{
	size_t i = 0;

	while (i < config_n_settings &&
	       !(config_settings[i].key && strcmp(config_settings[i].section, section) == 0 &&
		 strcmp(config_settings[i].key, key) == 0))
		i++;
	return i;
}

/* An empty assignment: files have said nothing so far. */
static int take_back(struct config *c, size_t index)
{
	return c->values[index].origin == CONFIG_BY_FILE ? config_reset(c, index) : 0;
}

static void on_setting(void *userdata, const struct conffile_setting *setting)
{
	struct reading *g = userdata;
	size_t i = find_key(setting->section, setting->key);
	char valid[CONFIG_WORDS_SIZE];
	int r;

	if (i == config_n_settings) {
		reading_warn(g, setting->file, setting->line, false,
			     "unknown key %s in section [%s], ignored", setting->key,
			     setting->section);
		return;
	}
	r = *setting->value ? config_set(g->config, i, setting->value, CONFIG_BY_FILE,
					 setting->file, setting->line)
			    : take_back(g->config, i);
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

/* A file said TEXT in setting INDEX, which does not go with the rest. */
static int reading_drop(struct reading *g, size_t index, const char *needs)
{
	struct config_value *v = &g->config->values[index];

	reading_warn(g, v->file, v->line, true, "%s=%s needs %s, ignored",
		     config_settings[index].key, v->text, needs);
	return config_reset(g->config, index);
}

/* What was said in different places must go together. */
static int reading_check(struct reading *g, const struct config_why *why)
{
	struct config *c = g->config;
	size_t source = config_index(offsetof(struct config, source));
	size_t socket = config_index(offsetof(struct config, emu_socket));
	size_t preset = config_index(offsetof(struct config, preset));
	bool custom = c->preset && strcmp(c->preset, "custom") == 0;
	int r = 0;

	/* A file speaks of the service: who names a COMMAND means a machine of his own. */
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

/* Who reads one file only is not to be surprised by triggers of the system. */
static int read_triggers(struct config *c, const char *const *directories, struct config_warn *warn)
{
	const char *only = c->config_file && !c->triggers_dir ? "" : c->triggers_dir;

	return trigger_set_read(c->triggers, directories, only, warn);
}

int config_read_files(struct config *c, const char *const *directories, struct config_warn *warn,
		      char *why, size_t why_size)
{
	const struct config_why because = {why, why_size};
	struct reading g = {.config = c, .warn = warn};
	const struct conffile_handler handler = {&g, on_file, on_section, on_setting, on_warning};

	snprintf(why, why_size, "no memory");
	if (!c->config_file)
		conffile_read_all(directories, FILE_NAME, &handler);
	else if (*c->config_file && conffile_read(c->config_file, &handler) == -ENOENT) {
		snprintf(why, why_size, "--config=%s: there is no such file", c->config_file);
		return -EINVAL;
	}
	if (g.r == 0)
		g.r = reading_check(&g, &because);
	return g.r < 0 ? g.r : read_triggers(c, directories, warn);
}
