/*
 * Numbers in files of /proc and /sys and in config terms. Called by pmu*.c and proc*.c.
 */
#include "capture/proc/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool number_parse(const char *text, int base, uint64_t max, const char *stop, const char **ret_end,
		  uint64_t *ret)
{
	unsigned long long value;
	char *end;

	if (text[0] == '\0' || strchr("0123456789abcdefABCDEF", text[0]) == NULL)
		return false;
	/* A leading zero is no octal number here. */
	if (base == 0)
		base = text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10;
	else if (base == 16 && text[0] == '0' && (text[1] | 0x20) == 'x')
		return false;
	errno = 0;
	value = strtoull(text, &end, base);
	if (errno != 0 || end == text || value > max)
		return false;
	if (*end != '\0' && strchr(stop, *end) == NULL)
		return false;
	if (ret_end != NULL)
		*ret_end = end;
	*ret = value;
	return true;
}
