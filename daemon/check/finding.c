/*
 * Called by those who make findings and those who show them.
 */
#include "daemon/check/finding.h"

static void clean(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

void finding_clean(struct finding *f)
{
	clean(f->text);
	clean(f->fix);
}

const char *finding_level_name(enum finding_level level)
{
	static const char *const names[] = {"ok", "note", "warning", "failure"};

	return names[level];
}
