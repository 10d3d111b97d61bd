/*
 * The only place where ptsnapctl writes messages. Called from every verb.
 */
#include "ctl/base/say.h"

#include <stdarg.h>
#include <stdio.h>

#include "ctl/base/text.h"

static void say_list(const char *format, va_list arguments)
{
	CLEANUP_FREE char *line = NULL;

	fputs("ptsnapctl: ", stderr);
	if (vasprintf(&line, format, arguments) < 0) {
		line = NULL;
		fputs("out of memory\n", stderr);
		return;
	}
	text_puts(stderr, line, 0);
	fputc('\n', stderr);
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say_list(format, arguments);
	va_end(arguments);
}

int say_error(int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say_list(format, arguments);
	va_end(arguments);
	return code;
}
