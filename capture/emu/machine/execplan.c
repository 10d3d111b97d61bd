/*
 * One execve, thought through (fs/exec.c). Called by emu_command.c in the recorder and by follow.c
 * in the emulator's process.
 *
 * Each file is opened once, by O_PATH, and everything is asked of that descriptor; so that what was
 * checked is what is meant, and a file that may not be opened is never touched.
 */
#include "capture/emu/machine/execplan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "capture/emu/machine/execfile.h"
#include "proto/base.h"

/* fs/exec.c, exec_binprm: so many interpreters of interpreters */
#define MAX_SCRIPTS 5
/* include/uapi/linux/fcntl.h since 6.14; older kernels say EINVAL. */
#define CHECK_ONLY 0x10000

struct way {
	const struct execplan_request *request;
	struct execplan *plan;
	size_t n_args;
	int depth; /* scripts passed */
	char *why;
	size_t why_size;
};

/* A file on the way: FD by O_PATH, READABLE for its contents. */
struct stop {
	int fd, readable;
};

static void stop_done(struct stop *s)
{
	s->fd = close_fd(s->fd);
	s->readable = close_fd(s->readable);
}

static int native(struct way *w, const char *reason)
{
	snprintf(w->why, w->why_size, "%s", reason);
	return EXECPLAN_NATIVE;
}

/* Our own shortages are not the kernel's refusals. */
static int failed(struct way *w, int error)
{
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		return native(w, strerror(error));
	return -error;
}

bool execplan_may(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

static void fd_path(int fd, char ret[64])
{
	snprintf(ret, 64, "/proc/self/fd/%d", fd);
}

/* NULL: it cannot be told, or is too long to be of use. */
static char *absolute(const char *path)
{
	char *directory, *result = NULL;

	if (path[0] == '/')
		return strdup(path);
	directory = getcwd(NULL, 0);
	/* fs/d_path.c: "(unreachable)" of a directory outside of this root. */
	if (directory != NULL && directory[0] == '/' &&
	    asprintf(&result, "%s%s%s", directory, directory[1] != '\0' ? "/" : "", path) < 0)
		result = NULL;
	free(directory);
	if (result != NULL && strlen(result) >= PATH_MAX) {
		free(result);
		return NULL;
	}
	return result;
}

/* The running program is the emulator; to the one that it runs it is itself. */
static const char *substitute(struct way *w, const char *path)
{
	CLEANUP_FREE char *whole = absolute(path);
	char by_pid[64];

	snprintf(by_pid, sizeof(by_pid), "/proc/%d/exe", getpid());
	if (w->request->exe == NULL || whole == NULL)
		return path;
	if (strcmp(whole, "/proc/self/exe") == 0 || strcmp(whole, "/proc/thread-self/exe") == 0 ||
	    strcmp(whole, by_pid) == 0)
		return w->request->exe;
	return path;
}

static int open_file(struct way *w, int dirfd, const char *path, int flags, int *ret_fd)
{
	int nofollow = flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0;

	if (path[0] == '\0' && (flags & AT_EMPTY_PATH) == 0)
		return -ENOENT;
	if (path[0] == '\0')
		*ret_fd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
	else
		*ret_fd = openat(dirfd, path, O_PATH | O_CLOEXEC | nofollow);
	return *ret_fd < 0 ? failed(w, errno) : 0;
}

/* Whether it is open for writing only the kernel can tell. */
static int ask_kernel(int fd)
{
	char *argv[] = {(char *)"check", NULL}, *envp[] = {NULL};

	if (syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH | CHECK_ONLY) < 0 &&
	    (errno == EACCES || errno == ETXTBSY))
		return -errno;
	return 0;
}

/* do_open_execat */
static int check_executable(struct way *w, int fd)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	r = ask_kernel(fd);
	/* A file system mounted noexec gives EACCES here, too. */
	if (r == 0 && faccessat(fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH) < 0)
		r = errno == EACCES ? -EACCES : native(w, strerror(errno));
	return r;
}

