/*
 * What control.c (the table of methods, and those about snapshots) shares with control_lease.c and
 * control_check.c.
 */
#pragma once

#include "daemon/control.h"

#define CONTROL_INTERFACE "io.ptsnap.recorder"

void control_invalid(struct peer *peer, const char *field);
void control_busy(struct peer *peer);
/* {KEY: VALUE}; VALUE is taken over. */
struct json_object *control_object(const char *key, struct json_object *value);
void control_add(struct json_object *o, const char *key, struct json_object *value);
/* PEER's call is answered later. False: too many wait. */
bool control_wait(struct control_waits *w, struct peer *peer);
/* One that waits, and does no longer; NULL: nobody is left. */
struct peer *control_take(struct control_waits *w);

/* Methods. */
void control_yield(struct control *c, struct peer *peer, struct json_object *parameters);
void control_resume(struct control *c, struct peer *peer, struct json_object *parameters);
void control_check(struct control *c, struct peer *peer, struct json_object *parameters);
