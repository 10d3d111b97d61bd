/*
 * Credentials -> rank. Called by control.c with each call.
 */
#include "daemon/control/access.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void access_use(struct access *a, const char *name, const struct names *names)
{
	uint32_t gid = 0;
	int r = name && *name ? names_find(names, NAMES_GROUP, name, &gid) : -ENOENT;

	if (r == -EAGAIN)
		return;
	snprintf(a->admin_group, sizeof(a->admin_group), "%s", name ? name : "");
	a->have_admins = r == 0;
	a->admins = gid;
}

enum access_rank access_rank_of(const struct access *a, const struct peer *peer)
{
	uid_t uid = peer_credentials(peer)->uid;

	if (uid == 0 || uid == geteuid() || (a->have_admins && peer_in_group(peer, a->admins)))
		return ACCESS_ADMIN;
	return ACCESS_USER;
}
