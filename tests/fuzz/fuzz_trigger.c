/*
 * Fuzzes the keys of a trigger's file. Invariants: the trigger stays within its limits; its text
 * form can be parsed again and means the same.
 */
#include "daemon/config/trigger_set.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "daemon/config/conffile.h"
#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool on_section(void *userdata, const char *name)
{
	(void)userdata;
	return strcmp(name, "Trigger") == 0;
}

static void on_setting(void *userdata, const struct conffile_setting *s)
{
	/* Skip users' names: resolving a name would ask the host. */
	for (size_t k = 0; k < TRIGGER_N_KEYS; k++)
		if (strcmp(trigger_keys[k].name, s->key) == 0 && k != TRIGGER_SIGNAL_USERS)
			(void)trigger_object_set(userdata, (enum trigger_key_id)k, s->value,
						 s->line);
}

static void on_warning(void *userdata, const struct conffile_warning *w)
{
	(void)userdata;
	(void)w;
}

static void check(const struct trigger_object *o)
{
	assert(o->on != TRIGGER_ON_EXIT && o->n_units <= TRIGGER_MAX_UNITS);
	assert(o->last_bytes > 0 && o->last_ns > 0 && o->labels.n <= LABEL_MAX);
	assert(strlen(o->reason) < sizeof(o->reason) && o->burst <= 1000000);
	assert(o->events >= 1 && o->events <= TRIGGER_MAX_EVENTS && o->events_within_usec > 0);
	for (size_t i = 0; i < o->n_units; i++) {
		assert(*o->units[i] && strlen(o->units[i]) < ENTRY_UNIT_SIZE);
		(void)trigger_object_has_unit(o, o->units[i]);
	}
}

static void check_again(const struct trigger_object *o)
{
	struct trigger_object again;
	char buffer[TRIGGER_TEXT_SIZE];

	trigger_object_init(&again, "again", TRIGGER_ON_CONTROL, false);
	for (size_t k = 0; k < TRIGGER_N_KEYS; k++)
		if (k != TRIGGER_LABEL)
			assert(trigger_object_set(
				       &again, (enum trigger_key_id)k,
				       trigger_object_text(o, (enum trigger_key_id)k, buffer),
				       1) == 0);
	assert(again.on == o->on && again.n_units == o->n_units && again.burst == o->burst &&
	       again.last_bytes == o->last_bytes && again.deadline_ns == o->deadline_ns &&
	       again.min_fill_ns == o->min_fill_ns && again.interval_usec == o->interval_usec);
	trigger_object_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct trigger_object o;
	const struct conffile_handler handler = {&o, NULL, on_section, on_setting, on_warning};

	trigger_object_init(&o, "name", TRIGGER_ON_CONTROL, false);
	conffile_parse("file", bytes, size, &handler);
	check(&o);
	check_again(&o);
	trigger_object_done(&o);
	return 0;
}
