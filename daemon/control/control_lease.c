/*
 * The methods Yield and Resume. They are answered when it has been done, so that who asks can go on
 * with Intel PT at once. Called by control.c.
 */
#include <errno.h>
#include <string.h>

#include "daemon/control/control_private.h"
#include "proto/varlink.h"

static void refuse(struct peer *peer, int r)
{
	const char *cause = strerror(-r);
	const char *error = CONTROL_INTERFACE ".NotTracing";

	if (r == -EOPNOTSUPP) {
		error = CONTROL_INTERFACE ".NotSupported";
		cause = "this source takes no Intel PT that it could hand back";
	} else if (r == -ENODEV) {
		error = CONTROL_INTERFACE ".NotSupported";
		cause = "this host has no Intel PT that could be handed back";
	}
	peer_error(peer, error, control_object("cause", json_object_new_string(cause)));
}

static void answer(struct control *c, struct peer *peer, int r)
{
	const struct lease *l = c->lease;

	if (r < 0)
		refuse(peer, r);
	else
		peer_reply(
			peer,
			control_object("untilUSec", l->away && l->until_usec != LEASE_FOR_EVER
							    ? json_object_new_uint64(l->until_usec)
							    : NULL),
			false);
}

static void ask(struct control *c, struct peer *peer, bool away, uint64_t for_usec)
{
	int r = c->lease ? lease_ask(c->lease, away, for_usec, peer_credentials(peer))
			 : -EOPNOTSUPP;

	if (r != LEASE_LATER)
		answer(c, peer, r);
	else if (!control_wait(&c->lease_waits, peer))
		control_busy(peer);
}

void control_yield(struct control *c, struct peer *peer, struct json_object *parameters)
{
	uint64_t for_usec = LEASE_FOR_EVER;

	if (varlink_get_u64(parameters, "forUSec", &for_usec) < 0 || for_usec == 0)
		control_invalid(peer, "forUSec");
	else
		ask(c, peer, true, for_usec);
}

void control_resume(struct control *c, struct peer *peer, struct json_object *parameters)
{
	(void)parameters;
	ask(c, peer, false, LEASE_FOR_EVER);
}

void control_on_lease(struct control *c, int r)
{
	struct peer *peer;

	while ((peer = control_take(&c->lease_waits)))
		answer(c, peer, r);
}
