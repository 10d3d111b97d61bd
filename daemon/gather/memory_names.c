/*
 * Reads what a just-in-time compiler wrote down of its code, unparsed: the perf map and the jitdump
 * of a process, a stranger's files in directories where everybody may write.
 */
#include "daemon/gather/memory_read.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/proc/mounts.h"
#include "capture/proc/procfile.h"
#include "proto/base.h"
#include "proto/memfd.h"

#define CHUNK (1u << 20)
/* Of the header of a jitdump, which says what its times are. */
#define DUMP_HEADER 40u
#define DUMP_LEAST  65536u
/* A name of decoder/packet/fault.h. */
#define NOTE_ANONYMOUS "anonymous"

static const char why_other_owner[] =
	"its owner is neither the process's user nor root with read permission for everybody";
static const char why_not_regular[] = "it is not a regular file";
static const char why_blocking[] = "it is on a FUSE or network file system, which is not touched";
static const char why_unknown[] = "the kind of its file system is unknown";
static const char why_too_large[] = "it is larger than the limit for such files";
static const char why_unreadable[] = "it could not be read";
static const char why_gone[] = "it is not there any more";

struct status {
	uint32_t ns_pid;
	uint32_t uids[4]; /* real, effective, saved, of files */
};

/* Parses /proc/PID/status. The last number of the line NSpid is that of the innermost namespace. */
static bool parse_status(char *text, struct status *ret)
{
	char *ids = strstr(text, "\nUid:"), *pids = strstr(text, "\nNSpid:"), *last;

	if (!ids || !pids ||
	    sscanf(ids, "\nUid: %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &ret->uids[0],
		   &ret->uids[1], &ret->uids[2], &ret->uids[3]) != 4)
		return false;
	pids++;
	pids[strcspn(pids, "\n")] = '\0';
	last = strrchr(pids, '\t');
	return last && sscanf(last, "%" SCNu32, &ret->ns_pid) == 1 && ret->ns_pid > 0;
}

static bool read_status(int dir, struct status *ret)
{
	char text[4096];

	return procfile_read(dir, "status", text, sizeof(text)) > 0 && parse_status(text, ret);
}

/* Returns why FD must not be read; NULL: it may be read. */
static const char *refuse(struct mounts *mounts, const struct status *status, int fd)
{
	struct statx st = {0};
	enum mounts_kind kind = mounts_fd(mounts, fd, &st);
	bool may;

	if (kind == MOUNTS_BLOCKING || kind == MOUNTS_UNKNOWN)
		return kind == MOUNTS_BLOCKING ? why_blocking : why_unknown;
	if (!S_ISREG(st.stx_mode))
		return why_not_regular;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0)
		return why_unreadable;
	/* A process may read its user's files. A file of root that not everybody may read is not
	 * handed on: a link or a bind mount of the process can lead to any file. */
	may = st.stx_uid == 0 && (st.stx_mode & S_IROTH);
	for (size_t i = 0; i < ARRAY_SIZE(status->uids); i++)
		may |= st.stx_uid == status->uids[i];
	return may ? NULL : why_other_owner;
}

