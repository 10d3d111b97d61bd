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
/* Places of the manifest's list of notes that are left to notes of other things. */
#define NOTES_LEFT 256

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

/* Adds a note of what was dark before the snapshot's stop, or counts it as unlisted. */
static int add_dark_note(struct manifest *m, const struct source_cpu *cpu,
			 const struct dark_span *span, uint64_t *unlisted)
{
	struct manifest_note note = {
		.kind = (char *)span->kind,
		.count = 1,
		.why = *span->why ? (char *)span->why : NULL,
		.cpu = cpu->cpu,
		.since_ns = span->since_ns,
		.until_ns = MIN_OF(span->until_ns, cpu->frozen_ns),
	};

	if (m->n_notes + NOTES_LEFT < MANIFEST_MAX_NOTES)
		return manifest_add_note_at(m, &note);
	(*unlisted)++;
	return 0;
}

/* Whether SPAN began before the snapshot's stop. Without a clock nobody knows, but the last copy
 * was the snapshot's own. */
static bool is_before(const struct dark_span *span, uint64_t frozen_ns)
{
	if (frozen_ns == MANIFEST_ABSENT)
		return !span->open && strcmp(span->kind, DARK_COPY) != 0;
	return span->since_ns < frozen_ns;
}

/* The newest first, as they matter most. */
static int add_dark_notes(struct manifest *m, const struct source_cpu *cpu, uint64_t *unlisted)
{
	const struct dark *d = &cpu->dark;
	struct manifest_note forgotten = {
		.kind = (char *)DARK_UNLISTED,
		.count = d->forgotten,
		.cpu = cpu->cpu,
		.since_ns = MANIFEST_ABSENT,
		.until_ns = d->forgotten_until_ns,
	};
	int r = 0;

	for (size_t i = d->n; i-- > 0 && r == 0;)
		if (is_before(dark_at(d, i), cpu->frozen_ns))
			r = add_dark_note(m, cpu, dark_at(d, i), unlisted);
	if (r < 0 || d->forgotten == 0)
		return r;
	if (m->n_notes + NOTES_LEFT < MANIFEST_MAX_NOTES)
		return manifest_add_note_at(m, &forgotten);
	*unlisted += d->forgotten;
	return 0;
}

int cpunotes_add(const struct source *s, struct manifest *m)
{
	size_t first = m->n_notes;
	uint64_t unlisted = 0;
	int r = 0;

	for (size_t i = 0; i < s->n_cpus && r == 0; i++) {
		const struct source_cpu *cpu = &s->cpus[i];
		const char *kind = source_cpu_state_fault(cpu->state);

		/* A span says the same, and since when. */
		if (kind && (!dark_open(&cpu->dark) || cpu->frozen_ns == MANIFEST_ABSENT))
			r = add_cpu_note(m, first, kind, cpu->why);
	}
	for (size_t i = 0; i < s->n_cpus && r == 0; i++)
		r = add_dark_notes(m, &s->cpus[i], &unlisted);
	if (r == 0 && unlisted > 0)
		r = manifest_add_note(m, DARK_UNLISTED, unlisted,
				      "the manifest has no room for more");
	return r;
}
