/*
 * uname, boot id and /proc/cpuinfo -> manifest. What cannot be read stays absent. Called by
 * evidence.c in the loop's thread.
 */
#include "daemon/gather/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

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

/* "key	: value\n" -> value, NULL when LINE has another key. */
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

/* The first processor of the file, which an empty line ends. */
static int host_cpu(struct manifest *m, const char *cpuinfo)
{
	FILE *f = fopen(cpuinfo, "re");
	char line[512];
	int r = 0;

	if (!f)
		return 0;
	while (r == 0 && fgets(line, sizeof(line), f) && line[0] != '\n')
		r = host_cpu_line(m, line);
	fclose(f);
	return r;
}

int host_describe(struct manifest *m, const char *cpuinfo, bool with_cpu)
{
	char boot_id[HOST_BOOT_ID_SIZE];
	struct utsname u;

	if (uname(&u) < 0)
		return -errno;
	host_boot_id(boot_id);
	m->hostname = strdup(u.nodename);
	m->kernel_release = strdup(u.release);
	m->machine = strdup(u.machine);
	m->boot_id = strdup(boot_id);
	if (!m->hostname || !m->kernel_release || !m->machine || !m->boot_id)
		return -ENOMEM;
	return with_cpu ? host_cpu(m, cpuinfo) : 0;
}
