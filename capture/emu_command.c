/*
 * COMMAND as execve(2) would find and start it. Called by source_emu.c in the recorder. The
 * emulator wants an ELF file by a path that stays good when the program changes its directory; the
 * rest of execve's work (PATH, "#!") is done here.
 */
#include "capture/emu_command.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"

/* fs/exec.c, exec_binprm: so many interpreters of interpreters; BINPRM_BUF_SIZE. */
#define MAX_SCRIPTS 5
#define HEAD_SIZE   256

static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == EACCES ? -EACCES : -ENOENT;
	if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return -EACCES;
	return 0;
}

/* execvp(3): an entry that may not be used does not end the search, but is remembered. */
static int search_path(const char *name, char *ret_path, size_t size)
{
	const char *dirs = getenv("PATH");
	int result = -ENOENT;

	if (dirs == NULL)
		dirs = "/bin:/usr/bin";
	for (;; dirs++) {
		int n = (int)strcspn(dirs, ":");
		int r = snprintf(ret_path, size, "%.*s/%s", n > 0 ? n : 1, n > 0 ? dirs : ".",
				 name);

		r = r < 0 || (size_t)r >= size ? -ENOENT : check_file(ret_path);
		if (r == 0)
			return 0;
		if (r == -EACCES)
			result = r;
		dirs += n;
		if (*dirs == '\0')
			return result;
	}
}

static int find_file(const char *name, char *ret_path, size_t size)
{
	if (name[0] == '\0')
		return -ENOENT;
	if (strchr(name, '/') == NULL)
		return search_path(name, ret_path, size);
	if ((size_t)snprintf(ret_path, size, "%s", name) >= size)
		return -ENAMETOOLONG;
	return check_file(ret_path);
}

static char *absolute(const char *path)
{
	char *directory, *result = NULL;

	if (path[0] == '/')
		return strdup(path);
	directory = getcwd(NULL, 0);
	if (directory != NULL && asprintf(&result, "%s/%s", directory, path) < 0)
		result = NULL;
	free(directory);
	return result;
}

static ssize_t read_head(const char *path, char *head)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, head, HEAD_SIZE);
	n = n < 0 ? -errno : n;
	close(fd);
	return n;
}

static bool is_x86_64(const char *head, size_t n)
{
	Elf64_Ehdr ehdr;

	if (n < sizeof(ehdr))
		return false;
	memcpy(&ehdr, head, sizeof(ehdr));
	return memcmp(ehdr.e_ident, ELFMAG, SELFMAG) == 0 && ehdr.e_ident[EI_CLASS] == ELFCLASS64 &&
	       ehdr.e_machine == EM_X86_64 && (ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN);
}

static size_t count(char *const *argv)
{
	size_t n = 0;

	while (argv[n] != NULL)
		n++;
	return n;
}

static void free_strings(char **strings)
{
	for (size_t i = 0; strings != NULL && strings[i] != NULL; i++)
		free(strings[i]);
	free(strings);
}

/* INTERPRETER [ARGUMENT] SCRIPT and what follows argv[0], all copied. ARGUMENT may be NULL. */
static char **join(const char *interpreter, const char *argument, const char *script,
		   char *const *argv)
{
	size_t n = count(argv), at = 0;
	char **result = calloc(n + 3, sizeof(char *));

	if (result == NULL)
		return NULL;
	result[at++] = strdup(interpreter);
	if (argument != NULL)
		result[at++] = strdup(argument);
	if (script != NULL)
		result[at++] = strdup(script);
	for (size_t i = 1; i < n; i++)
		result[at++] = strdup(argv[i]);
	for (size_t i = 0; i < at; i++)
		if (result[i] == NULL) {
			for (size_t j = 0; j < at; j++)
				free(result[j]);
			free(result);
			return NULL;
		}
	return result;
}

/* fs/binfmt_script.c: blanks around both, everything behind the first word is one argument. */
static int parse_script(char *head, size_t n, char **ret_interpreter, char **ret_argument)
{
	char *line = head + 2, *end;

	head[n < HEAD_SIZE ? n : HEAD_SIZE - 1] = '\0';
	end = line + strcspn(line, "\n");
	while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = '\0';
	line += strspn(line, " \t");
	if (*line == '\0')
		return -ENOEXEC;
	*ret_interpreter = line;
	line += strcspn(line, " \t");
	if (*line != '\0')
		*line++ = '\0';
	line += strspn(line, " \t");
	*ret_argument = *line != '\0' ? line : NULL;
	return 0;
}

/* One step from a script to its interpreter: PATH and *argv become the interpreter's. */
static int enter_interpreter(char *head, size_t n, char *path, char ***argv)
{
	char *interpreter, *argument, **joined;
	int r = parse_script(head, n, &interpreter, &argument);

	if (r < 0)
		return r;
	r = check_file(interpreter);
	if (r < 0)
		return r;
	joined = join(interpreter, argument, path, *argv);
	if (joined == NULL)
		return -ENOMEM;
	free_strings(*argv);
	*argv = joined;
	snprintf(path, PATH_MAX, "%s", interpreter);
	return 0;
}

static int resolve(char *path, char ***argv)
{
	char head[HEAD_SIZE];

	for (int i = 0; i <= MAX_SCRIPTS; i++) {
		ssize_t n = read_head(path, head);
		int r;

		if (n < 0)
			return (int)n;
		if (is_x86_64(head, (size_t)n))
			return 0;
		if (n < 2 || head[0] != '#' || head[1] != '!')
			return -ENOEXEC;
		r = enter_interpreter(head, (size_t)n, path, argv);
		if (r < 0)
			return r;
	}
	return -ELOOP;
}

static void explain(int error, const char *name, const char *path, char *why, size_t why_size)
{
	switch (error) {
	case -ENOENT:
		if (path[0] != '\0' && strcmp(name, path) != 0 && check_file(path) == 0)
			snprintf(why, why_size, "%s: its interpreter was not found", name);
		else
			snprintf(why, why_size, "%s: command not found", name);
		break;
	case -EACCES: snprintf(why, why_size, "%s: not executable", name); break;
	case -ENOEXEC:
		snprintf(why, why_size,
			 "%s: neither an x86-64 ELF program nor a script (\"#!\"): the emulated "
			 "source cannot run it",
			 path[0] != '\0' ? path : name);
		break;
	default: snprintf(why, why_size, "%s: %s", name, strerror(-error)); break;
	}
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

int emu_command_find(char *const *argv, struct emu_command *ret, char *why, size_t why_size)
{
	char path[PATH_MAX] = "";
	int r = find_file(argv[0], path, sizeof(path));

	*ret = (struct emu_command){0};
	if (r == 0) {
		ret->argv = join(argv[0], NULL, NULL, argv);
		if (asprintf(&ret->comm, "%.15s", base_name(path)) < 0)
			ret->comm = NULL;
		r = ret->argv == NULL || ret->comm == NULL ? -ENOMEM : resolve(path, &ret->argv);
	}
	if (r == 0) {
		ret->program = absolute(path);
		r = ret->program == NULL ? -ENOMEM : 0;
	}
	if (r < 0) {
		explain(r, argv[0], path, why, why_size);
		emu_command_done(ret);
	}
	return r;
}

void emu_command_done(struct emu_command *c)
{
	free(c->program);
	free(c->comm);
	free_strings(c->argv);
	*c = (struct emu_command){0};
}
