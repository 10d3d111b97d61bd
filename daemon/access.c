/*
 * Credentials -> rank. Called by control.c with each call.
 */
#include "daemon/access.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "proto/base.h"

/* Of one group with many members. */
#define GROUP_BUFFER (1u << 20)

static bool is_number(const char *name)
{
	return *name != '\0' && name[strspn(name, "0123456789")] == '\0';
}

/* 0 or -ENOENT; where the host's list cannot be read there is no group either. */
static int find_group(const char *name, gid_t *ret)
{
	CLEANUP_FREE char *buffer = malloc(GROUP_BUFFER);
	struct group group, *found = NULL;
	unsigned long long gid;

	if (is_number(name)) {
		gid = strtoull(name, NULL, 10);
		*ret = (gid_t)gid;
		return gid < UINT32_MAX && strlen(name) <= 10 ? 0 : -ENOENT;
	}
	if (!buffer || getgrnam_r(name, &group, buffer, GROUP_BUFFER, &found) != 0 || !found)
		return -ENOENT;
	*ret = group.gr_gid;
	return 0;
}

void access_init(struct access *a, const char *name)
{
	*a = (struct access){0};
	if (!name || !*name)
		return;
	snprintf(a->admin_group, sizeof(a->admin_group), "%s", name);
	a->have_admins = find_group(name, &a->admins) == 0;
	if (!a->have_admins)
		log_info("AdminGroup=%s: this host has no such group, so only root is an "
			 "administrator of the recorder",
			 name);
}

enum access_rank access_rank_of(const struct access *a, const struct peer *peer)
{
	uid_t uid = peer_credentials(peer)->uid;

	if (uid == 0 || uid == geteuid() || (a->have_admins && peer_in_group(peer, a->admins)))
		return ACCESS_ADMIN;
	return ACCESS_USER;
}
