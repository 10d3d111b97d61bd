/*
 * A configuration from defaults and the command line, and the values in it: who said what.
 *
 * A mistake of the user on the command line ends in one line that lists what would have been right.
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

/* Codes of options that are no settings. The codes of settings follow, by index. */
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

static void value_replace(struct config_value *v, char *text, char *file, unsigned line,
			  enum config_origin origin)
{
	free(v->text);
	free(v->file);
	*v = (struct config_value){text, origin, file, line};
}

int config_set(struct config *c, size_t index, const char *text, enum config_origin origin,
	       const char *file, unsigned line)
{
	const struct config_setting *s = &config_settings[index];
	struct config_value *v = &c->values[index];
	CLEANUP_FREE char *name = file ? strdup(file) : NULL;
	CLEANUP_FREE char *joined = NULL;
	struct config trial = *c;
	int r;

	if (!s->type->list || v->origin != origin)
		joined = strdup(text);
	else if (asprintf(&joined, "%s,%s", v->text, text) < 0)
		joined = NULL;
	if (!joined || (file && !name))
		return -ENOMEM;
	r = *text ? s->type->take(s, joined, &trial) : -EINVAL;
	if (r < 0 || origin < v->origin)
		return r;
	*c = trial;
	value_replace(v, TAKE_PTR(joined), TAKE_PTR(name), line, origin);
	return 0;
}

int config_reset(struct config *c, size_t index)
{
	const struct config_setting *s = &config_settings[index];
	char *text = strdup(s->initial);

	if (!text)
		return -ENOMEM;
	if (s->type->take(s, text, c) < 0)
		abort(); /* the table is wrong */
	value_replace(&c->values[index], text, NULL, 0, CONFIG_BY_DEFAULT);
	return 0;
}

void config_done(struct config *c)
{
	for (size_t i = 0; c->values && i < config_n_settings; i++) {
		free(c->values[i].text);
		free(c->values[i].file);
	}
	for (size_t i = 0; i < c->n_files; i++)
		free(c->files[i]);
	free(TAKE_PTR(c->values));
	free(TAKE_PTR(c->files));
	trigger_set_free(TAKE_PTR(c->triggers));
	c->n_files = 0;
}

static int set_option(struct config *c, size_t index, const char *text,
		      const struct config_why *why)
{
	const struct config_setting *s = &config_settings[index];
	char valid[CONFIG_WORDS_SIZE];
	int r;

	text = text ? text : "yes"; /* a flag without a value */
	r = config_set(c, index, text, CONFIG_BY_COMMAND_LINE, NULL, 0);

	config_words(s, ", ", valid);
	if (r == -EINVAL)
		snprintf(why->text, why->size, "--%s=%s is not valid; valid: %s", s->option, text,
			 valid);
	else if (r < 0)
		snprintf(why->text, why->size, "no memory");
	return r;
}

static int take_option(int code, const char *v, struct config *c, const struct config_why *why)
{
	switch (code) {
	case OPTION_CONFIG: c->config_file = v; return 0;
	case OPTION_TRIGGERS: c->triggers_dir = v; return 0;
	case OPTION_TEST_CONFIG:
		c->action = CONFIG_TEST;
		c->json |= v && strcmp(v, "json") == 0;
		if (!v || strcmp(v, "json") == 0)
			return 0;
		snprintf(why->text, why->size, "--test-config=%s is not valid; valid: json", v);
		return -EINVAL;
	case OPTION_CHECK: c->action = CONFIG_CHECK; return 0;
	case OPTION_JSON: c->json = true; return 0;
	case OPTION_HELP: return CONFIG_HELP;
	case OPTION_VERSION: return CONFIG_VERSION;
	default: return set_option(c, (size_t)(code - OPTION_SETTINGS), v, why);
	}
}

