/*
 * A FUSE file system with one executable file, for tests of files that the recorder must not touch.
 *
 *   fuse_file DIR NAME SOURCE LOG COMM...
 *
 * Mounts itself on DIR and shows the bytes of SOURCE as DIR/NAME until terminated. Processes named
 * one of COMM get no answer; each of their requests is a line "COMM OPCODE" in LOG. The program
 * exits STALL_SECONDS after the first such request. Prints "ready" when mounted. Exits with 77
 * where FUSE cannot be mounted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/fuse.h>

#define ROOT_NODE 1u
#define FILE_NODE 2u
#define MAX_READ  (128u << 10)
/* Exiting is the only way to wake a waiting process: even signals do not. */
#define STALL_SECONDS 10

static int device;
static const char *name, *dir;
static const char *bytes;
static uint64_t size;

static void answer(const struct fuse_in_header *in, int error, const void *data, size_t n)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + n), .error = -error, .unique = in->unique};
	struct iovec parts[] = {{&out, sizeof(out)}, {(void *)(uintptr_t)data, n}};

	/* The process that asked may have exited. */
	if (writev(device, parts, 2) < 0 && errno != ENOENT)
		_exit(1);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == ROOT_NODE ? S_IFDIR | 0755 : S_IFREG | 0755,
		.nlink = 1,
		.size = node == ROOT_NODE ? 0 : size,
		.blksize = 4096,
	};
}

static void look_up(const struct fuse_in_header *in, const char *wanted)
{
	struct fuse_entry_out out = {.nodeid = FILE_NODE, .attr_valid = 3600, .entry_valid = 3600};

	out.attr = attributes(FILE_NODE);
	if (in->nodeid != ROOT_NODE || strcmp(wanted, name) != 0)
		answer(in, ENOENT, NULL, 0);
	else
		answer(in, 0, &out, sizeof(out));
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *r)
{
	uint64_t left = r->offset < size ? size - r->offset : 0;

	answer(in, 0, bytes + (left ? r->offset : 0), left < r->size ? left : r->size);
}

static void serve(const struct fuse_in_header *in, const void *body)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_readahead = MAX_READ,
				     .max_write = 4096};
	struct fuse_attr_out attr = {.attr_valid = 3600, .attr = attributes(in->nodeid)};
	struct fuse_open_out opened = {.fh = 1, .open_flags = FOPEN_KEEP_CACHE};
	struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .namelen = 255}};

	switch (in->opcode) {
	case FUSE_INIT: answer(in, 0, &init, sizeof(init)); break;
	case FUSE_LOOKUP: look_up(in, body); break;
	case FUSE_GETATTR: answer(in, 0, &attr, sizeof(attr)); break;
	case FUSE_OPEN:
	case FUSE_OPENDIR: answer(in, 0, &opened, sizeof(opened)); break;
	case FUSE_READ: read_file(in, body); break;
	case FUSE_STATFS: answer(in, 0, &statfs, sizeof(statfs)); break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_ACCESS: answer(in, 0, NULL, 0); break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break;
	default: answer(in, ENOSYS, NULL, 0);
	}
}

static bool is_stalled(const struct fuse_in_header *in, char *const *comms, int log)
{
	char path[64], comm[32], line[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/comm", in->pid);
	f = in->pid ? fopen(path, "re") : NULL;
	if (!f || !fgets(comm, sizeof(comm), f))
		comm[0] = '\0';
	if (f)
		fclose(f);
	comm[strcspn(comm, "\n")] = '\0';
	for (; *comms; comms++) {
		if (strcmp(*comms, comm) != 0)
			continue;
		snprintf(line, sizeof(line), "%s %u\n", comm, in->opcode);
		if (write(log, line, strlen(line)) < 0)
			_exit(1);
		return true;
	}
	return false;
}

static void on_end(int signal)
{
	(void)signal;
	umount2(dir, MNT_DETACH);
	_exit(0);
}

static void map_source(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		exit(1);
	size = (uint64_t)st.st_size;
	bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		exit(1);
	close(fd);
}

int main(int argc, char **argv)
{
	static _Alignas(8) char buffer[MAX_READ + 4096];
	char options[128];
	ssize_t n;
	int log;

	if (argc < 5)
		return 2;
	dir = argv[1];
	name = argv[2];
	map_source(argv[3]);
	log = open(argv[4], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", device, getuid(),
		 getgid());
	signal(SIGTERM, on_end);
	signal(SIGINT, on_end);
	signal(SIGALRM, on_end);
	if (log < 0 || device < 0 || mount("fuse", dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return 77;
	puts("ready");
	fflush(stdout);
	for (;;) {
		const struct fuse_in_header *in = (const struct fuse_in_header *)buffer;

		n = read(device, buffer, sizeof(buffer));
		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < (ssize_t)sizeof(*in))
			return n < 0 && errno == ENODEV ? 0 : 1;
		if (!is_stalled(in, argv + 5, log))
			serve(in, in + 1);
		else
			alarm(STALL_SECONDS);
	}
}
