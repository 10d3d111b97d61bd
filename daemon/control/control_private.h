/*
 * Declarations that control.c (the table of methods) shares with the files that answer methods.
 */
#pragma once

#include "daemon/control/control.h"

#define CONTROL_INTERFACE "io.ptsnap.recorder"

/* Errors. */
void control_invalid(struct peer *peer, const char *field);
void control_busy(struct peer *peer);
/* Only administrators may do ACTION: the name of a method, or a part of what it does. */
void control_denied(const struct control *c, struct peer *peer, const char *action);
void control_no_such_trigger(struct peer *peer, const char *name);
void control_not_tracing(struct peer *peer, const char *cause);
void control_no_such_report(struct peer *peer, const char *id);
/* Says why snapshot E has no part of the kind that Get asked for: IMAGE, BUNDLE or a report. */
void control_get_refuse(struct peer *peer, const struct entry *e, bool image, bool bundle);

/* {"report": E} as PEER may see it; E may be NULL. */
struct json_object *control_report(const struct control *c, const struct peer *peer,
				   const struct entry *e);
/* The part of Status' answer (taken over) that users may see. */
struct json_object *control_status_for_user(struct json_object *status);
/* Answers Get with the report of E for PEER's uid alone: now, or when it has been made. */
void control_get_for_user(struct control *c, struct peer *peer, const struct entry *e);
/* Answers Get. FD is taken over. */
void control_send_fd(struct peer *peer, const char *name, const char *media_type, int fd,
		     uint64_t size);

/* {KEY: VALUE}; VALUE is taken over. */
struct json_object *control_object(const char *key, struct json_object *value);
void control_add(struct json_object *o, const char *key, struct json_object *value);

/* Keeps PEER, whose call is answered later. False: too many calls wait. */
bool control_wait(struct control_waits *w, struct peer *peer);
/* Takes a peer out of W; NULL: none is left. */
struct peer *control_take(struct control_waits *w);

/* Methods. */
void control_snapshot(struct control *c, struct peer *peer, struct json_object *parameters);
void control_yield(struct control *c, struct peer *peer, struct json_object *parameters);
void control_resume(struct control *c, struct peer *peer, struct json_object *parameters);
void control_monitor(struct control *c, struct peer *peer, struct json_object *parameters);
void control_check(struct control *c, struct peer *peer, struct json_object *parameters);
void control_list(struct control *c, struct peer *peer, struct json_object *parameters);
void control_get(struct control *c, struct peer *peer, struct json_object *parameters);
void control_pin(struct control *c, struct peer *peer, struct json_object *parameters);
void control_delete(struct control *c, struct peer *peer, struct json_object *parameters);
void control_add_trigger(struct control *c, struct peer *peer, struct json_object *parameters);
void control_remove_trigger(struct control *c, struct peer *peer, struct json_object *parameters);
void control_list_triggers(struct control *c, struct peer *peer, struct json_object *parameters);
void control_test_trigger(struct control *c, struct peer *peer, struct json_object *parameters);
