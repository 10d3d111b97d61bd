/*
 * ptsnapctl snapshot: asks the recorder for a snapshot, shows its progress, gets its report.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/label.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "ctl/baseline.h"
#include "ctl/client/client.h"
#include "ctl/show/show.h"

/* For a recorder that hangs. The recorder itself limits how long a snapshot is decoded. */
#define WAIT_USEC  (15ull * 60 * 1000000)
#define REASON_MAX 256 /* the recorder's limit, io.ptsnap.recorder(7) */

struct request {
	struct settings *settings;
	const char *reason, *last, *output, *baseline;
	char *latest;	      /* owned: the ID behind --baseline=latest, or NULL */
	uint64_t bytes, usec; /* 0: not given */
	uint64_t deadline_usec;
	const char *trigger, *unit;
	struct labels labels;
	char monitor_reason[REASON_MAX + 1]; /* REASON may point here */
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
	OWN_BASELINE,
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
	{"baseline", required_argument, NULL, OWN_BASELINE},
	{"output", required_argument, NULL, 'o'},
	{NULL, 0, NULL, 0},
};

static bool take_own(struct request *q, int option)
{
	int r;

	switch (option) {
	case OWN_REASON:
		q->reason = optarg;
		if (strlen(optarg) > REASON_MAX)
			say("--reason: at most %d bytes, this one has %zu", REASON_MAX,
			    strlen(optarg));
		else if (!label_is_plain(optarg))
			say("--reason: a reason is one line without control characters");
		else
			return true;
		return false;
	case OWN_LAST:
		q->bytes = q->usec = 0;
		return option_good(size_parse_last(optarg, &q->bytes, &q->usec), "--last", optarg,
				   SIZE_VALID ", or " TIME_VALID);
	case OWN_DEADLINE:
		r = size_parse_time(optarg, &q->deadline_usec);
		/* The recorder counts nanoseconds. */
		if (r == 0 && q->deadline_usec > UINT64_MAX / 1000)
			r = -ERANGE;
		q->has_deadline = true;
		return option_good(r, "--deadline", optarg, TIME_VALID);
	case OWN_LABEL:
		if (labels_parse(&q->labels, optarg) == 0)
			return true;
		say("--label=%s: not accepted; give " LABEL_VALID, optarg);
		return false;
	case OWN_TRIGGER: q->trigger = optarg; return true;
	case OWN_UNIT: q->unit = optarg; return true;
	case OWN_FROM_MONITOR_ENV: q->from_monitor_env = true; return true;
	case OWN_BASELINE: q->baseline = optarg; return true;
	case OWN_WAIT: q->no_wait = false; return true;
	case OWN_NO_WAIT: q->no_wait = true; return true;
	case OWN_NO_DECODE: q->no_decode = true; return true;
	case 'o': q->output = optarg; return true;
	default: return false;
	}
}

/* The value of the environment variable NAME; NULL if it is unset or empty. */
static const char *variable(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/*
 * systemd (251 and later) sets $MONITOR_... (systemd.exec(5)) for a unit that OnFailure= of another
 * unit starts: the name of the unit that failed, and how it failed. Options on the command line win
 * over the environment. If the environment is empty, the snapshot is still taken for a unit that
 * --unit= names.
 */
static int take_monitor_env(struct request *q)
{
	static const struct {
		const char *name, *key, *before;
	} variables[] = {
		{"MONITOR_SERVICE_RESULT", "result", ": "},
		{"MONITOR_EXIT_CODE", "exit_code", ", "},
		{"MONITOR_EXIT_STATUS", "exit_status", " "},
		{"MONITOR_INVOCATION_ID", "invocation", NULL},
	};
	const char *unit = variable("MONITOR_UNIT");
	size_t used;

	if (!unit) {
		say("--from-monitor-env: $MONITOR_UNIT is not set; systemd 251 and later set it "
		    "for what OnFailure= of one unit starts");
		return q->unit ? 0 : EXIT_CODE_USAGE;
	}
	snprintf(q->monitor_reason, sizeof(q->monitor_reason), "%s failed", unit);
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *value = variable(variables[i].name);

		if (!value || !label_is_plain(value))
			continue;
		used = strlen(q->monitor_reason);
		if (variables[i].before)
			snprintf(q->monitor_reason + used, sizeof(q->monitor_reason) - used, "%s%s",
				 variables[i].before, value);
		/* A value that cannot be a label is in the reason. */
		if (!labels_get(&q->labels, variables[i].key))
			(void)labels_add(&q->labels, variables[i].key, value);
	}
	q->trigger = q->trigger ? q->trigger : "unit";
	q->unit = q->unit ? q->unit : unit;
	q->reason = q->reason ? q->reason : q->monitor_reason;
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
		return say_error(EXIT_CODE_USAGE, "give either --deadline or --no-decode");
	if (q->output && (q->no_wait || q->no_decode))
		return say_error(EXIT_CODE_USAGE,
				 "-o writes the report: do not give --no-wait or --no-decode; "
				 "`ptsnapctl fetch' gets a bundle");
	if (q->baseline && (q->no_wait || q->no_decode || q->output))
		return say_error(EXIT_CODE_USAGE,
				 "--baseline compares what is printed: do not give --no-wait, "
				 "--no-decode or -o; `ptsnapctl info --baseline=' compares later");
	return q->from_monitor_env ? take_monitor_env(q) : 0;
}

