/*
 * Called by source_perf.c when PT is busy, and by the check.
 */
#include "capture/proc/holders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "capture/proc/number.h"
#include "capture/proc/procfile.h"
#include "proto/base.h"

#define EVENT_LINK "anon_inode:[perf_event]"

static void dir_closep(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

static bool is_event(int fds, const char *name)
{
	char target[sizeof(EVENT_LINK)];
	ssize_t n = readlinkat(fds, name, target, sizeof(target));

	return n == sizeof(EVENT_LINK) - 1 && memcmp(target, EVENT_LINK, (size_t)n) == 0;
}

/* 1: holds a perf event, 0: does not or has gone, -errno: it cannot be known. */
static int holds_event(int process)
{
	CLEANUP(dir_closep) DIR *fds = NULL;
	const struct dirent *d;
	int r = procfile_opendir(process, "fd", &fds);

	if (r < 0)
		return r == -ESRCH ? 0 : r;
	while ((d = readdir(fds)) != NULL)
		if (is_event(dirfd(fds), d->d_name))
			return 1;
	return 0;
}

static void add(struct holders *h, uint32_t pid, int process)
{
	struct holder new = {.pid = pid, .comm = "?"};
	size_t at = MIN_OF(h->n, HOLDERS_MAX);

	h->n++;
	(void)procfile_comm(process, "comm", new.comm, sizeof(new.comm));
	while (at > 0 && h->all[at - 1].pid > pid)
		at--;
	if (at == HOLDERS_MAX)
		return;
	memmove(&h->all[at + 1], &h->all[at],
		(MIN_OF(h->n, HOLDERS_MAX) - 1 - at) * sizeof(h->all[0]));
	h->all[at] = new;
}

static void look_at(struct holders *h, const char *proc, uint32_t pid)
{
	CLEANUP_CLOSE int process = -EBADF;
	int r = procfile_process(proc, pid, &process);

	if (r == 0)
		r = holds_event(process);
	if (r > 0)
		add(h, pid, process);
	h->partial |= r < 0 && r != -ESRCH;
}

int holders_find(const char *proc, uint32_t own_pid, struct holders *ret)
{
	CLEANUP(dir_closep) DIR *all = NULL;
	const struct dirent *d;
	uint64_t pid;
	int r = procfile_opendir(AT_FDCWD, proc, &all);

	*ret = (struct holders){.n = 0};
	if (r < 0)
		return r == -ESRCH ? -ENOENT : r;
	while ((d = readdir(all)) != NULL)
		if (number_parse(d->d_name, 10, UINT32_MAX, "", NULL, &pid) && pid != own_pid)
			look_at(ret, proc, (uint32_t)pid);
	return 0;
}

static void make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

void holders_format(const struct holders *h, char *ret, size_t size)
{
	size_t used = 0, shown = MIN_OF(h->n, HOLDERS_MAX);

	snprintf(ret, size, "no process that can be seen");
	for (size_t i = 0; i < shown && used < size; i++) {
		struct holder one = h->all[i];

		make_printable(one.comm);
		used += (size_t)snprintf(ret + used, size - used, "%s%s (pid %u)",
					 i > 0 ? ", " : "", one.comm, one.pid);
	}
	if (h->n > shown && used < size)
		snprintf(ret + used, size - used, " and %zu more", h->n - shown);
}
