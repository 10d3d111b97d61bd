/*
 * ptsnapctl check: says why tracing is not possible here, or worse than it could be, and what to
 * do; with --trace, checks that a trace is right.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "ctl/check/check_trace.h"
#include "ctl/client/client.h"

/* The recorder looks at all processes, which can take long. */
#define CHECK_TIMEOUT_USEC 120000000ull
#define PTSNAPD		   PTSNAP_SBINDIR "/ptsnapd"
#define BUILD_TREE	   "../daemon/ptsnapd"
#define OUTPUT_MAX	   (256u << 10)
#define COLUMNS		   400

extern char **environ;

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

/* --- Findings (type Finding of io.ptsnap.recorder(7)) about this host, of the recorder or of
 * `ptsnapd --check' --- */

static void print_line(struct json_object *f)
{
	const char *fix = field_text(f, "fix");
	size_t used = text_puts(stdout, field_text(f, "level"), 8);

	printf("%*s", (int)(9 - used), "");
	text_puts(stdout, field_text(f, "what"), 32);
	printf(": ");
	text_puts(stdout, field_text(f, "text"), COLUMNS);
	if (fix) {
		printf("; fix: ");
		text_puts(stdout, fix, COLUMNS);
	}
	putchar('\n');
}

/* Prints FINDINGS, an array, as text or JSON. Returns EXIT_CODE_OK, EXIT_CODE_NOT_TRACING if a
 * finding is a failure, or EXIT_CODE_FAILURE, after a message, if FINDINGS is no array. */
static int print_findings(const struct settings *s, struct json_object *findings)
{
	int r = EXIT_CODE_OK;

	if (!json_object_is_type(findings, json_type_array))
		return say_error(EXIT_CODE_FAILURE, "the answer holds no findings");
	for (size_t i = 0; i < json_object_array_length(findings); i++) {
		struct json_object *f = json_object_array_get_idx(findings, i);
		const char *level = field_text(f, "level");

		if (level && strcmp(level, "failure") == 0)
			r = EXIT_CODE_NOT_TRACING;
		if (!json_wanted(s) && !s->quiet)
			print_line(f);
	}
	if (json_wanted(s) && !s->quiet)
		json_print(s, findings);
	return r;
}

/* Puts a finding in front of the others. */
static void put_finding_first(struct json_object **findings, const char *level, const char *what,
			      const char *text, const char *fix)
{
	struct json_object *all = json_object_new_array(), *one = json_object_new_object();
	size_t n = json_object_array_length(*findings);

	json_object_object_add(one, "level", json_object_new_string(level));
	json_object_object_add(one, "what", json_object_new_string(what));
	json_object_object_add(one, "text", json_object_new_string(text));
	json_object_object_add(one, "fix", fix ? json_object_new_string(fix) : NULL);
	json_object_array_add(all, one);
	for (size_t i = 0; i < n; i++)
		json_object_array_add(all,
				      json_object_get(json_object_array_get_idx(*findings, i)));
	json_object_put(*findings);
	*findings = all;
}

/* Starts PROGRAM --check --json, whose standard output is read from *RET_FD. Returns 0 or an errno.
 */
static int start(const char *program, pid_t *ret_pid, int *ret_fd)
{
	char *const argv[] = {(char *)program, "--check", "--json", NULL};
	posix_spawn_file_actions_t actions;
	int ends[2], r;

	if (pipe(ends) < 0)
		return errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	posix_spawn_file_actions_addclose(&actions, ends[1]);
	r = posix_spawn(ret_pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close_fd(ends[1]);
	if (r != 0)
		close_fd(ends[0]);
	else
		*ret_fd = ends[0];
	return r;
}

/* Reads FD to its end. Returns a string of the caller's, or NULL: nothing, or more than OUTPUT_MAX.
 */
static char *read_all(int fd)
{
	char *text = malloc(OUTPUT_MAX);
	size_t used = 0;
	ssize_t n = 0;

	while (text && used < OUTPUT_MAX - 1) {
		n = read(fd, text + used, OUTPUT_MAX - 1 - used);
		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		used += n > 0 ? (size_t)n : 0;
	}
	if (!text || n != 0 || used == 0) {
		free(text);
		return NULL;
	}
	text[used] = '\0';
	return text;
}

/* Runs `PTSNAPD --check' (NULL: the installed program, or that of the build tree). *ret is an
 * array, the caller's. Returns 0, or an exit code after a message. */
static int findings_of_host(const char *ptsnapd, struct json_object **ret)
{
	CLEANUP_FREE char *program = NULL, *text = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	int r, status = 0;
	pid_t pid;

	*ret = NULL;
	r = -program_find(ptsnapd, PTSNAPD, BUILD_TREE, &program);
	if (r == 0)
		r = start(program, &pid, &fd);
	if (r != 0)
		return say_error(EXIT_CODE_FAILURE, "%s cannot be run: %s",
				 program ? program : "ptsnapd", strerror(r));
	text = read_all(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (text)
		*ret = json_tokener_parse(text);
	if (json_object_is_type(*ret, json_type_array))
		return 0;
	json_object_put(*ret);
	*ret = NULL;
	return say_error(EXIT_CODE_FAILURE, "%s --check: no findings (exit status %d)", program,
			 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* Without a recorder: prints what `ptsnapd --check' finds. ERROR: why no recorder was reached. */
static int check_host(const struct check_request *q, int error)
{
	struct json_object *findings = NULL;
	int r = findings_of_host(q->options.daemon, &findings);

	if (r != 0)
		return r;
	if (error == -EACCES || error == -EPERM)
		put_finding_first(&findings, "note", "recorder", "its socket is not open to you",
				  "run as root or as a member of the group that owns the socket");
	else
		put_finding_first(&findings, "warning", "recorder", "no recorder runs here",
				  "systemctl start ptsnapd");
	r = print_findings(q->settings, findings);
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
		r = print_findings(s, field_get(answer, "findings"));
	json_object_put(answer);
	return r;
}
