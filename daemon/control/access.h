/*
 * Who may what: the ranks of those who connect, by the credentials that the kernel noted when they
 * did.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/config/names.h"
#include "daemon/control/peer.h"

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

/* NAME is a group's name or number, "" or NULL: none. One that the host does not have is nobody; of
 * one that NAMES do not know (yet) nothing changes. At the start, at a reload, and when more is
 * known.
 */
void access_use(struct access *a, const char *name, const struct names *names);
enum access_rank access_rank_of(const struct access *a, const struct peer *peer);
