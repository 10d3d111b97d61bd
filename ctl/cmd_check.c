/*
 * ptsnapctl check: says why tracing is not possible here, or worse than it could be, and what to
 * do; with --trace, checks that a trace is right.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "ctl/check/check_trace.h"
#include "ctl/check/findings.h"
#include "ctl/client/client.h"

/* The recorder looks at all processes, which can take long. */
#define CHECK_TIMEOUT_USEC 120000000ull

enum { OWN_TRACE = OPTION_OWN, OWN_SOURCE, OWN_FOR, OWN_WALK, OWN_WORKER, OWN_PTSNAPD };

static const struct option OWN[] = {
	{"trace", no_argument, NULL, OWN_TRACE},
	{"source", required_argument, NULL, OWN_SOURCE},
	{"for", required_argument, NULL, OWN_FOR},
	{"walk", required_argument, NULL, OWN_WALK},
	{"worker", required_argument, NULL, OWN_WORKER},
	{"ptsnapd", required_argument, NULL, OWN_PTSNAPD},
	{NULL, 0, NULL, 0},
};

struct check_request {
	struct settings *settings;
	bool trace, trace_option; /* TRACE_OPTION: an option was given that needs --trace */
	struct check_trace_options options;
};

static int parse(struct check_request *q, int argc, char **argv)
{
	static const char *const sources[] = {"auto", "intel_pt", "emulated", NULL};
	int option, source;

	while ((option = option_next(q->settings, argc, argv, OWN, "", true)) != OPTION_END) {
		q->trace_option |= option >= OWN_SOURCE && option <= OWN_WORKER;
		switch (option) {
		case OWN_TRACE: q->trace = true; break;
		case OWN_SOURCE:
			source = option_choice("--source", optarg, sources);
			if (source < 0)
				return EXIT_CODE_USAGE;
			q->options.source = (enum check_trace_source)source;
			break;
		case OWN_FOR:
			if (!option_good(size_parse_time(optarg, &q->options.run_usec), "--for",
					 optarg, TIME_VALID))
				return EXIT_CODE_USAGE;
			break;
		case OWN_WALK: q->options.walk = optarg; break;
		case OWN_WORKER: q->options.worker = optarg; break;
		case OWN_PTSNAPD: q->options.daemon = optarg; break;
		default: return EXIT_CODE_USAGE;
		}
	}
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "check takes no operand: %s", argv[optind]);
	if (q->trace_option && !q->trace)
		return say_error(EXIT_CODE_USAGE,
				 "--source=, --for=, --walk= and --worker= go with --trace");
	return 0;
}

/* Without a recorder: prints what `ptsnapd --check' finds. ERROR: why no recorder was reached. */
static int check_host(const struct check_request *q, int error)
{
	struct json_object *findings = NULL;
	int r = findings_of_host(q->options.daemon, &findings);

	if (r != 0)
		return r;
	if (error == -EACCES || error == -EPERM)
		findings_put_first(&findings, "note", "recorder", "its socket is not open to you",
				   "run as root or as a member of the group that owns the socket");
	else
		findings_put_first(&findings, "warning", "recorder", "no recorder runs here",
				   "systemctl start ptsnapd");
	r = findings_print(q->settings, findings);
	json_object_put(findings);
	return r;
}

int cmd_check(struct settings *s, int argc, char **argv)
{
	struct check_request q = {.settings = s, .options = {.settings = s}};
	CLEANUP(client_freep) struct client *c = NULL;
	struct json_object *answer = NULL;
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	if (q.trace)
		return check_trace(&q.options);
	r = client_probe(s);
	if (r == -ENOENT || r == -ECONNREFUSED || r == -EACCES || r == -EPERM)
		return check_host(&q, r);
	r = client_open(s, CHECK_TIMEOUT_USEC, &c);
	if (r == 0)
		r = client_call(c, "Check", NULL, NULL, NULL, &answer);
	if (r == 0)
		r = findings_print(s, field_get(answer, "findings"));
	json_object_put(answer);
	return r;
}
