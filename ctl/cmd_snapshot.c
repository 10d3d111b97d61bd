/*
 * ptsnapctl snapshot: ask the recorder for a snapshot, watch its progress, get its report.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/label.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "ctl/client/client.h"
#include "ctl/monitor_env.h"
#include "ctl/show/deliver.h"

/* A snapshot's decoding has its own time-out in the recorder; this is for a recorder that hangs. */
#define WAIT_USEC  (15ull * 60 * 1000000)
#define REASON_MAX 256

struct request {
	struct settings *settings;
	const char *reason, *last, *output;
	uint64_t bytes, usec; /* 0: not given */
	uint64_t deadline_usec;
	const char *trigger, *unit;
	struct labels labels;
	struct monitor_env monitor; /* its texts are borrowed by those above */
	bool no_wait, no_decode, has_deadline, from_monitor_env;
	bool progress_shown;
};

enum {
	OWN_REASON = OPTION_OWN,
	OWN_LAST,
	OWN_WAIT,
	OWN_NO_WAIT,
	OWN_NO_DECODE,
	OWN_DEADLINE,
	OWN_TRIGGER,
	OWN_UNIT,
	OWN_LABEL,
	OWN_FROM_MONITOR_ENV,
};

static const struct option OWN[] = {
	{"reason", required_argument, NULL, OWN_REASON},
	{"last", required_argument, NULL, OWN_LAST},
	{"wait", no_argument, NULL, OWN_WAIT},
	{"no-wait", no_argument, NULL, OWN_NO_WAIT},
	{"no-decode", no_argument, NULL, OWN_NO_DECODE},
	{"deadline", required_argument, NULL, OWN_DEADLINE},
	{"trigger", required_argument, NULL, OWN_TRIGGER},
	{"unit", required_argument, NULL, OWN_UNIT},
	{"label", required_argument, NULL, OWN_LABEL},
	{"from-monitor-env", no_argument, NULL, OWN_FROM_MONITOR_ENV},
	{"output", required_argument, NULL, 'o'},
	{NULL, 0, NULL, 0},
};

/* The recorder's limit, io.ptsnap.recorder(7). */
static bool take_reason(struct request *q)
{
	q->reason = optarg;
	if (strlen(optarg) <= REASON_MAX)
		return true;
	say("--reason: at most %d bytes, this one has %zu", REASON_MAX, strlen(optarg));
	return false;
}

static bool take_last(struct request *q)
{
	q->bytes = q->usec = 0;
	return option_good(size_parse_last(optarg, &q->bytes, &q->usec), "--last", optarg,
			   SIZE_VALID ", or " TIME_VALID);
}

static bool take_deadline(struct request *q)
{
	int r = size_parse_time(optarg, &q->deadline_usec);

	/* The recorder counts ns. */
	if (r == 0 && q->deadline_usec > UINT64_MAX / 1000)
		r = -ERANGE;
	q->has_deadline = true;
	return option_good(r, "--deadline", optarg, TIME_VALID);
}

static bool take_label(struct request *q)
{
	int r = labels_parse(&q->labels, optarg);

	if (r < 0)
		say("--label=%s: not accepted; give " LABEL_VALID, optarg);
	return r == 0;
}

static bool take_own(struct request *q, int option)
{
	switch (option) {
	case OWN_REASON: return take_reason(q);
	case OWN_LAST: return take_last(q);
	case OWN_DEADLINE: return take_deadline(q);
	case OWN_LABEL: return take_label(q);
	case OWN_TRIGGER: q->trigger = optarg; return true;
	case OWN_UNIT: q->unit = optarg; return true;
	case OWN_FROM_MONITOR_ENV: q->from_monitor_env = true; return true;
	case OWN_WAIT: q->no_wait = false; return true;
	case OWN_NO_WAIT: q->no_wait = true; return true;
	case OWN_NO_DECODE: q->no_decode = true; return true;
	case 'o': q->output = optarg; return true;
	default: return false;
	}
}

/* What the options did not say. Where the environment is empty a snapshot of a unit that was named
 * is worth more than none. */
static int take_monitor_env(struct request *q)
{
	struct monitor_env *e = &q->monitor;

	if (!q->from_monitor_env)
		return 0;
	if (!monitor_env_read(e)) {
		say("--from-monitor-env: $MONITOR_UNIT is not set; systemd 251 and later set it for "
		    "what OnFailure= of one unit starts");
		return q->unit ? 0 : EXIT_CODE_USAGE;
	}
	q->trigger = q->trigger ? q->trigger : "unit";
	q->unit = q->unit ? q->unit : e->unit;
	q->reason = q->reason ? q->reason : e->reason;
	for (size_t i = 0; i < e->labels.n; i++)
		if (!labels_get(&q->labels, e->labels.list[i].key))
			(void)labels_add(&q->labels, e->labels.list[i].key,
					 e->labels.list[i].value);
	return 0;
}

