/*
 * Reads the facts that several parts of the check need, and makes findings.
 */
#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "capture/perf/perf_event.h"
#include "capture/proc/number.h"
#include "capture/proc/procfile.h"
#include "daemon/check/check_private.h"

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

	assert(level < ARRAY_SIZE(names));
	return names[level];
}

struct json_object *finding_to_json(const struct finding *finding)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "level",
			       json_object_new_string(finding_level_name(finding->level)));
	json_object_object_add(o, "what", json_object_new_string(finding->what));
	json_object_object_add(o, "text", json_object_new_string(finding->text));
	json_object_object_add(o, "fix",
			       *finding->fix ? json_object_new_string(finding->fix) : NULL);
	return o;
}

/* Ends a text that was cut with "...". */
static void mark_cut(char *text, size_t size, int wanted)
{
	if (wanted >= (int)size)
		strcpy(text + size - 4, "...");
}

void check_say(struct check *c, enum finding_level level, const char *what, const char *fix,
	       const char *format, ...)
{
	struct finding f = {.level = level};
	va_list args;
	int n;

	if (level == FINDING_FAILURE && c->emulated)
		f.level = FINDING_NOTE;
	snprintf(f.what, sizeof(f.what), "%s", what);
	va_start(args, format);
	n = vsnprintf(f.text, sizeof(f.text), format, args);
	va_end(args);
	mark_cut(f.text, sizeof(f.text), n);
	mark_cut(f.fix, sizeof(f.fix), snprintf(f.fix, sizeof(f.fix), "%s", fix));
	finding_clean(&f);
	c->failures += f.level == FINDING_FAILURE;
	c->fn(c->userdata, &f);
}

ssize_t check_read(const char *root, const char *path, char *ret, size_t size)
{
	char full[PATH_MAX];
	ssize_t n;

	*ret = '\0';
	if (snprintf(full, sizeof(full), "%s/%s", root, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	n = procfile_read(AT_FDCWD, full, ret, size);
	if (n < 0)
		*ret = '\0';
	if (n > 0 && ret[n - 1] == '\n')
		ret[--n] = '\0';
	return n;
}

bool check_exists(const char *root, const char *path)
{
	char full[PATH_MAX];

	return snprintf(full, sizeof(full), "%s/%s", root, path) < (int)sizeof(full) &&
	       access(full, F_OK) == 0;
}

bool check_number(const char *root, const char *path, int64_t *ret)
{
	char text[64];
	uint64_t value;
	bool negative;

	if (check_read(root, path, text, sizeof(text)) <= 0)
		return false;
	negative = *text == '-';
	if (!number_parse(text + negative, 10, INT64_MAX, "", NULL, &value))
		return false;
	*ret = negative ? -(int64_t)value : (int64_t)value;
	return true;
}

bool check_value(const char *text, const char *key, char *ret, size_t size)
{
	size_t length = strlen(key);

	*ret = '\0';
	for (const char *line = text; *line;) {
		size_t end = strcspn(line, "\n"), name = strcspn(line, "\t:\n");

		if (name == length && memcmp(line, key, length) == 0) {
			size_t blank = name + strspn(line + name, "\t: ");

			blank = MIN_OF(blank, end);
			snprintf(ret, size, "%.*s", (int)(end - blank), line + blank);
			return true;
		}
		line += end + (line[end] == '\n');
	}
	return false;
}

bool check_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += length)
		if ((at == text || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

bool check_capable(const struct check *c, enum check_capability capability)
{
	return c->capabilities >> capability & 1;
}

bool check_trace_kernel(const struct check *c)
{
	return c->config->trace & SOURCE_TRACE_KERNEL;
}

struct check_size check_bytes(uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	struct check_size ret;
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(ret.text, sizeof(ret.text), "%.*f %s", unit && value < 100 ? 1 : 0, value,
		 units[unit]);
	return ret;
}

/* Reads what /proc/cpuinfo says of the first CPU. Differences between CPUs come from CPUID. */
static void look_at_cpu(struct check *c, char *text, size_t size)
{
	char flags[8192], number[32];

	check_read(c->paths->proc, "cpuinfo", text, size);
	check_value(text, "vendor_id", c->vendor, sizeof(c->vendor));
	check_value(text, "model name", c->model_name, sizeof(c->model_name));
	check_value(text, "cpu family", number, sizeof(number));
	number_parse(number, 10, UINT32_MAX, "", NULL, &c->family);
	check_value(text, "model", number, sizeof(number));
	number_parse(number, 10, UINT32_MAX, "", NULL, &c->model);
	check_value(text, "flags", flags, sizeof(flags));
	c->flag_pt = check_word(flags, "intel_pt");
	c->flag_hypervisor = check_word(flags, "hypervisor");
}

/* Finds the CPUs that are online and that CPUs= names, and asks each for its CPUID. A CPU that does
 * not answer is left as unknown. */
static void look_at_cpus(struct check *c, char *text, size_t size)
{
	struct cpulist wanted;

	check_read(c->paths->sys, "devices/system/cpu/online", text, size);
	if (cpulist_parse(text, &c->online) < 0 || cpulist_count(&c->online) == 0)
		cpulist_parse("0", &c->online);
	c->n_online = cpulist_count(&c->online);
	if (c->config->cpus && cpulist_parse(c->config->cpus, &wanted) >= 0)
		for (size_t i = 0; i < ARRAY_SIZE(wanted.bits); i++)
			c->online.bits[i] &= wanted.bits[i];
	c->cpuids = calloc(cpulist_count(&c->online) + 1, sizeof(*c->cpuids));
	for (uint32_t cpu = 0; c->cpuids && cpu < CPULIST_MAX; cpu++)
		if (cpulist_has(&c->online, cpu))
			cpuid_read(&c->paths->calls.cpuid, cpu, &c->cpuids[c->n_cpuids++]);
}

uint32_t check_first_cpu(const struct check *c)
{
	for (uint32_t cpu = 0; cpu < CPULIST_MAX; cpu++)
		if (cpulist_has(&c->online, cpu))
			return cpu;
	return 0;
}

void check_look(struct check *c)
{
	char text[CHECK_TEXT_MAX], value[32];
	int64_t number;

	c->emulated = c->config->source == CONFIG_EMULATED || c->config->emu_socket;
	look_at_cpu(c, text, sizeof(text));
	look_at_cpus(c, text, sizeof(text));
	check_read(c->paths->proc, "self/status", text, sizeof(text));
	if (check_value(text, "CapEff", value, sizeof(value)))
		number_parse(value, 16, UINT64_MAX, "", NULL, &c->capabilities);
	c->seccomp = check_value(text, "Seccomp", value, sizeof(value)) && *value == '2';
	c->paranoid = INT_MAX;
	if (check_number(c->paths->proc, "sys/kernel/perf_event_paranoid", &number))
		c->paranoid = (int)MAX_OF(INT_MIN, MIN_OF(number, INT_MAX - 1));
	c->open_error = perf_attr_probe(check_first_cpu(c), false, &c->kinds);
}
