/*
 * A report with the threads and the suspects of a selection alone, for the page of `info'.
 */
#include <errno.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "ctl/show/list.h"
#include "proto/base.h"

static bool selects(const struct show_select *s)
{
	return s->has_cpu || s->has_pid || s->has_tid || s->comm || s->function || s->image;
}

/* The thread with number TID; NULL: the report does not list it. */
static struct json_object *thread_of(struct json_object *report, uint64_t tid)
{
	for (size_t i = 0; i < field_count(report, "threads"); i++) {
		struct json_object *t = field_at(report, "threads", i);
		uint64_t v;

		if (field_u64(t, "tid", &v) && v == tid)
			return t;
	}
	return NULL;
}

/* A suspect has a place, and its thread has a name and a stack. */
static enum list_fits suspect_fits(struct json_object *report, struct json_object *suspect,
				   const struct show_select *s)
{
	struct json_object *place = place_at(report, suspect, "place"), *thread = NULL;
	enum list_fits name = list_text_fits(place, "name", s->function), comm = LIST_YES;
	uint64_t tid;

	if (field_u64(suspect, "tid", &tid))
		thread = thread_of(report, tid);
	if (s->comm)
		comm = thread ? list_text_fits(thread, "comm", s->comm) : LIST_UNKNOWN;
	if (s->image)
		name = LIST_UNKNOWN;
	if ((s->function || s->image) && name != LIST_YES && thread)
		name = list_row_fits(
			show_list_find("threads"), report, thread,
			&(struct show_select){.function = s->function, .image = s->image});
	return list_both(name, comm);
}

/* Suspects are words, and no table. */
static const struct show_list SUSPECTS = {
	.name = "suspects", .cpu = "cpu", .pid = "pid", .tid = "tid", .place = suspect_fits};

/* An array of the elements of LIST that are selected, the caller's; NULL: no memory. */
static struct json_object *keep(struct json_object *report, const struct show_list *list,
				const struct show_select *select)
{
	struct json_object *kept = json_object_new_array();

	for (size_t i = 0; kept && i < field_count(report, list->name); i++) {
		struct json_object *row = field_at(report, list->name, i);

		if (list_row_fits(list, report, row, select) == LIST_YES &&
		    json_object_array_add(kept, json_object_get(row)) < 0)
			return NULL;
	}
	return kept;
}

static void add_count(struct json_object *to, const char *key, size_t n)
{
	json_object_object_add(to, key, json_object_new_uint64(n));
}

int show_keep(struct json_object *report, const struct show_select *select)
{
	struct json_object *suspects, *threads, *selected;

	if (!selects(select))
		return 0;
	suspects = keep(report, &SUSPECTS, select);
	threads = keep(report, show_list_find("threads"), select);
	selected = json_object_new_object();
	if (!suspects || !threads || !selected) {
		json_object_put(suspects);
		json_object_put(threads);
		json_object_put(selected);
		return -ENOMEM;
	}
	add_count(selected, "threads", json_object_array_length(threads));
	add_count(selected, "threadsTotal", field_count(report, "threads"));
	add_count(selected, "suspects", json_object_array_length(suspects));
	add_count(selected, "suspectsTotal", field_count(report, "suspects"));
	json_object_object_add(report, "suspects", suspects);
	json_object_object_add(report, "threads", threads);
	json_object_object_add(report, "selected", selected);
	return 0;
}