/* Opens FILE, which was opened with O_PATH, for reading. */
static int open_to_read(int file)
{
	char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
	return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Reads up to MAX bytes of FILE, which may grow meanwhile. Returns NULL, or why there is nothing.
 */
static const char *read_file(int file, uint64_t max, struct bytes_out *out)
{
	CLEANUP_CLOSE int fd = open_to_read(file);
	ssize_t n = 1;
	char more;

	if (fd < 0)
		return why_unreadable;
	bytes_out_init(out, max);
	while (n > 0 && out->size < max) {
		size_t before = out->size, some = (size_t)MIN_OF(max - before, (uint64_t)CHUNK);
		uint8_t *to = bytes_put_space(out, some);

		n = to ? pread(fd, to, some, (off_t)before) : -1;
		if (to)
			out->size = before + (size_t)MAX_OF(n, (ssize_t)0);
	}
	if (n < 0)
		return why_unreadable;
	return n > 0 && pread(fd, &more, 1, (off_t)out->size) > 0 ? why_too_large : NULL;
}

static int add_text(struct evidence *e, uint32_t pid, struct bytes_out *bytes, const char *missing)
{
	struct manifest_text *text;

	if (missing)
		bytes_out_done(bytes);
	text = evidence_add_text(e, bytes);
	if (!text)
		return -ENOMEM;
	text->pid = pid;
	text->kind = strdup(MANIFEST_TEXT_PERF_MAP);
	text->missing = missing ? strdup(missing) : NULL;
	return text->kind && (!missing || text->missing) ? 0 : -ENOMEM;
}

/* Makes a text of FD, which was opened with O_PATH; nothing if the file is empty. */
static int take_file(struct mounts *mounts, const struct status *status, int fd, uint32_t pid,
		     uint64_t max, uint64_t *left, struct evidence *e)
{
	struct bytes_out bytes;
	const char *missing = refuse(mounts, status, fd);

	bytes_out_init(&bytes, 0);
	if (!missing)
		missing = read_file(fd, MIN_OF(max, *left), &bytes);
	if (!missing)
		*left -= bytes.size;
	if (!missing && bytes.size == 0) {
		bytes_out_done(&bytes);
		return 0;
	}
	return add_text(e, pid, &bytes, missing);
}

int memory_names_read(struct mounts *mounts, int dir, uint32_t pid, uint64_t max, uint64_t *left,
		      struct evidence *e)
{
	CLEANUP_CLOSE int fd = -EBADF;
	struct status status;
	char path[64];
	struct bytes_out none;

	bytes_out_init(&none, 0);
	if (!read_status(dir, &status) || mounts_look(mounts, dir) < 0)
		return 0;
	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", status.ns_pid);
	if (mounts_path(mounts, path) == MOUNTS_BLOCKING)
		return add_text(e, pid, &none, why_blocking);
	fd = procfile_beneath(dir, path, O_NOFOLLOW);
	if (fd < 0)
		return 0;
	return take_file(mounts, &status, fd, pid, max, left, e);
}

/* --- Dumps --- */

bool memory_dump_is_name(int dir, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct status status;
	char name[32];

	if (path[0] != '/' || strncmp(slash + 1, "jit-", 4) != 0 || !read_status(dir, &status))
		return false;
	snprintf(name, sizeof(name), "jit-%" PRIu32 ".dump", status.ns_pid);
	return strcmp(slash + 1, name) == 0;
}

/* Appends [BEGIN, END) of FD to TO. */
static bool copy(int fd, uint64_t begin, uint64_t end, int to)
{
	CLEANUP_FREE uint8_t *buffer = malloc(CHUNK);

	while (buffer && begin < end) {
		ssize_t n = pread(fd, buffer, (size_t)MIN_OF(end - begin, (uint64_t)CHUNK),
				  (off_t)begin);

		if (n <= 0 || memfd_write_all(to, buffer, (size_t)n) < 0)
			return false;
		begin += (uint64_t)n;
	}
	return buffer;
}

/* What was copied of a dump. */
struct dump {
	int fd; /* negative: nothing */
	uint64_t size, omitted;
};

/* Copies FILE as it is now: its newest part, if there is more than MAX bytes, behind its header.
 * Returns NULL, or why there is nothing. */
static const char *copy_dump(int file, uint64_t max, struct dump *ret)
{
	CLEANUP_CLOSE int fd = open_to_read(file), to = -EBADF;
	uint64_t size, from = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 0)
		return why_unreadable;
	size = (uint64_t)st.st_size;
	if (size > max && max < DUMP_LEAST)
		return why_too_large;
	if (size > max)
		from = size - (max - DUMP_HEADER);
	if (memfd_new("ptsnap-jitdump", 0, &to) < 0 ||
	    (from > 0 && !copy(fd, 0, DUMP_HEADER, to)) || !copy(fd, from, size, to))
		return why_unreadable;
	ret->omitted = from > 0 ? from - DUMP_HEADER : 0;
	ret->size = size - ret->omitted;
	ret->fd = take_fd(&to);
	return NULL;
}

static int add_dump(struct evidence *e, const struct memory_dump *dump, const struct dump *copied,
		    const char *missing)
{
	struct manifest_image *image = evidence_add_image(e, copied->fd, copied->size);

	if (!image)
		return -ENOMEM;
	image->pid = dump->pid;
	image->read_ns = dump->now_ns;
	image->path = strdup(dump->path);
	image->kind = strdup(MANIFEST_IMAGE_JITDUMP);
	image->missing = missing ? strdup(missing) : NULL;
	if (!image->path || !image->kind || (missing && !image->missing))
		return -ENOMEM;
	if (copied->omitted == 0)
		return 0;
	return manifest_add_note(&e->manifest, NOTE_ANONYMOUS, copied->omitted,
				 "bytes of a jitdump that the limit left out");
}

int memory_dump_read(struct mounts *mounts, int dir, const struct memory_dump *dump, uint64_t max,
		     uint64_t *left, struct evidence *e)
{
	CLEANUP_CLOSE int fd = -EBADF;
	struct dump copied = {.fd = -EBADF};
	struct status status;
	const char *missing;

	if (!read_status(dir, &status) || mounts_look(mounts, dir) < 0)
		return 0;
	if (mounts_path(mounts, dump->path) == MOUNTS_BLOCKING)
		return add_dump(e, dump, &copied, why_blocking);
	fd = procfile_beneath(dir, dump->path, O_NOFOLLOW);
	if (fd < 0)
		return add_dump(e, dump, &copied, why_gone);
	missing = refuse(mounts, &status, fd);
	if (!missing)
		missing = copy_dump(fd, MIN_OF(max, *left), &copied);
	*left -= copied.size;
	return add_dump(e, dump, &copied, missing);
}
