/*
 * Checks a specification without the kernel and without files.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "capture/probe/probe_private.h"

static const struct probe_kind_info kinds[_PROBE_KINDS] = {
	[PROBE_SIGNAL] = {"signal", false, false, false},
	[PROBE_EXIT] = {"exit", false, false, false},
	[PROBE_EXEC] = {"exec", false, false, false},
	[PROBE_ENTRY] = {"entry", true, true, false},
	[PROBE_RETURN] = {"return", true, true, false},
	[PROBE_LATENCY] = {"latency", true, true, true},
	[PROBE_SPAN] = {"span", true, true, true},
	[PROBE_OOM] = {"oom", false, false, false},
	[PROBE_SYSCALL] = {"syscall", false, false, true},
	[PROBE_WAKEUP] = {"wakeup", false, false, true},
	[PROBE_OFFCPU] = {"offcpu", false, false, true},
	[PROBE_TRACEPOINT] = {"tracepoint", false, false, false},
	[PROBE_USDT] = {"usdt", true, true, false},
};

int probe_fail(char **ret_error, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(ret_error, format, args) < 0)
		*ret_error = NULL;
	va_end(args);
	return error;
}

const struct probe_kind_info *probe_kind_info(enum probe_kind kind)
{
	return (unsigned)kind < _PROBE_KINDS ? &kinds[kind] : NULL;
}

const char *probe_kind_name(enum probe_kind kind)
{
	const struct probe_kind_info *info = probe_kind_info(kind);

	return info ? info->name : NULL;
}

static bool too_long(const char *text, size_t max)
{
	return text && strnlen(text, max) == max;
}

static int check_strings(const struct probe_spec *s, char **ret_error)
{
	const struct {
		const char *name, *text;
		size_t max;
	} strings[] = {
		{"command name", s->comm, PROBE_COMM},	{"symbol", s->symbol, PROBE_STRING},
		{"second symbol", s->to, PROBE_STRING}, {"tracepoint", s->tracepoint, PROBE_STRING},
		{"filter", s->filter, PROBE_STRING},	{"path of the executable", s->exe, 4096},
		{"path of the file", s->file, 4096},
	};

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		if (!strings[i].text)
			continue;
		if (!*strings[i].text)
			return probe_fail(ret_error, -EINVAL, "The %s is empty.", strings[i].name);
		if (too_long(strings[i].text, strings[i].max))
			return probe_fail(ret_error, -EINVAL, "The %s is longer than %zu bytes.",
					  strings[i].name, strings[i].max - 1);
	}
	return 0;
}

static bool any_call(const struct probe_spec *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->syscalls); i++)
		if (s->syscalls[i])
			return true;
	return false;
}

/* Whether what is given fits the kind. */
static int check_fit(const struct probe_spec *s, const struct probe_kind_info *info,
		     char **ret_error)
{
	const struct {
		const char *what;
		bool given, wanted;
	} parts[] = {
		{"a file", s->file, info->file || s->kind == PROBE_EXEC},
		{"a symbol", s->symbol, info->symbol},
		{"a second symbol", s->to, s->kind == PROBE_SPAN},
		{"a limit", s->limit_ns, info->limit},
		{"signals", s->signals, s->kind == PROBE_SIGNAL},
		{"system calls", any_call(s), s->kind == PROBE_SYSCALL},
		{"a tracepoint", s->tracepoint, s->kind == PROBE_TRACEPOINT},
		{"a filter over fields", s->filter, s->kind == PROBE_TRACEPOINT},
		{"a status", s->status_min || s->status_max, s->kind == PROBE_EXIT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].given && !parts[i].wanted)
			return probe_fail(ret_error, -EINVAL,
					  "A probe of kind %s has no use for %s.", info->name,
					  parts[i].what);
	return 0;
}

static int check_needs(const struct probe_spec *s, const struct probe_kind_info *info,
		       char **ret_error)
{
	const struct {
		const char *what;
		bool missing;
	} needs[] = {
		{"a file", info->file && !s->file},
		{"a symbol", info->symbol && !s->symbol},
		{"a second symbol", s->kind == PROBE_SPAN && !s->to},
		{"a limit", info->limit && !s->limit_ns},
		{"a tracepoint", s->kind == PROBE_TRACEPOINT && !s->tracepoint},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (needs[i].missing)
			return probe_fail(ret_error, -EINVAL, "A probe of kind %s needs %s.",
					  info->name, needs[i].what);
	return 0;
}

int probe_check(const struct probe_spec *s, char **ret_error)
{
	const struct probe_kind_info *info = probe_kind_info(s->kind);
	int r;

	if (!info)
		return probe_fail(ret_error, -EINVAL, "There is no such kind of probe.");
	if (s->pid < 0)
		return probe_fail(ret_error, -EINVAL, "A process id is not negative.");
	if (s->status_min > s->status_max)
		return probe_fail(ret_error, -EINVAL,
				  "The lowest status is greater than the highest.");
	r = check_strings(s, ret_error);
	if (r < 0)
		return r;
	r = check_needs(s, info, ret_error);
	if (r < 0)
		return r;
	return check_fit(s, info, ret_error);
}
