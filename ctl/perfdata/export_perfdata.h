/*
 * Converts a bundle to a perf.data file and a perf.data file to a bundle.
 *
 * This room lets perf read what ptsnapd recorded, and lets ptsnap-decode read what perf recorded.
 * Both directions only translate layouts: nothing here decodes Intel PT or reads the content of a
 * program.
 *
 * Export: export_perfdata.c writes the file, export_layout.c knows the structures of the file, and
 * export_images.c writes the bundle's programs as files, so that perf finds the code of another
 * host. Import: import_perfdata.c reads the file and composes the bundle in memory,
 * import_records.c translates the kernel's records (plain and compressed), import_traces.c joins
 * the pieces of each trace, import_images.c looks for the mapped files and adds their bytes, and
 * import_kernel.c adds perf's copy of the kernel's memory. proto/perf/perfdata.h reads the layout
 * of a perf.data file.
 *
 * Decisions that govern the room:
 * - A perf.data file becomes a bundle in memory before anything is decoded, and its records get the
 *   layout of our sideband. Everything behind the import is the ordinary path.
 * - The import looks for code in perf's copies by build id, then at the path in the record (below
 *   --sysroot). The recording host's device and inode numbers say nothing about this host and are
 *   not compared; ptsnap-decode compares build ids.
 * - A trace of one thread (perf record --per-thread) is one turn that never ends.
 * - An export knows all sizes before the first byte, because it may go into a pipe. It copies no
 *   trace.
 * - Bundles and perf.data files come from strangers. Sizes and numbers are checked, records that
 *   perf would take for its own are left out and counted, and no path leads out of the directory
 *   that the user named.
 *
 * Functions of the import print their error messages and return an exit code; functions of the
 * export print nothing and return -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"

struct export_told {
	uint64_t bytes;	  /* size of the file */
	uint64_t records; /* sideband records in the file */
	uint64_t skipped; /* sideband records that are invalid or not for perf */
	/* No CPU has a trace: the file has sideband records and no Intel PT event. */
	bool untraced;
	/* The traces belong to CPUs, but have no TSC packets or no clock: perf cannot tell which
	 * thread ran, nor when. */
	bool nobodys;
};

/* Writes B to FD as a perf.data file for `perf script' and `perf report' of Linux 6.1 and later.
 * The file begins at FD's position; FD need not be seekable. 0, -ENODATA (the bundle has no trace),
 * -ENOMEM, or -errno of write(2). */
int export_perfdata(const struct bundle *b, int fd, struct export_told *ret);

/* perf reads code from the files that the records name, on the host where perf runs. The functions
 * below are for hosts where these files are others or missing. */
struct images_told {
	size_t n;		 /* files that the bundle has bytes of */
	size_t good;		 /* of these: written, or equal on this host */
	const char *first_other; /* path of the first that is not good, in the bundle, or NULL */
};

/* Makes a tree for `perf script --symfs DIR': every image at DIR/PATH, and images with a build id
 * also in DIR/.debug/.build-id, where perf looks first. DIR is made, or must be empty. An image is
 * not good, and no error, if its path cannot be made below DIR (not absolute, or with "..") or
 * another image has the same path. 0; IMAGES_NOT_OURS: DIR belongs to another user; -ENOTEMPTY; or
 * -errno of making or writing. */
#define IMAGES_NOT_OURS 1
int images_write(const struct bundle *b, const char *dir, struct images_told *ret);
/* Compares each image with the file at its path on this host. Reads all these files. */
void images_compare(const struct bundle *b, struct images_told *ret);
