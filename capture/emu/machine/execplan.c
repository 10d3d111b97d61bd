/*
 * Works out what execve(2) would do with a file (fs/exec.c).
 *
 * Each file is opened once with O_PATH, and all checks use this descriptor: the checked file is the
 * file that is used, and a file that the caller may not open is never touched.
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

#include "proto/base.h"

/* fs/exec.c, exec_binprm: maximal number of nested "#!" interpreters */
#define MAX_SCRIPTS 5
/* AT_EXECVE_CHECK, include/uapi/linux/fcntl.h since 6.14; older kernels return EINVAL. */
#define CHECK_ONLY 0x10000

struct work {
	const struct execplan_request *request;
	struct execplan *plan;
	size_t n_args;
	int depth; /* number of "#!" lines so far */
	char *why;
	size_t why_size;
};

/* An open file: FD is O_PATH, READABLE is for reading. */
struct file {
	int fd, readable;
};

static void file_done(struct file *s)
{
	s->fd = close_fd(s->fd);
	s->readable = close_fd(s->readable);
}

static int native(struct work *w, const char *reason)
{
	snprintf(w->why, w->why_size, "%s", reason);
	return EXECPLAN_NATIVE;
}

/* Result for ERROR: with too few descriptors or memory here, the kernel may still succeed. */
static int failed(struct work *w, int error)
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

/* The absolute form of PATH, on the heap. NULL: no such form, or too long. */
static char *absolute(const char *path)
{
	char *directory, *result = NULL;

	if (path[0] == '/')
		return strdup(path);
	directory = getcwd(NULL, 0);
	/* fs/d_path.c: "(unreachable)" for a directory outside of this root. */
	if (directory && directory[0] == '/' &&
	    asprintf(&result, "%s%s%s", directory, directory[1] != '\0' ? "/" : "", path) < 0)
		result = NULL;
	free(directory);
	if (result && strlen(result) >= PATH_MAX) {
		free(result);
		return NULL;
	}
	return result;
}

/* /proc/self/exe is the emulator, but the guest means its own program. */
static const char *substitute(struct work *w, const char *path)
{
	CLEANUP_FREE char *whole = absolute(path);
	char by_pid[64];

	snprintf(by_pid, sizeof(by_pid), "/proc/%d/exe", getpid());
	if (!w->request->exe || !whole)
		return path;
	if (strcmp(whole, "/proc/self/exe") == 0 || strcmp(whole, "/proc/thread-self/exe") == 0 ||
	    strcmp(whole, by_pid) == 0)
		return w->request->exe;
	return path;
}

static int open_file(struct work *w, int dirfd, const char *path, int flags, int *ret_fd)
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

/* The checks of do_open_execat(). */
static int check_executable(struct work *w, int fd)
{
	char *argv[] = {(char *)"check", NULL}, *envp[] = {NULL};
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	/* Only the kernel knows whether the file is open for writing. */
	if (syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH | CHECK_ONLY) < 0 &&
	    (errno == EACCES || errno == ETXTBSY))
		return -errno;
	/* On a noexec mount, this gives EACCES, too. */
	if (faccessat(fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH) < 0)
		return errno == EACCES ? -EACCES : native(w, strerror(errno));
	return 0;
}

/* The kernel may read each file that it executes; the emulator needs the permission. */
static int open_for_reading(struct work *w, struct file *s)
{
	char path[64];

	fd_path(s->fd, path);
	s->readable = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (s->readable >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return native(w, "may be executed but not read");
	return native(w, errno == ENOENT ? "/proc is not mounted" : strerror(errno));
}

static int open_checked(struct work *w, int dirfd, const char *path, int flags, struct file *ret)
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

/* Rights that the kernel would give to the program (security/commoncap.c), or NULL. The emulator's
 * own file has none of these. */
static const char *gained_privileges(const struct file *s)
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

/* Whether binfmt_misc has any format; these precede the kernel's own formats. */
static bool has_other_formats(void)
{
	DIR *dir = opendir("/proc/sys/fs/binfmt_misc");
	const struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)) != NULL)
		found = entry->d_name[0] != '.' && strcmp(entry->d_name, "register") != 0 &&
			strcmp(entry->d_name, "status") != 0;
	if (dir)
		closedir(dir);
	return found;
}

