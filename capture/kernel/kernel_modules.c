/*
 * Lines of /proc/modules, such as
 * "virtio 20480 2 virtio_blk,virtio_pci, Live 0xffffffffc0213000 (E)". Called by kernel_text.c,
 * kernel_files.c and daemon/gather/kernel.c.
 */
#include "capture/kernel/kernel_modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/proc/number.h"
#include "proto/base.h"

static bool parse_line(const char *line, struct kernel_module *ret)
{
	size_t name = strcspn(line, " ");
	const char *at = strstr(line, " 0x");

	if (name == 0 || name >= sizeof(ret->name) || line[name] != ' ' || !at ||
	    !number_parse(line + name + 1, 10, UINT32_MAX, " ", NULL, &ret->size) ||
	    !number_parse(at + 1, 0, UINT64_MAX - ret->size, " \n", NULL, &ret->address))
		return false;
	memcpy(ret->name, line, name);
	ret->name[name] = '\0';
	return true;
}

static int take_line(struct kernel_modules *m, const char *line, size_t size)
{
	struct kernel_module module;

	bytes_put_block(&m->text, line, size);
	if (m->text.error || !parse_line(line, &module))
		return m->text.error;
	if (ARRAY_RESERVE(m->items, m->capacity, m->n + 1) < 0)
		return -ENOMEM;
	m->items[m->n++] = module;
	return 0;
}

int kernel_modules_read(const char *path, struct kernel_modules *ret)
{
	CLEANUP_FREE char *line = NULL;
	FILE *f = fopen(path, "re");
	size_t capacity = 0;
	ssize_t n;
	int r = 0;

	*ret = (struct kernel_modules){0};
	bytes_out_init(&ret->text, KERNEL_MODULES_MAX_TEXT);
	if (!f)
		return -errno;
	while (r == 0 && (n = getline(&line, &capacity, f)) > 0)
		r = take_line(ret, line, (size_t)n);
	if (r == 0 && ferror(f))
		r = -EIO;
	fclose(f);
	if (r < 0)
		kernel_modules_done(ret);
	return r;
}

void kernel_modules_done(struct kernel_modules *m)
{
	bytes_out_done(&m->text);
	free(TAKE_PTR(m->items));
	m->n = m->capacity = 0;
}

const struct kernel_module *kernel_modules_find(const struct kernel_modules *m,
						const struct kernel_module *x)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->items[i].address == x->address && m->items[i].size == x->size &&
		    strcmp(m->items[i].name, x->name) == 0)
			return &m->items[i];
	return NULL;
}
