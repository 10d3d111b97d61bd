/*
 * Prints findings, and gets them from `ptsnapd --check'.
 */
#include "ctl/check/findings.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/file.h"
#include "ctl/base/say.h"

#define INSTALLED  PTSNAP_SBINDIR "/ptsnapd"
#define BUILD_TREE "../daemon/ptsnapd"
#define OUTPUT_MAX (256u << 10)
#define COLUMNS	   400

extern char **environ;

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

int findings_print(const struct settings *s, struct json_object *findings)
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

void findings_put_first(struct json_object **findings, const char *level, const char *what,
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

int findings_of_host(const char *ptsnapd, struct json_object **ret)
{
	CLEANUP_FREE char *program = NULL, *text = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	int r, status = 0;
	pid_t pid;

	*ret = NULL;
	r = -program_find(ptsnapd, INSTALLED, BUILD_TREE, &program);
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
