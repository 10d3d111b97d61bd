/*
 * The facts of this host that go into every manifest: kernel, boot id, processor, and CPUs that do
 * not trace. A fact that cannot be read stays absent.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/gather/evidence.h"
#include "proto/base.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

void host_boot_id(char ret[HOST_BOOT_ID_SIZE])
{
	CLEANUP_CLOSE int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, ret, HOST_BOOT_ID_SIZE - 1) == HOST_BOOT_ID_SIZE - 1)
		ret[HOST_BOOT_ID_SIZE - 1] = '\0';
	else
		strcpy(ret, "00000000-0000-0000-0000-000000000000");
}

/* The value in "key	: value\n", NULL when LINE has another key. */
static const char *cpuinfo_value(char *line, const char *key)
{
	size_t n = strlen(key);
	char *colon = strchr(line, ':');

	if (strncmp(line, key, n) != 0 || !colon ||
	    strspn(line + n, " \t") != (size_t)(colon - line) - n)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return colon[1] ? colon + 2 : colon + 1;
}

static int host_cpu_line(struct manifest *m, char *line)
{
	const char *v;

	if ((v = cpuinfo_value(line, "vendor_id")))
		m->cpu_intel = strcmp(v, "GenuineIntel") == 0;
	else if ((v = cpuinfo_value(line, "cpu family")))
		m->have_cpu = sscanf(v, "%u", &m->cpu_family) == 1;
	else if ((v = cpuinfo_value(line, "model")))
		m->have_cpu = m->have_cpu && sscanf(v, "%u", &m->cpu_model) == 1;
	else if ((v = cpuinfo_value(line, "stepping")))
		m->have_cpu = m->have_cpu && sscanf(v, "%u", &m->cpu_stepping) == 1;
	else if ((v = cpuinfo_value(line, "model name")) && !m->cpu_model_name)
		return (m->cpu_model_name = strdup(v)) ? 0 : -ENOMEM;
	return 0;
}

int host_describe(struct manifest *m, const char *cpuinfo, bool with_cpu)
{
	char boot_id[HOST_BOOT_ID_SIZE], line[512];
	struct utsname u;
	FILE *f;
	int r = 0;

	if (uname(&u) < 0)
		return -errno;
	host_boot_id(boot_id);
	m->hostname = strdup(u.nodename);
	m->kernel_release = strdup(u.release);
	m->machine = strdup(u.machine);
	m->boot_id = strdup(boot_id);
	if (!m->hostname || !m->kernel_release || !m->machine || !m->boot_id)
		return -ENOMEM;
	f = with_cpu ? fopen(cpuinfo, "re") : NULL;
	if (!f)
		return 0;
	/* An empty line ends the first processor. */
	while (r == 0 && fgets(line, sizeof(line), f) && line[0] != '\n')
		r = host_cpu_line(m, line);
	fclose(f);
	return r;
}

/* The name of a fault (decoder/packet/fault.h); NULL: the CPU is traced. */
static const char *note_kind(enum source_cpu_state state)
{
	switch (state) {
	case SOURCE_CPU_TRACING: return NULL;
	case SOURCE_CPU_OFFLINE: return "cpu-offline";
	case SOURCE_CPU_BUSY: return "pt-busy";
	case SOURCE_CPU_YIELDED: return "pt-yielded";
	case SOURCE_CPU_FAILED: return "pt-failed";
	case SOURCE_CPU_NO_PT: return "pt-unavailable";
	}
	return NULL;
}

/* Adds a note, or counts the CPU in a note from FIRST on that says the same. */
static int add_cpu_note(struct manifest *m, size_t first, const char *kind, const char *why)
{
	int r;

	for (size_t i = first; i < m->n_notes; i++) {
		struct manifest_note *note = &m->notes[i];

		if (strcmp(note->kind, kind) == 0 && strcmp(note->why ? note->why : "", why) == 0) {
			note->count++;
			return 0;
		}
	}
	r = manifest_add_note(m, kind, 1, *why ? why : NULL);
	/* A manifest that is full of notes says enough. */
	return r == -ENOSPC ? 0 : r;
}

int cpunotes_add(const struct source *s, struct manifest *m)
{
	size_t first = m->n_notes;
	int r = 0;

	for (size_t i = 0; i < s->n_cpus && r == 0; i++) {
		const char *kind = note_kind(s->cpus[i].state);

		if (kind)
			r = add_cpu_note(m, first, kind, s->cpus[i].why);
	}
	return r;
}