/* Says what getopt_long() did not accept. Returns -EINVAL. */
static int refuse_option(int code, const char *arg, const struct option *options,
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

static int read_arguments(int argc, char *const *argv, struct config *c,
			  const struct config_why *why)
{
	struct option options[MAX_OPTIONS] = {0}; /* settings' options, the others, an empty one */
	size_t n = 0;
	int code, r;

	for (size_t i = 0; i < config_n_settings && n < MAX_OPTIONS - 1; i++)
		options[n++] = (struct option){config_settings[i].option,
					       config_settings[i].type->is_flag ? optional_argument
										: required_argument,
					       NULL, OPTION_SETTINGS + (int)i};
	for (size_t i = 0; i < ARRAY_SIZE(other_options) && n < MAX_OPTIONS - 1; i++)
		options[n++] = other_options[i];
	optind = 0; /* glibc: start again; this may be a reload */
	opterr = 0;
	for (;;) {
		int at = optind ? optind : 1;

		code = getopt_long(argc, argv, "+:", options, NULL);
		if (code < 0)
			break;
		if (code < OPTION_CONFIG)
			return refuse_option(code, argv[at], options, why);
		r = take_option(code, optarg, c, why);
		if (r != 0)
			return r;
	}
	if (optind < argc)
		c->command = argv + optind;
	return 0;
}

/* IN_TREE if this program runs from a build tree that has that file, else INSTALLED. The result is
 * the caller's; NULL: no memory. */
static char *find_file(const char *in_tree, const char *installed)
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

/* Sets a default that is known only at run time. TEXT is taken over. */
static int set_default(struct config *c, size_t offset, char *text)
{
	size_t i = config_index(offset);

	if (!text)
		return -ENOMEM;
	free(c->values[i].text);
	c->values[i].text = text;
	return config_settings[i].type->take(&config_settings[i], text, c);
}

static int set_defaults(struct config *c)
{
	int r = 0;

	*c = config_defaults;
	c->values = calloc(config_n_settings, sizeof(*c->values));
	if (!c->values || trigger_set_new(&c->triggers) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < config_n_settings && r == 0; i++)
		r = config_reset(c, i);
	if (r == 0)
		r = set_default(c, offsetof(struct config, worker),
				find_file("../decoder/worker/ptsnap-decode",
					  PTSNAP_LIBEXECDIR "/ptsnap-decode"));
	if (r == 0)
		r = set_default(c, offsetof(struct config, emu_plugin),
				find_file("../capture/emu/ptsnap-emupmu.so",
					  PTSNAP_PKGLIBDIR "/ptsnap-emupmu.so"));
	return r;
}

static bool holds(const struct source_emu_offline *o, uint64_t usec)
{
	return o->from_usec <= usec && usec < o->to_usec;
}

/* Checks that CPUs are left when the CPU of AT goes. The fewest CPUs are left when one goes, as
 * they come back at other times. */
static int check_offline(const struct config *c, const struct source_emu_offline *at,
			 const struct config_why *why)
{
	uint32_t away = 0;

	if (at->cpu >= c->emu_cpus) {
		snprintf(why->text, why->size,
			 "--emu-offline takes away CPU %u, but there are only %u (--emu-cpus), "
			 "numbered from 0",
			 at->cpu, c->emu_cpus);
		return -EINVAL;
	}
	for (size_t i = 0; i < c->n_emu_offline; i++) {
		const struct source_emu_offline *other = &c->emu_offline[i];

		if (other != at && other->cpu == at->cpu && holds(other, at->from_usec)) {
			snprintf(why->text, why->size,
				 "--emu-offline takes away CPU %u while it is away already",
				 at->cpu);
			return -EINVAL;
		}
		away += holds(other, at->from_usec);
	}
	if (away < c->emu_cpus)
		return 0;
	snprintf(why->text, why->size,
		 "--emu-offline leaves no CPU when CPU %u is taken away; valid: at least one of "
		 "%u (--emu-cpus) stays at all times",
		 at->cpu, c->emu_cpus);
	return -EINVAL;
}

/* An emulated machine is kept by one process and read by another one, or one process does both. */
static int check_channel(const struct config *c, const struct config_why *why)
{
	const char *wrong = NULL;

	if (c->emulate && c->action == CONFIG_SERVE && !c->command)
		wrong = "--emulate needs a command to run: ptsnapd --emulate=PATH -- COMMAND ARGS";
	else if (c->emulate && c->emu_socket)
		wrong = "--emulate keeps a machine and --emu-socket reads one: not both";
	else if (c->emu_socket && c->source == CONFIG_INTEL_PT)
		wrong = "--emu-socket (EmulatorSocket=) is not for --source=intel_pt";
	else if (c->emu_socket && c->command)
		wrong = "--emu-socket (EmulatorSocket=) is for a command that runs elsewhere: no "
			"COMMAND here";
	if (!wrong)
		return 0;
	snprintf(why->text, why->size, "%s", wrong);
	return -EINVAL;
}

int config_check(const struct config *c, const struct config_why *why)
{
	/* --test-config does not need a command. */
	bool serves = c->action == CONFIG_SERVE && !c->command;
	int r = check_channel(c, why);

	for (size_t i = 0; i < c->n_emu_offline && r == 0; i++)
		r = check_offline(c, &c->emu_offline[i], why);
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
	int r = set_defaults(&c);

	c.argc = argc;
	c.argv = argv;
	if (r < 0)
		snprintf(why, why_size, "no memory");
	else
		r = read_arguments(argc, argv, &c, &because);
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
