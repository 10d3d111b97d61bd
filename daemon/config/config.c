/*
 * argv -> struct config, with the default of every limit. Called by main.c, before anything is
 * opened, and by config_reload.c with the same argv; a mistake of the user ends in one line that
 * lists what would have been right.
 */
#include "daemon/config/config.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/config_setting.h"
#include "daemon/config/trigger_set.h"
#include "proto/base.h"

#ifndef PTSNAP_LIBEXECDIR
#define PTSNAP_LIBEXECDIR "/usr/libexec/ptsnap"
#endif
#ifndef PTSNAP_PKGLIBDIR
#define PTSNAP_PKGLIBDIR "/usr/lib/ptsnap"
#endif

/* Codes of options that set nothing; those of settings follow, by index. */
enum option_code {
	OPTION_CONFIG = 256,
	OPTION_TRIGGERS,
	OPTION_TEST_CONFIG,
	OPTION_CHECK,
	OPTION_JSON,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_SETTINGS,
};

#define MAX_OPTIONS 96

/* clang-format off */
static const struct option other_options[] = {
	{"config", required_argument, NULL, OPTION_CONFIG},
	{"triggers", required_argument, NULL, OPTION_TRIGGERS},
	{"test-config", optional_argument, NULL, OPTION_TEST_CONFIG},
	{"check", no_argument, NULL, OPTION_CHECK},
	{"json", no_argument, NULL, OPTION_JSON},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
};
/* clang-format on */

static const struct config config_defaults = {
	.intake_usec = 5000,
	.queue_bytes = 64u << 20,
	.sideband_bytes = 256u << 20,
	.max_files = 8192,
	.max_processes = 4096,
	.max_image_bytes = 512u << 20,
	.max_images_bytes = 1u << 30,
	.max_jobs_queued = 4,
	.store_in_memory = 2,
	.max_peers = 64,
	.max_peers_per_uid = 16,
	.peer_idle_usec = 45000000,
	.max_status_peers = 16,
	.max_status_peers_per_uid = 4,
	.status_peer_idle_usec = 10000000,
	.command_grace_usec = 2000000,
};

/* The settings' options, then the others; ends with an empty one. */
static void make_options(struct option ret[MAX_OPTIONS])
{
	size_t n = 0;

	for (size_t i = 0; i < config_n_settings && n < MAX_OPTIONS - 1; i++)
		ret[n++] = (struct option){config_settings[i].option,
					   config_settings[i].type->is_flag ? optional_argument
									    : required_argument,
					   NULL, OPTION_SETTINGS + (int)i};
	for (size_t i = 0; i < ARRAY_SIZE(other_options) && n < MAX_OPTIONS - 1; i++)
		ret[n++] = other_options[i];
	ret[n] = (struct option){NULL, 0, NULL, 0};
}

static int config_setting(struct config *c, size_t index, const char *text,
			  const struct config_why *why)
{
	const struct config_setting *s = &config_settings[index];
	char valid[CONFIG_WORDS_SIZE];
	int r;

	text = text ? text : "yes"; /* a flag */
	r = config_set(c, index, text, CONFIG_BY_COMMAND_LINE, NULL, 0);

	config_words(s, ", ", valid);
	if (r == -EINVAL)
		snprintf(why->text, why->size, "--%s=%s is not valid; valid: %s", s->option, text,
			 valid);
	else if (r < 0)
		snprintf(why->text, why->size, "no memory");
	return r;
}

static int config_test(const char *text, struct config *c, const struct config_why *why)
{
	c->action = CONFIG_TEST;
	if (!text)
		return 0;
	c->json = strcmp(text, "json") == 0;
	if (c->json)
		return 0;
	snprintf(why->text, why->size, "--test-config=%s is not valid; valid: json", text);
	return -EINVAL;
}

static int config_option(int code, const char *v, struct config *c, const struct config_why *why)
{
	switch (code) {
	case OPTION_CONFIG: c->config_file = v; return 0;
	case OPTION_TRIGGERS: c->triggers_dir = v; return 0;
	case OPTION_TEST_CONFIG: return config_test(v, c, why);
	case OPTION_CHECK: c->action = CONFIG_CHECK; return 0;
	case OPTION_JSON: c->json = true; return 0;
	case OPTION_HELP: return CONFIG_HELP;
	case OPTION_VERSION: return CONFIG_VERSION;
	default: return config_setting(c, (size_t)(code - OPTION_SETTINGS), v, why);
	}
}