/* The kernel reads what it executes without asking for permission; the emulator has to ask. */
static int open_for_reading(struct way *w, struct stop *s)
{
	char path[64];

	fd_path(s->fd, path);
	s->readable = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (s->readable >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return native(w, "may be executed but not read");
	return native(w, errno == ENOENT ? "/proc is not there" : strerror(errno));
}

static int stop_at(struct way *w, int dirfd, const char *path, int flags, struct stop *ret)
{
	int r = open_file(w, dirfd, path, flags, &ret->fd);

	if (r == 0)
		r = check_executable(w, ret->fd);
	if (r == 0)
		r = open_for_reading(w, ret);
	if (r < 0 && path != w->request->path)
		snprintf(w->why, w->why_size, "%s", path);
	return r;
}

/* security/commoncap.c; set-ID bits and capabilities would be the emulator's, which has none. */
static const char *gained_privileges(const struct stop *s)
{
	struct statvfs fs;
	struct stat st;

	if (fstat(s->fd, &st) < 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	    (fstatvfs(s->fd, &fs) == 0 && (fs.f_flag & ST_NOSUID) != 0))
		return NULL;
	if ((st.st_mode & S_ISUID) != 0 && st.st_uid != geteuid())
		return "set-user-ID program";
	if ((st.st_mode & S_ISGID) != 0 && (st.st_mode & S_IXGRP) != 0 && st.st_gid != getegid())
		return "set-group-ID program";
	if (geteuid() != 0 && fgetxattr(s->readable, "security.capability", NULL, 0) > 0)
		return "program with file capabilities";
	return NULL;
}

/* Their formats come before the kernel's own; which of them fits is not looked at. */
static bool has_other_formats(void)
{
	DIR *dir = opendir("/proc/sys/fs/binfmt_misc");
	const struct dirent *entry;
	bool found = false;

	while (dir != NULL && !found && (entry = readdir(dir)) != NULL)
		found = entry->d_name[0] != '.' && strcmp(entry->d_name, "register") != 0 &&
			strcmp(entry->d_name, "status") != 0;
	if (dir != NULL)
		closedir(dir);
	return found;
}

static int check_elf_interpreter(struct way *w, const char *path)
{
	struct stop s = {-EBADF, -EBADF};
	struct execfile_elf elf;
	int r = stop_at(w, AT_FDCWD, path, 0, &s);

	if (r == 0) {
		r = execfile_read_elf(s.readable, true, &elf);
		if (r == EXECFILE_FOREIGN)
			r = native(w, "its ELF interpreter is not one for the emulator");
		else if (r < 0)
			snprintf(w->why, w->why_size, "%s", path);
	}
	stop_done(&s);
	return r;
}

static int check_program(struct way *w, const struct stop *s)
{
	struct execfile_elf elf;
	const char *gained;
	int r = execfile_read_elf(s->readable, false, &elf);

	if (r == -ENOEXEC && has_other_formats())
		return native(w, "may be of a format that binfmt_misc knows");
	if (r == 0 && elf.has_interpreter)
		r = check_elf_interpreter(w, elf.interpreter);
	if (r < 0 || r == EXECPLAN_NATIVE)
		return r < 0 ? failed(w, -r) : r;
	if (r == EXECFILE_FOREIGN)
		return native(w, elf.reason);
	gained = gained_privileges(s);
	return gained != NULL ? native(w, gained) : 0;
}

/* The kernel gives a program without arguments an empty one since 5.18. */
static int copy_arguments(struct way *w)
{
	static char *const nothing[] = {(char *)"", NULL};
	char *const *argv = w->request->argv;
	size_t n = 0;

	if (argv == NULL || argv[0] == NULL)
		argv = nothing;
	while (argv[n] != NULL)
		n++;
	/* Each script puts two before them. */
	w->plan->argv = calloc(n + 2 * (MAX_SCRIPTS + 1) + 1, sizeof(char *));
	for (; w->plan->argv != NULL && w->n_args < n; w->n_args++) {
		w->plan->argv[w->n_args] = strdup(argv[w->n_args]);
		if (w->plan->argv[w->n_args] == NULL)
			return -ENOMEM;
	}
	return w->plan->argv != NULL ? 0 : -ENOMEM;
}

static int put_in_front(struct way *w, const char *text)
{
	char **argv = w->plan->argv, *copy = strdup(text);

	if (copy == NULL)
		return -ENOMEM;
	memmove(argv + 1, argv, w->n_args * sizeof(*argv));
	argv[0] = copy;
	w->n_args++;
	return 0;
}

/* What the kernel calls the file: it invents a name where it was given a descriptor. */
static char *kernel_name(const struct execplan_request *q)
{
	char *name;

	if (q->dirfd == AT_FDCWD || q->path[0] == '/')
		return strdup(q->path);
	if (asprintf(&name, "/dev/fd/%d%s%s", q->dirfd, q->path[0] != '\0' ? "/" : "", q->path) < 0)
		return NULL;
	return name;
}

/* BINPRM_FLAGS_PATH_INACCESSIBLE: a script's interpreter could not open it any more. */
static bool is_lost_by_exec(const struct execplan_request *q)
{
	return q->dirfd != AT_FDCWD && q->path[0] != '/' &&
	       (fcntl(q->dirfd, F_GETFD) & FD_CLOEXEC) != 0;
}

/* argv[0] becomes the script's name (from the second script on it is that already); then its
 * argument and its interpreter are put before it. */
static int enter_script(struct way *w, const struct execfile_script *script)
{
	int r = 0;

	if (w->depth++ == 0) {
		char *name = kernel_name(w->request);

		if (name == NULL)
			return -ENOMEM;
		free(w->plan->argv[0]);
		w->plan->argv[0] = name;
	}
	if (script->argument != NULL)
		r = put_in_front(w, script->argument);
	return r == 0 ? put_in_front(w, script->interpreter) : r;
}

/* It was a script: EXECFILE_NO_SCRIPT when it was none. */
static int pass_script(struct way *w, const struct stop *s)
{
	char head[EXECFILE_HEAD_SIZE];
	struct execfile_script script;
	int r = execfile_read_head(s->readable, head);

	if (r == 0)
		r = execfile_parse_script(head, &script);
	if (r == 0 && w->depth == 0 && is_lost_by_exec(w->request))
		r = -ENOENT;
	if (r != 0)
		return r;
	if (w->depth == MAX_SCRIPTS)
		return -ELOOP;
	r = enter_script(w, &script);
	return r == 0 ? 0 : native(w, strerror(-r));
}

/* From script to script; *RET is the program then, and *RET_PATH how it was called. */
static int walk(struct way *w, struct stop *ret, const char **ret_path)
{
	const struct execplan_request *q = w->request;
	int r;

	*ret_path = substitute(w, q->path);
	r = stop_at(w, q->dirfd, *ret_path, q->flags, ret);
	while (r == 0) {
		r = pass_script(w, ret);
		if (r != 0)
			break;
		stop_done(ret);
		*ret_path = substitute(w, w->plan->argv[0]);
		r = stop_at(w, AT_FDCWD, *ret_path, 0, ret);
	}
	return r == EXECFILE_NO_SCRIPT ? check_program(w, ret) : r;
}

static bool is_same_file(int fd, int other)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* PATH leads to the file at FD without a descriptor's help, so it still will after exec. */
static bool is_stable(const char *path, int fd)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	CLEANUP_CLOSE int other = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return other >= 0 && is_same_file(fd, other);
}