static int parse(struct request *q, int argc, char **argv)
{
	int option;

	while ((option = option_next(q->settings, argc, argv, OWN, "o:", true)) != OPTION_END)
		if (!take_own(q, option))
			return EXIT_CODE_USAGE;
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "snapshot takes no operand: %s", argv[optind]);
	if (q->has_deadline && q->no_decode)
		return say_error(EXIT_CODE_USAGE, "either --deadline or --no-decode");
	if (q->output && (q->no_wait || q->no_decode))
		return say_error(EXIT_CODE_USAGE,
				 "-o writes the report: not with --no-wait or --no-decode; "
				 "`ptsnapctl fetch' gets a bundle");
	return take_monitor_env(q);
}

static struct json_object *labels_object(const struct labels *l)
{
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; i < l->n; i++)
		json_object_object_add(o, l->list[i].key, json_object_new_string(l->list[i].value));
	return o;
}

static struct json_object *make_parameters(const struct request *q)
{
	struct json_object *p = json_object_new_object();

	if (q->reason)
		json_object_object_add(p, "reason", json_object_new_string(q->reason));
	if (q->trigger)
		json_object_object_add(p, "trigger", json_object_new_string(q->trigger));
	if (q->unit)
		json_object_object_add(p, "unit", json_object_new_string(q->unit));
	if (q->labels.n > 0)
		json_object_object_add(p, "labels", labels_object(&q->labels));
	if (q->bytes)
		json_object_object_add(p, "windowBytes", json_object_new_uint64(q->bytes));
	if (q->usec)
		json_object_object_add(p, "windowUSec", json_object_new_uint64(q->usec));
	if (q->has_deadline)
		json_object_object_add(p, "deadlineUSec", json_object_new_uint64(q->deadline_usec));
	if (q->no_decode)
		json_object_object_add(p, "decode", json_object_new_boolean(false));
	return p;
}

static void end_progress(struct request *q)
{
	if (q->progress_shown)
		fputs("\r\033[K", stderr);
	q->progress_shown = false;
}

static int show_progress(void *userdata, struct json_object *parameters)
{
	struct request *q = userdata;
	const char *phase = field_text(parameters, "progress.phase");
	uint64_t percent;

	if (!phase || q->settings->quiet || !isatty(STDERR_FILENO))
		return 0;
	fputs("\r\033[Ksnapshot ", stderr);
	text_puts(stderr, field_text(parameters, "progress.id"), 40);
	fputs(": ", stderr);
	text_puts(stderr, phase, 20);
	if (field_u64(parameters, "progress.percent", &percent))
		fprintf(stderr, " %ju %%", (uintmax_t)percent);
	fflush(stderr);
	q->progress_shown = true;
	return 0;
}

/* Without a report to show: the id alone, for scripts. */
static int print_reply(const struct request *q, struct json_object *report, const char *id)
{
	if (q->settings->json == JSON_SHORT || q->settings->json == JSON_PRETTY)
		text_puts_json(stdout, json_object_to_json_string_ext(
					       report, JSON_C_TO_STRING_NOSLASHESCAPE |
							       (q->settings->json == JSON_PRETTY
									? JSON_C_TO_STRING_PRETTY
									: 0)));
	else {
		text_puts(stdout, id, 0);
		putchar('\n');
	}
	return 0;
}

static int get_report(struct request *q, struct client *c, const char *id)
{
	CLEANUP_CLOSE int fd = -EBADF;
	int r = client_get(c, id, "report", &fd);

	if (r == 0)
		r = deliver_report(q->settings, fd, q->output, true);
	if (r == 0 && q->output && !q->settings->quiet)
		say("snapshot %s: report written to %s", id, q->output);
	return r;
}

static int finish(struct request *q, struct client *c, struct json_object *answer)
{
	struct json_object *report = field_get(answer, "report");
	const char *id = field_text(report, "id"), *state = field_text(report, "state");
	const char *error = field_text(report, "error");

	if (!id || !state)
		return say_error(EXIT_CODE_FAILURE, "the recorder's answer names no report");
	if (strcmp(state, "failed") == 0)
		return say_error(EXIT_CODE_FAILURE, "snapshot %s failed: %s", id,
				 error ? error : "no cause given; see the recorder's log");
	if (q->no_wait || q->no_decode)
		return print_reply(q, report, id);
	return get_report(q, c, id);
}

int cmd_snapshot(struct settings *s, int argc, char **argv)
{
	struct request q = {.settings = s};
	CLEANUP(client_freep) struct client *c = NULL;
	struct json_object *answer = NULL;
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	r = client_open(s, q.no_wait ? CLIENT_TIMEOUT_USEC : WAIT_USEC, &c);
	if (r != 0)
		return r;
	r = client_call(c, "Snapshot", make_parameters(&q), q.no_wait ? NULL : show_progress, &q,
			&answer);
	end_progress(&q);
	if (r == 0)
		r = finish(&q, c, answer);
	json_object_put(answer);
	return r;
}
