/*
 * The emulated machine: the shared memory and its table of tasks. Called by plugin.c and task.c in
 * the emulator's process.
 */
#include "capture/emu/plugin/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map_file(struct machine *m, const char *path)
{
	struct stat st;
	void *map;
	int r, fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && st.st_size < EMURING_HEAD_SIZE)
		r = -EBADMSG;
	if (r == 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = map == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	if (r < 0)
		return r;
	m->head = map;
	m->size = (uint64_t)st.st_size;
	return 0;
}

static void machine_close(struct machine *m)
{
	free(m->cpus);
	if (m->head != NULL)
		munmap(m->head, m->size);
	memset(m, 0, sizeof(*m));
}

int machine_open(struct machine *m, const char *path)
{
	int r;

	memset(m, 0, sizeof(*m));
	r = map_file(m, path);
	if (r < 0)
		return r;
	r = emuring_check(m->head, m->size);
	if (r == 0) {
		emuring_attach(&m->ring, m->head);
		m->n_cpus = m->ring.fixed.n_cpus;
		m->cpus = calloc(m->n_cpus, sizeof(*m->cpus));
		r = m->cpus == NULL ? -ENOMEM : 0;
	}
	if (r < 0) {
		machine_close(m);
		return r;
	}
	for (uint32_t i = 0; i < m->n_cpus; i++)
		vcpu_attach(&m->cpus[i], &m->ring, i);
	return 0;
}

/* The place of TID, EMURING_NO_TASK: none. */
static uint32_t machine_find_task(const struct machine *m, uint32_t tid)
{
	for (uint32_t i = 0; i < m->ring.fixed.max_tasks; i++)
		if (atomic_load(&emuring_task_at(&m->ring, i)->tid) == tid)
			return i;
	return EMURING_NO_TASK;
}

static uint32_t claim_free(struct machine *m, uint32_t tid)
{
	for (uint32_t i = 0; i < m->ring.fixed.max_tasks; i++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&emuring_task_at(&m->ring, i)->tid, &none, tid))
			return i;
	}
	return EMURING_NO_TASK;
}

uint32_t machine_add_task(struct machine *m, const struct sideband_task *who)
{
	uint32_t index = machine_find_task(m, who->tid);
	bool known = index != EMURING_NO_TASK;
	struct emuring_task *t;

	if (!known)
		index = claim_free(m, who->tid);
	if (index == EMURING_NO_TASK)
		return index;
	t = emuring_task_at(&m->ring, index);
	atomic_store(&t->pid, who->pid);
	atomic_store(&t->ppid, who->ppid);
	atomic_store(&t->ptid, who->ptid);
	atomic_store(&t->expelled, 0);
	atomic_store(&t->stopped, 0);
	if (!known)
		atomic_store(&t->cpu, index % m->n_cpus);
	return index;
}
