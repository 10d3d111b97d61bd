/*
 * What config.c (the command line) and config_emu.c (the options of the emulated machine) share.
 */
#pragma once

#include "daemon/config.h"

/* Options that config_emu.c understands; beyond config.c's own. */
enum config_emu_code {
	OPTION_EMU_PLUGIN = 512,
	OPTION_EMU_QEMU,
	OPTION_EMU_TRUTH,
	OPTION_EMU_CLOCK,
	OPTION_EMU_CPUS,
	OPTION_EMU_QUANTUM,
	OPTION_EMU_OVERFLOW,
	OPTION_EMU_LOSE,
	OPTION_EMU_OFFLINE,
	OPTION_EMU_BUILD_ID,
	OPTION_EMU_TASKS,
};

/* Where the one line for the user goes. */
struct config_why {
	char *text;
	size_t size;
};

/* Option CODE with VALUE into C. 0 or -EINVAL with WHY. */
int config_emu_option(int code, const char *value, struct config *c, const struct config_why *why);
/* What options mean together: known only when all are there. 0 or -EINVAL with WHY. */
int config_emu_check(const struct config *c, const struct config_why *why);

/* -EINVAL, with "--OPTION=VALUE is not valid; valid: VALID" in WHY. */
int config_bad_value(const char *option, const char *value, const char *valid,
		     const struct config_why *why);
int config_path(const char *option, const char *value, char *ret, const struct config_why *why);
int config_text(const char *option, const char *value, const char **ret,
		const struct config_why *why);
