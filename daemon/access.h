/*
 * Who may what: the ranks of those who connect, by the credentials that the kernel noted when they
 * did.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/peer.h"

enum access_rank {
	ACCESS_ANYBODY = 0, /* who can connect at all */
	ACCESS_USER,	    /* so; of what others did they are shown nothing */
	ACCESS_ADMIN,	    /* root, our own user, members of the group AdminGroup= */
};

struct access {
	bool have_admins; /* there is such a group */
	gid_t admins;
	char admin_group[64]; /* its name, for messages; "": nobody */
};

/* NAME is a group's name or number, "" or NULL: none. One that the host does not have is nobody,
 * which is said once, here. At the start and at a reload. */
void access_init(struct access *a, const char *name);
enum access_rank access_rank_of(const struct access *a, const struct peer *peer);
