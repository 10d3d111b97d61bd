/*
 * Fuzzes the parsers of all settings. Invariants: an accepted text is accepted again with the same
 * result; a refused text changes nothing.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "daemon/config/config_setting.h"
#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *const argv[] = {"ptsnapd", NULL};
	CLEANUP_FREE char *text = strndup((const char *)bytes, size);
	struct config c;
	char why[256];

	assert(config_parse(1, argv, &c, why, sizeof(why)) == 0);
	for (size_t i = 0; i < config_n_settings; i++) {
		const struct config_setting *s = &config_settings[i];
		const struct config before = c;
		int r = config_set(&c, i, text, CONFIG_BY_FILE, "file", 1);

		assert(r == 0 || r == -EINVAL);
		if (r == 0) {
			struct config again = c;

			assert(strcmp(c.values[i].text, text) == 0);
			assert(s->type->take(s, c.values[i].text, &again) == 0);
			assert(memcmp(&again, &c, sizeof(c)) == 0);
		} else
			assert(memcmp(&before, &c, sizeof(c)) == 0);
	}
	config_done(&c);
	return 0;
}
