/*
 * ptsnap-generator: writes memory limits for our units, calculated from ptsnapd.conf.
 *
 * systemd runs this program at boot and at each reload (systemd.generator(7)), with the directory
 * for its units as the first argument. The program starts nothing and waits for nothing. If it
 * fails, the limits in the units themselves hold.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/config/config.h"

#define WHY_SIZE 1024

/* The recorder tells what is wrong in the files, when it starts. */
static void on_config_line(void *userdata, const char *text)
{
	(void)userdata;
	(void)text;
}

static int generate(struct config *config)
{
	struct config_warn warn = {.line = on_config_line};
	struct unit_limits_host host;
	struct unit_limits limits;
	char why[WHY_SIZE];
	int r = config_read_files(config, config_directories, &warn, why, sizeof(why));

	if (r < 0) {
		fprintf(stderr, "ptsnap-generator: %s\n", why);
		return r;
	}
	unit_limits_host(&host);
	unit_limits(config, &host, &limits);
	r = unit_limits_write(&limits, config->command[0]);
	if (r < 0)
		fprintf(stderr, "ptsnap-generator: %s: %s\n", config->command[0], strerror(-r));
	return r;
}

/* The options are the recorder's, of which --config is useful here; the directories take the place
 * of COMMAND. */
int main(int argc, char **argv)
{
	struct config config;
	char why[WHY_SIZE] = "usage: ptsnap-generator [OPTIONS] DIRECTORY...";
	int r = config_parse(argc, argv, &config, why, sizeof(why));

	if (r != 0 || !config.command) {
		fprintf(stderr, "ptsnap-generator: %s\n", why);
		return 1;
	}
	r = generate(&config);
	config_done(&config);
	return r < 0;
}
