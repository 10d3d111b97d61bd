/*
 * ptsnapctl snapshot: ask the recorder for a snapshot, watch its progress, get its report.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/client.h"
#include "ctl/deliver.h"
#include "ctl/exit_code.h"
#include "ctl/field.h"
#include "ctl/say.h"
#include "ctl/size.h"
#include "ctl/text.h"

/* A snapshot's decoding has its own time-out in the recorder; this is for a recorder that hangs. */
#define WAIT_USEC  (15ull * 60 * 1000000)
#define REASON_MAX 256

struct request {
	struct settings *settings;
	const char *reason, *last, *output;
	uint64_t bytes, usec; /* 0: not given */
	uint64_t deadline_usec;
	bool no_wait, no_decode, has_deadline;
	bool progress_shown;
};

enum { OWN_REASON = OPTION_OWN, OWN_LAST, OWN_WAIT, OWN_NO_WAIT, OWN_NO_DECODE, OWN_DEADLINE };

static const struct option OWN[] = {
	{"reason", required_argument, NULL, OWN_REASON},
	{"last", required_argument, NULL, OWN_LAST},
	{"wait", no_argument, NULL, OWN_WAIT},
	{"no-wait", no_argument, NULL, OWN_NO_WAIT},
	{"no-decode", no_argument, NULL, OWN_NO_DECODE},
	{"deadline", required_argument, NULL, OWN_DEADLINE},
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

static int parse(struct request *q, int argc, char **argv)
{
	int option;

	while ((option = option_next(q->settings, argc, argv, OWN, "o:", true)) != OPTION_END) {
		switch (option) {
		case OWN_REASON:
			if (!take_reason(q))
				return EXIT_CODE_USAGE;
			break;
		case OWN_LAST:
			if (!take_last(q))
				return EXIT_CODE_USAGE;
			break;
		case OWN_DEADLINE:
			if (!take_deadline(q))
				return EXIT_CODE_USAGE;
			break;
		case OWN_WAIT: q->no_wait = false; break;
		case OWN_NO_WAIT: q->no_wait = true; break;
		case OWN_NO_DECODE: q->no_decode = true; break;
		case 'o': q->output = optarg; break;
		default: return EXIT_CODE_USAGE;
		}
	}
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "snapshot takes no operand: %s", argv[optind]);
	if (q->has_deadline && q->no_decode)
		return say_error(EXIT_CODE_USAGE, "either --deadline or --no-decode");
	if (q->output && (q->no_wait || q->no_decode))
		return say_error(EXIT_CODE_USAGE,
				 "-o writes the report: not with --no-wait or --no-decode; "
				 "`ptsnapctl fetch' gets a bundle");
	return 0;
}

static struct json_object *make_parameters(const struct request *q)
{
	struct json_object *p = json_object_new_object();

	if (q->reason)
		json_object_object_add(p, "reason", json_object_new_string(q->reason));
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
		puts(json_object_to_json_string_ext(
			report,
			JSON_C_TO_STRING_NOSLASHESCAPE |
				(q->settings->json == JSON_PRETTY ? JSON_C_TO_STRING_PRETTY : 0)));
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
