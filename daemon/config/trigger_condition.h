/*
 * The keys of a trigger's condition, and what the keys of a trigger mean together. Private to this
 * room.
 */
#pragma once

#include "daemon/config/trigger_set.h"

/* Without CAP_SYS_RESOURCE the kernel takes only windows of whole 2 s. */
#define TRIGGER_STALL_DEFAULT	    "200ms"
#define TRIGGER_WINDOW_DEFAULT	    "2s"
#define TRIGGER_WITHIN_DEFAULT_USEC 1000000u

/* Parses TEXT, the value of a condition's KEY. 0; -EINVAL: KEY is none of a condition, or TEXT is
 * not valid. */
int trigger_condition_take(struct trigger_condition *c, enum trigger_key_id key, const char *text);
/* Sets what KEY says to its default; TRIGGER_N_KEYS: that of all keys. */
void trigger_condition_reset(struct trigger_condition *c, enum trigger_key_id key);
