/*
 * The page of `ptsnapctl info', and how it may look.
 */
#include "ctl/show/show.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

#define COLUMNS_MIN 80u
#define COLUMNS_MAX 400u

struct show_style show_style_of_stdout(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	struct show_style style = {.columns = COLUMNS_MIN};
	struct winsize size;

	style.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	if (!isatty(STDOUT_FILENO))
		return style;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		style.columns = MIN_OF(MAX_OF((unsigned)size.ws_col, COLUMNS_MIN), COLUMNS_MAX);
	style.color = !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
	return style;
}

void show_info(FILE *out, struct json_object *report, const struct show_style *style)
{
	(void)style;
	show_report(out, report);
}