/* What getopt_long stumbled over, in words. */
static int config_refuse(int code, const char *arg, const struct option *options,
			 const struct config_why *why)
{
	size_t used;

	if (code == ':') {
		snprintf(why->text, why->size, "%s needs a value", arg);
		return -EINVAL;
	}
	used = (size_t)snprintf(why->text, why->size, "unknown option %s; valid:", arg);
	for (const struct option *o = options; o->name && used < why->size; o++)
		used += (size_t)snprintf(why->text + used, why->size - used, " --%s", o->name);
	return -EINVAL;
}

static int config_arguments(int argc, char *const *argv, struct config *c,
			    const struct config_why *why)
{
	struct option options[MAX_OPTIONS];
	int code, r;

	make_options(options);
	optind = 0; /* glibc: start afresh, also within one process */
	opterr = 0;
	for (;;) {
		int at = optind ? optind : 1;

		code = getopt_long(argc, argv, "+:", options, NULL);
		if (code < 0)
			break;
		if (code < OPTION_CONFIG)
			return config_refuse(code, argv[at], options, why);
		r = config_option(code, optarg, c, why);
		if (r != 0)
			return r;
	}
	if (optind < argc)
		c->command = argv + optind;
	return 0;
}

/* PATH_IN_TREE when this program runs from a build tree that holds it, else INSTALLED. Owned by the
 * caller; NULL: no memory. */
static char *config_find(const char *in_tree, const char *installed)
{
	char self[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *real = NULL;

	self[MAX_OF(n, 0)] = '\0';
	slash = strrchr(self, '/');
	if (slash && (size_t)(slash - self) + strlen(in_tree) + 2 <= sizeof(self)) {
		strcpy(slash + 1, in_tree);
		real = realpath(self, NULL);
	}
	return real ? real : strdup(installed);
}

/* A default that is not known before we run. */
static int config_default(struct config *c, size_t offset, char *text)
{
	size_t i = config_index(offset);

	if (!text)
		return -ENOMEM;
	free(c->values[i].text);
	c->values[i].text = text;
	return config_settings[i].type->take(&config_settings[i], text, c);
}

static int config_init(struct config *c)
{
	int r = 0;

	*c = config_defaults;
	c->values = calloc(config_n_settings, sizeof(*c->values));
	if (!c->values || trigger_set_new(&c->triggers) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < config_n_settings && r == 0; i++)
		r = config_reset(c, i);
	if (r == 0)
		r = config_default(c, offsetof(struct config, worker),
				   config_find("../decoder/worker/ptsnap-decode",
					       PTSNAP_LIBEXECDIR "/ptsnap-decode"));
	if (r == 0)
		r = config_default(c, offsetof(struct config, emu_plugin),
				   config_find("../capture/emu/ptsnap-emupmu.so",
					       PTSNAP_PKGLIBDIR "/ptsnap-emupmu.so"));
	return r;
}

int config_check(const struct config *c, const struct config_why *why)
{
	/* A test of the files must not ask for a command. */
	bool serves = c->action == CONFIG_SERVE && !c->command;
	int r = config_emu_check(c, why);

	if (r < 0)
		return r;
	if (c->source == CONFIG_EMULATED && serves && !c->emu_socket) {
		snprintf(why->text, why->size,
			 "--source=emulated needs a command to run: ptsnapd --source=emulated -- "
			 "COMMAND ARGS");
		return -EINVAL;
	}
	if (c->exit_with_command && serves && !c->emu_socket) {
		snprintf(why->text, why->size,
			 "--exit-with-command needs a command: -- COMMAND ARGS");
		return -EINVAL;
	}
	return 0;
}

int config_parse(int argc, char *const *argv, struct config *ret, char *why, size_t why_size)
{
	const struct config_why because = {why, why_size};
	struct config c;
	int r = config_init(&c);

	c.argc = argc;
	c.argv = argv;
	if (r < 0)
		snprintf(why, why_size, "no memory");
	else
		r = config_arguments(argc, argv, &c, &because);
	if (r == 0)
		r = config_check(&c, &because);
	if (r != 0)
		config_done(&c);
	*ret = c;
	return r;
}

uint64_t config_other_fds(const struct config *c, size_t n_cpus)
{
	return 2 * (uint64_t)n_cpus + c->max_peers + 2 * (uint64_t)c->max_status_peers + 120;
}
