/*
 * NUMA by system call and sysfs, without a library. Called where the copy area is made, and by
 * sources that know real CPUs.
 */
#include "capture/ring/numa.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As many as any kernel is built for (CONFIG_NODES_SHIFT is 10 at most). */
#define MAX_NODES     1024u
#define BITS_OF(word) (CHAR_BIT * sizeof(word))

/* "node12" -> 12; -1: another name. */
static int node_of_name(const char *name)
{
	unsigned node;
	char rest;

	if (strncmp(name, "node", 4) != 0 || !isdigit((unsigned char)name[4]) ||
	    sscanf(name + 4, "%4u%c", &node, &rest) != 1 || node >= MAX_NODES)
		return -1;
	return (int)node;
}

/* How many entries of PATH name a node, and one of them. */
static unsigned nodes_in(const char *path, int *ret_node)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	*ret_node = -1;
	if (dir == NULL)
		return 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		int node = node_of_name(e->d_name);

		if (node < 0)
			continue;
		*ret_node = node;
		n++;
	}
	closedir(dir);
	return n;
}

int numa_node_of_cpu(const char *sysfs, uint32_t cpu)
{
	char path[PATH_MAX];
	int node;

	snprintf(path, sizeof(path), "%s/devices/system/node", sysfs);
	if (nodes_in(path, &node) < 2)
		return -1;
	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u", sysfs, cpu);
	return nodes_in(path, &node) == 1 ? node : -1;
}

int numa_prefer(void *start, size_t size, int node)
{
	unsigned long mask[MAX_NODES / BITS_OF(unsigned long)] = {0};

	if (node < 0 || size == 0)
		return 0;
	if ((unsigned)node >= MAX_NODES)
		return -EINVAL;
	mask[(unsigned)node / BITS_OF(*mask)] = 1ul << ((unsigned)node % BITS_OF(*mask));
	/* The kernel reads one bit less than it is told (mm/mempolicy.c, get_nodes). */
	return syscall(SYS_mbind, start, size, MPOL_PREFERRED, mask, MAX_NODES + 1, 0) < 0 ? -errno
											   : 0;
}
