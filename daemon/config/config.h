/*
 * What the daemon was asked for, and every limit it keeps. Made by main.c, out of the defaults,
 * ptsnapd.conf and the command line, and made anew by reload.c; then const.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/ring/source.h"

enum config_source { CONFIG_AUTO = 0, CONFIG_INTEL_PT, CONFIG_EMULATED };
/* What is wanted of ptsnapd instead of its service. */
enum config_action { CONFIG_SERVE = 0, CONFIG_TEST, CONFIG_CHECK };

struct config_value;
struct trigger_set;

struct config {
	enum config_action action;
	bool json; /* how CONFIG_TEST and CONFIG_CHECK answer */
	const char
		*config_file; /* read only this; "": none; NULL: those of the system; from argv */
	/* Where triggers are, so too; NULL with a config_file: nowhere. */
	const char *triggers_dir;
	int argc; /* what config_parse was given, borrowed: a reload reads it again */
	char *const *argv;

	/* Texts belong to values, unless it is said otherwise. */
	enum config_source source;
	enum source_trace trace;
	const char *cpus;     /* NULL: all */
	const char *preset;   /* NULL: the source's default */
	const char *pt_terms; /* NULL: those of the preset */
	bool require_pt;      /* a host without PT is an error */
	const char *socket, *state_dir;
	const char *admin_group;		   /* a group's name or number; NULL: none */
	bool status_to_all;			   /* a second socket tells everybody */
	const char *exclude_units, *exclude_users; /* lists (exclude.h); NULL: nobody */
	const char *worker;			   /* path of ptsnap-decode */
	const char *decoder_socket; /* of a service that starts one; NULL: there is none */
	const char *emu_socket;	    /* where a machine is offered; NULL: none */
	const char *emulate;	    /* where to offer one, instead of recording; NULL: record */
	const char *emu_plugin;	    /* path of ptsnap-emupmu.so */
	const char *emu_qemu;	    /* NULL: by PATH */
	const char *emu_truth;	    /* a directory; NULL: none */
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
	uint64_t ring_budget;	      /* bytes; 0: the source's default */
	uint64_t timeline_max;	      /* bytes */
	const char *metrics_file;     /* NULL: none */
	uint64_t decode_timeout_usec;
	uint64_t decode_memory; /* address space of ptsnap-decode beyond the bundle */
	bool source_lines;	/* reports have those that DWARF tells */
	uint64_t store_max_use; /* bytes under state_dir */
	uint32_t store_max_entries;

	/* Snapshots: so many at once, and in such a time; 0: no limit. */
	uint32_t trigger_burst, user_burst;
	uint64_t trigger_interval_usec, user_interval_usec;

	/* Limits without an option. */
	uint64_t intake_usec;	   /* between two drains of rings that cannot be polled */
	uint64_t queue_bytes;	   /* of records that wait for the loop; power of two */
	uint64_t sideband_bytes;   /* of sideband records in a bundle */
	uint32_t max_files;	   /* mapped files held open */
	uint32_t max_processes;	   /* processes remembered with their facts */
	uint64_t max_image_bytes;  /* of one image that is kept whole */
	uint64_t max_images_bytes; /* of all that are; of all in a bundle that stays in memory */
	uint32_t max_jobs_queued;  /* besides the one that decodes */
	uint32_t store_in_memory;  /* snapshots kept in memory when the disk is full */
	uint32_t max_peers, max_peers_per_uid;
	uint64_t peer_idle_usec;
	uint32_t max_status_peers, max_status_peers_per_uid; /* of the socket for everybody */
	uint64_t status_peer_idle_usec;
	uint64_t command_grace_usec; /* between SIGTERM and SIGKILL for COMMAND */

	/* Each setting as it was said last, and by whom (config_setting.h); and the files that
	 * were read. */
	struct config_value *values;
	struct trigger_set *triggers; /* owned */
	char **files;
	size_t n_files;
};

/* Defaults and ARGV. 0: config_done frees what RET holds. Else RET holds nothing: CONFIG_HELP and
 * CONFIG_VERSION: the user asked for that text; -EINVAL: one line for the user, listing what is
 * valid, in WHY; -ENOMEM. */
#define CONFIG_HELP    1
#define CONFIG_VERSION 2
int config_parse(int argc, char *const *argv, struct config *ret, char *why, size_t why_size);
void config_done(struct config *c);

/* Told of each line that is left out: "FILE:LINE: what is wrong". */
struct config_warn {
	void *userdata;
	void (*line)(void *userdata, const char *text);
	unsigned n_lost; /* of them: where something that was meant has no effect */
};

/* The files that C asks for, below what the command line said. DIRECTORIES: where ptsnapd.conf is
 * looked for, the strongest first, NULL-terminated. 0; -EINVAL: what was
 * said cannot be done together, or --config names a file that is not there: WHY; -ENOMEM. */
int config_read_files(struct config *c, const char *const *directories, struct config_warn *warn,
		      char *why, size_t why_size);
/* /run/ptsnap, /etc/ptsnap, the vendor's. */
extern const char *const config_directories[];

/* The configuration as it would be if the recorder began now, with OLD's command line and the files
 * that there are. Settings that are made once, when the recorder starts, are OLD's still, and those
 * of them that would be others are told to WARN. Of lists that grow (ExcludeUnits=, ExcludeUsers=)
 * what was added is new. Triggers and what can change while it runs are new. 0: config_done frees
 * RET, which borrows nothing of OLD's; else nothing: -EINVAL with WHY, -ENOMEM. */
int config_reload(const struct config *old, const char *const *directories, struct config *ret,
		  struct config_warn *warn, char *why, size_t why_size);

/* Descriptors for all but mapped files: two events a CPU, connections, snapshots, our own. */
uint64_t config_other_fds(const struct config *c, size_t n_cpus);
/* The text of --help. */
void config_help(FILE *to);
/* All settings and who said them: as a file that --config would read, or as JSON. To FD; 0 or
 * -errno. */
int config_show(const struct config *c, int fd);