static int check_elf_interpreter(struct work *w, const char *path)
{
	struct file s = {-EBADF, -EBADF};
	struct execfile_elf elf;
	int r = open_checked(w, AT_FDCWD, path, 0, &s);

	if (r == 0) {
		r = execfile_read_elf(s.readable, true, &elf);
		if (r == EXECFILE_FOREIGN)
			r = native(w, "its ELF interpreter is not one for the emulator");
		else if (r < 0)
			snprintf(w->why, w->why_size, "%s", path);
	}
	file_done(&s);
	return r;
}

static int check_program(struct work *w, const struct file *s)
{
	struct execfile_elf elf;
	const char *gained;
	int r = execfile_read_elf(s->readable, false, &elf);

	if (r == -ENOEXEC && has_other_formats())
		return native(w, "may have a format of binfmt_misc");
	if (r == 0 && elf.has_interpreter)
		r = check_elf_interpreter(w, elf.interpreter);
	if (r < 0 || r == EXECPLAN_NATIVE)
		return r < 0 ? failed(w, -r) : r;
	if (r == EXECFILE_FOREIGN)
		return native(w, elf.reason);
	gained = gained_privileges(s);
	return gained ? native(w, gained) : 0;
}

/* Since 5.18, the kernel passes an empty argument to a program without arguments. */
static int copy_arguments(struct work *w)
{
	static char *const nothing[] = {(char *)"", NULL};
	char *const *argv = w->request->argv;
	size_t n = 0;

	if (!argv || !argv[0])
		argv = nothing;
	while (argv[n])
		n++;
	/* Each script adds two arguments at the front. */
	w->plan->argv = calloc(n + 2 * (MAX_SCRIPTS + 1) + 1, sizeof(char *));
	for (; w->plan->argv && w->n_args < n; w->n_args++) {
		w->plan->argv[w->n_args] = strdup(argv[w->n_args]);
		if (!w->plan->argv[w->n_args])
			return -ENOMEM;
	}
	return w->plan->argv ? 0 : -ENOMEM;
}

static int put_in_front(struct work *w, const char *text)
{
	char **argv = w->plan->argv, *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	memmove(argv + 1, argv, w->n_args * sizeof(*argv));
	argv[0] = copy;
	w->n_args++;
	return 0;
}

/* argv[0] becomes the script's name (from the second script on, it is this name already), then the
 * script's argument and its interpreter go before it. */
static int enter_script(struct work *w, const struct execfile_script *script)
{
	const struct execplan_request *q = w->request;
	int r = 0;

	if (w->depth++ == 0) {
		char *name;

		/* The kernel makes up a name for a file that is relative to a descriptor. */
		if (q->dirfd == AT_FDCWD || q->path[0] == '/')
			name = strdup(q->path);
		else if (asprintf(&name, "/dev/fd/%d%s%s", q->dirfd, q->path[0] != '\0' ? "/" : "",
				  q->path) < 0)
			name = NULL;
		if (!name)
			return -ENOMEM;
		free(w->plan->argv[0]);
		w->plan->argv[0] = name;
	}
	if (script->argument)
		r = put_in_front(w, script->argument);
	return r == 0 ? put_in_front(w, script->interpreter) : r;
}