static struct json_object *make_parameters(const struct request *q)
{
	struct json_object *p = json_object_new_object(), *labels = json_object_new_object();

	for (size_t i = 0; i < q->labels.n; i++)
		json_object_object_add(labels, q->labels.list[i].key,
				       json_object_new_string(q->labels.list[i].value));
	if (q->reason)
		json_object_object_add(p, "reason", json_object_new_string(q->reason));
	if (q->trigger)
		json_object_object_add(p, "trigger", json_object_new_string(q->trigger));
	if (q->unit)
		json_object_object_add(p, "unit", json_object_new_string(q->unit));
	if (q->labels.n > 0)
		json_object_object_add(p, "labels", json_object_get(labels));
	json_object_put(labels);
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

/* "latest" is the newest snapshot before this one. If there is none, the snapshot is taken all the
 * same: it may be the last chance. */
static int find_latest(struct request *q, struct client *c)
{
	struct json_object *p, *answer = NULL;
	const char *id;
	int r;

	if (!q->baseline || strcmp(q->baseline, "latest") != 0)
		return 0;
	p = json_object_new_object();
	json_object_object_add(p, "limit", json_object_new_uint64(1));
	r = client_call(c, "List", p, NULL, NULL, &answer);
	if (r != 0)
		return r;
	id = field_text(answer, "report.id");
	q->latest = id ? strdup(id) : NULL;
	json_object_put(answer);
	return id && !q->latest ? say_error(EXIT_CODE_FAILURE, "out of memory") : 0;
}

static int show(struct request *q, int fd)
{
	int r;

	if (q->output)
		return deliver_report(q->settings, fd,
				      &(struct show_delivery){q->output, true, true});
	if (!q->baseline)
		return deliver_info(q->settings, fd, NULL, false);
	if (strcmp(q->baseline, "latest") != 0 || q->latest)
		return baseline_deliver(q->settings, fd, q->latest ? q->latest : q->baseline, true,
					false);
	r = deliver_info(q->settings, fd, NULL, false);
	return r != 0 ? r
		      : say_error(EXIT_CODE_NO_REPORT,
				  "--baseline=latest: no snapshot is stored from before this one");
}

static int finish(struct request *q, struct client **c, struct json_object *answer)
{
	struct json_object *report = field_get(answer, "report");
	const char *id = field_text(report, "id"), *state = field_text(report, "state");
	const char *error = field_text(report, "error");
	CLEANUP_CLOSE int fd = -EBADF;
	int r;

	if (!id || !state)
		return say_error(EXIT_CODE_FAILURE, "the recorder's answer names no report");
	if (strcmp(state, "failed") == 0)
		return say_error(EXIT_CODE_FAILURE, "snapshot %s failed: %s", id,
				 error ? error : "no cause given; see the recorder's log");
	if (!q->no_wait && !q->no_decode) {
		r = client_get(*c, id, "report", &fd);
		/* The baseline may need a connection, too, and a decode of it takes long. */
		client_freep(c);
		*c = NULL;
		if (r == 0)
			r = show(q, fd);
		if (r == 0 && q->output && !q->settings->quiet)
			say("snapshot %s: report written to %s", id, q->output);
		return r;
	}
	if (json_wanted(q->settings)) {
		json_print(q->settings, report);
	} else {
		text_puts(stdout, id, 0);
		putchar('\n');
	}
	return 0;
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
	r = find_latest(&q, c);
	if (r != 0)
		return r;
	r = client_call(c, "Snapshot", make_parameters(&q), q.no_wait ? NULL : show_progress, &q,
			&answer);
	if (q.progress_shown)
		fputs("\r\033[K", stderr);
	if (r == 0)
		r = finish(&q, &c, answer);
	free(q.latest);
	json_object_put(answer);
	return r;
}
