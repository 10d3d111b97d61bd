/*
 * What the daemon was asked for, and every limit it keeps. Made once by main.c, then const.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/source.h"

enum config_source { CONFIG_AUTO = 0, CONFIG_INTEL_PT, CONFIG_EMULATED };

struct config {
	enum config_source source;
	const char *socket, *state_dir;
	const char *pt_terms;	   /* NULL: the source's default */
	char worker[PATH_MAX];	   /* of ptsnap-decode */
	char emu_plugin[PATH_MAX]; /* of ptsnap-emupmu.so */
	const char *emu_qemu;	   /* NULL: by PATH */
	const char *emu_truth;	   /* a directory; NULL: none */
	bool emu_virtual_clock, emu_build_id;
	uint32_t emu_cpus, emu_max_tasks;
	uint64_t emu_quantum;	     /* instructions */
	uint64_t emu_overflow_bytes; /* 0: none */
	uint32_t emu_lose_every;     /* 0: none */
	struct source_emu_offline emu_offline[SOURCE_EMU_MAX_OFFLINE];
	size_t n_emu_offline;
	bool exit_with_command;
	char *const *command;	      /* NULL: none; else NULL-terminated, borrowed from argv */
	uint64_t aux_size, data_size; /* bytes a CPU */
	uint64_t decode_timeout_usec;

	/* Limits without an option. */
	uint64_t intake_usec;	     /* between two drains of rings that cannot be polled */
	uint64_t timeline_log_bytes; /* power of two */
	uint64_t timeline_base_bytes;
	uint64_t sideband_bytes;   /* of sideband records in a bundle */
	uint32_t max_files;	   /* mapped files held open */
	uint32_t max_processes;	   /* processes remembered with their facts */
	uint64_t max_image_bytes;  /* of one file in a bundle */
	uint64_t max_images_bytes; /* of all files in a bundle */
	uint32_t max_jobs_queued;  /* besides the one that decodes */
	uint64_t store_max_use;	   /* bytes under state_dir */
	uint32_t store_max_entries;
	uint32_t store_in_memory; /* snapshots kept in memory when the disk is full */
	uint64_t decode_memory;	  /* address space of ptsnap-decode beyond the bundle */
	uint32_t max_peers, max_peers_per_uid;
	uint64_t peer_idle_usec;
	uint64_t command_grace_usec; /* between SIGTERM and SIGKILL for COMMAND */
};

/* Parses ARGV. 0; CONFIG_HELP and CONFIG_VERSION: the user asked for that text; -EINVAL: one line
 * for the user, listing what is valid, in WHY. */
#define CONFIG_HELP    1
#define CONFIG_VERSION 2
int config_parse(int argc, char *const *argv, struct config *ret, char *why, size_t why_size);
/* The text of --help. */
const char *config_help(void);

/* "8M" -> bytes, "120s" -> microseconds (us, ms, s, min, h; a bare number: seconds). Numbers are
 * decimal, suffixes of sizes K, M, G, binary. 0 or -EINVAL (not a number, overflow). */
int config_parse_size(const char *text, uint64_t *ret);
int config_parse_time(const char *text, uint64_t *ret_usec);