/* Takes one "#!" line into account. EXECFILE_NO_SCRIPT: the file is no script. */
static int pass_script(struct work *w, const struct file *s)
{
	const struct execplan_request *q = w->request;
	char head[EXECFILE_HEAD_SIZE];
	struct execfile_script script;
	int r = execfile_read_head(s->readable, head);

	if (r == 0)
		r = execfile_parse_script(head, &script);
	/* BINPRM_FLAGS_PATH_INACCESSIBLE: the exec closes the descriptor that leads to the script.
	 */
	if (r == 0 && w->depth == 0 && q->dirfd != AT_FDCWD && q->path[0] != '/' &&
	    (fcntl(q->dirfd, F_GETFD) & FD_CLOEXEC) != 0)
		r = -ENOENT;
	if (r != 0)
		return r;
	if (w->depth == MAX_SCRIPTS)
		return -ELOOP;
	r = enter_script(w, &script);
	return r == 0 ? 0 : native(w, strerror(-r));
}

/* Follows "#!" lines to the program. *RET: the program, *RET_PATH: the path by which it was found.
 */
static int follow_scripts(struct work *w, struct file *ret, const char **ret_path)
{
	const struct execplan_request *q = w->request;
	int r;

	*ret_path = substitute(w, q->path);
	r = open_checked(w, q->dirfd, *ret_path, q->flags, ret);
	while (r == 0) {
		r = pass_script(w, ret);
		if (r != 0)
			break;
		file_done(ret);
		*ret_path = substitute(w, w->plan->argv[0]);
		r = open_checked(w, AT_FDCWD, *ret_path, 0, ret);
	}
	return r == EXECFILE_NO_SCRIPT ? check_program(w, ret) : r;
}

/* Whether PATH leads to the file FD without a magic link of /proc, and so still does after the
 * exec. */
static bool is_stable(const char *path, int fd)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	CLEANUP_CLOSE int other = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	struct stat a, b;

	return other >= 0 && fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Names the program by the path of the call, if it is stable; else by the path that the kernel
 * shows. */
static int name_program(struct work *w, const char *path, bool is_relative_to_cwd)
{
	CLEANUP_FREE char *called = is_relative_to_cwd ? absolute(path) : NULL;
	char link[64], shown[PATH_MAX], *deleted;
	ssize_t n;

	fd_path(w->plan->fd, link);
	n = readlink(link, shown, sizeof(shown) - 1);
	shown[n > 0 ? n : 0] = '\0';
	if (called && is_stable(called, w->plan->fd))
		w->plan->program = TAKE_PTR(called);
	else if (shown[0] == '/' && is_stable(shown, w->plan->fd))
		w->plan->program = strdup(shown);
	deleted = strstr(shown, " (deleted)");
	if (!w->plan->program && deleted)
		*deleted = '\0';
	w->plan->name = strdup(basename(shown));
	return w->plan->name ? 0 : native(w, strerror(ENOMEM));
}

int execplan_make(const struct execplan_request *request, struct execplan *ret, char *why,
		  size_t why_size)
{
	struct work w = {.request = request, .plan = ret, .why = why, .why_size = why_size};
	struct file s = {-EBADF, -EBADF};
	const char *path = NULL;
	int r;

	*ret = (struct execplan){.fd = -EBADF};
	why[0] = '\0';
	r = copy_arguments(&w) < 0 ? native(&w, strerror(ENOMEM)) : follow_scripts(&w, &s, &path);
	if (r == 0) {
		ret->fd = take_fd(&s.fd);
		r = name_program(&w, path,
				 w.depth > 0 || request->dirfd == AT_FDCWD || path[0] == '/');
	}
	file_done(&s);
	if (r != 0) {
		execplan_done(ret);
		return r;
	}
	/* begin_new_exec: the path of the call, for a script the script's path. For an empty path,
	 * the file's name (since 6.14; before, the descriptor's number). */
	snprintf(ret->comm, sizeof(ret->comm), "%s",
		 request->path[0] != '\0' ? basename(request->path) : ret->name);
	return 0;
}

void execplan_done(struct execplan *p)
{
	for (size_t i = 0; p->argv && p->argv[i]; i++)
		free(p->argv[i]);
	free(p->argv);
	free(p->program);
	free(p->name);
	close_fd(p->fd);
	*p = (struct execplan){.fd = -EBADF};
}