/* As it was called, if that is good later too; else as the kernel shows it. */
static int name_program(struct way *w, const char *path, bool is_relative_to_cwd)
{
	CLEANUP_FREE char *called = is_relative_to_cwd ? absolute(path) : NULL;
	char link[64], shown[PATH_MAX], *deleted;
	ssize_t n;

	fd_path(w->plan->fd, link);
	n = readlink(link, shown, sizeof(shown) - 1);
	shown[n > 0 ? n : 0] = '\0';
	if (called != NULL && is_stable(called, w->plan->fd))
		w->plan->program = TAKE_PTR(called);
	else if (shown[0] == '/' && is_stable(shown, w->plan->fd))
		w->plan->program = strdup(shown);
	deleted = strstr(shown, " (deleted)");
	if (w->plan->program == NULL && deleted != NULL)
		*deleted = '\0';
	w->plan->name = strdup(basename(shown));
	return w->plan->name != NULL ? 0 : native(w, strerror(ENOMEM));
}

/* begin_new_exec: the name that was exec'ed, of a script the script's; of an empty one the file's
 * (since 6.14, before the descriptor's number). */
static void choose_comm(struct way *w)
{
	const char *path = w->request->path;
	const char *name = path[0] != '\0' ? basename(path) : w->plan->name;

	snprintf(w->plan->comm, sizeof(w->plan->comm), "%s", name);
}

int execplan_make(const struct execplan_request *request, struct execplan *ret, char *why,
		  size_t why_size)
{
	struct way w = {.request = request, .plan = ret, .why = why, .why_size = why_size};
	struct stop s = {-EBADF, -EBADF};
	const char *path = NULL;
	int r;

	*ret = (struct execplan){.fd = -EBADF};
	why[0] = '\0';
	r = copy_arguments(&w) < 0 ? native(&w, strerror(ENOMEM)) : walk(&w, &s, &path);
	if (r == 0) {
		ret->fd = take_fd(&s.fd);
		r = name_program(&w, path,
				 w.depth > 0 || request->dirfd == AT_FDCWD || path[0] == '/');
	}
	stop_done(&s);
	if (r == 0)
		choose_comm(&w);
	else
		execplan_done(ret);
	return r;
}

void execplan_done(struct execplan *p)
{
	for (size_t i = 0; p->argv != NULL && p->argv[i] != NULL; i++)
		free(p->argv[i]);
	free(p->argv);
	free(p->program);
	free(p->name);
	close_fd(p->fd);
	*p = (struct execplan){.fd = -EBADF};
}
