/*
 * The configuration of the recorder: what the user asked for, and every limit that the recorder
 * keeps.
 *
 * This room turns defaults, files and the command line into one struct config. config_table.c is
 * the table of all settings; the command line, ptsnapd.conf, --help and --test-config all read that
 * table. config_types.c turns the text of a setting into its value. config.c reads the command line
 * and keeps who said what; config_file.c reads ptsnapd.conf, at start and at a reload;
 * config_show.c prints --help and --test-config. conffile.c parses files as systemd does.
 * trigger_set.c and trigger_object.c have the triggers of triggers.d. names.c looks up users and
 * groups, and exclude.c has the processes to leave alone. unit_limits.c computes the limits that
 * systemd gets.
 *
 * Decisions that govern the room:
 * - A value of the command line wins over one of a file, and a file over the default. All three are
 *   read by the same functions.
 * - Nothing in a file is fatal: one file may serve hosts of many versions and kinds. A setting that
 *   is wrong is reported, with file and line, and ignored. Everything wrong on the command line is
 *   fatal, and the message lists what is valid.
 * - A configuration is const once it is made. A reload makes a new one. A setting that takes effect
 *   only once, when the recorder starts, keeps its old value in the new configuration, so that
 *   nobody sees a value that is not in force; the reload says so.
 * - Users and groups may be listed on another host that does not answer. A thread that can be left
 *   behind (daemon/base/aside.h) looks names up, and what was known before holds until it answers.
 * - Exclusion only grows: a reload adds units and users, and only a restart takes some away.
 * - The conditions that fire a trigger are configuration; the trigger's tokens and counters are the
 *   recorder's (daemon/trigger/gate.h). A reload therefore changes the conditions and keeps tokens
 *   and counters.
 *
 * main.c makes the first configuration, which is never freed, and manager_settings.c the others; a
 * configuration is freed when no job uses it any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/ring/source.h"

enum config_source { CONFIG_AUTO = 0, CONFIG_INTEL_PT, CONFIG_EMULATED };
/* ptsnapd serves, or does --test-config or --check instead. */
enum config_action { CONFIG_SERVE = 0, CONFIG_TEST, CONFIG_CHECK };

struct config_value;
struct trigger_set;

struct config {
	enum config_action action;
	bool json; /* CONFIG_TEST and CONFIG_CHECK answer in JSON */
	/* The only file to read; "": none; NULL: the system's files. Borrowed from argv. */
	const char *config_file;
	/* The same for the directory of triggers. NULL with a config_file: none. */
	const char *triggers_dir;
	/* The arguments of config_parse(), borrowed: a reload reads them again. */
	int argc;
	char *const *argv;

	/* Texts are owned by the values below, unless a comment says otherwise. */
	enum config_source source;
	enum source_trace trace;
	const char *cpus;     /* NULL: all */
	const char *preset;   /* NULL: the source's default */
	const char *pt_terms; /* NULL: those of the preset */
	bool require_pt;      /* a host without PT is an error */
	const char *socket, *state_dir;
	const char *admin_group;		   /* a group's name or number; NULL: none */
	bool status_to_all;			   /* a second socket answers everybody */
	const char *exclude_units, *exclude_users; /* lists (exclude.h); NULL: none */
	const char *worker;			   /* path of ptsnap-decode */
	const char *decoder_socket; /* of a service that starts a decoder; NULL: none */
	const char *emu_socket;	    /* where ptsnapd --emulate offers a machine; NULL: nowhere */
	const char *emulate;	/* where to offer a machine, instead of recording; NULL: record */
	const char *emu_plugin; /* path of ptsnap-emupmu.so */
	const char *emu_qemu;	/* NULL: found in PATH */
	const char *emu_truth;	/* a directory; NULL: none */
	bool emu_virtual_clock, emu_build_id;
	uint32_t emu_cpus, emu_max_tasks;
	uint64_t emu_quantum;	     /* instructions */
	uint64_t emu_overflow_bytes; /* 0: none */
	uint32_t emu_lose_every;     /* 0: none */
	struct source_emu_offline emu_offline[SOURCE_EMU_MAX_OFFLINE];
	size_t n_emu_offline;
	bool exit_with_command;
	char *const *command;	      /* NULL: none; else NULL-terminated, borrowed from argv */
	uint64_t aux_size, data_size; /* bytes for each CPU */
	uint64_t ring_budget;	      /* bytes; 0: the source's default */
	uint64_t timeline_max;	      /* bytes */
	const char *metrics_file;     /* NULL: none */
	const char *debug_directory;  /* with separate files of symbols; NULL: none */
	uint64_t decode_timeout_usec;
	uint64_t decode_memory; /* address space of ptsnap-decode beyond the bundle */
	bool source_lines;	/* reports have source lines, from DWARF */
	uint64_t store_max_use; /* bytes under state_dir */
	uint32_t store_max_entries;

	/* At most BURST snapshots within INTERVAL, for each trigger and each user; 0: no limit. */
	uint32_t trigger_burst, user_burst;
	uint64_t trigger_interval_usec, user_interval_usec;

	/* Limits without an option. */
	uint64_t intake_usec;	   /* between two drains of rings that cannot be polled */
	uint64_t queue_bytes;	   /* of records that wait for the loop; power of two */
	uint64_t sideband_bytes;   /* of sideband records in a bundle */
	uint32_t max_files;	   /* mapped files held open */
	uint32_t max_processes;	   /* processes remembered with their facts */
	uint64_t max_image_bytes;  /* of one image that is kept whole */
	uint64_t max_images_bytes; /* of all images that are; of a bundle's if it is in memory */
	uint32_t max_jobs_queued;  /* besides the one that decodes */
	uint32_t store_in_memory;  /* snapshots kept in memory when the disk is full */
	uint32_t max_peers, max_peers_per_uid;
	uint64_t peer_idle_usec;
	uint32_t max_status_peers, max_status_peers_per_uid; /* of the socket for everybody */
	uint64_t status_peer_idle_usec;
	uint64_t command_grace_usec; /* between SIGTERM and SIGKILL for COMMAND */

	struct config_value *values;  /* each setting's text, and who said it */
	struct trigger_set *triggers; /* owned */
	char **files;		      /* that were read */
	size_t n_files;
};

/* Defaults and ARGV. 0: *ret is a configuration, to be freed by config_done(). Otherwise *ret has
 * nothing to free: CONFIG_HELP, CONFIG_VERSION: the user asked for that text; -EINVAL: WHY is one
 * line for the user that lists what is valid; -ENOMEM. */
#define CONFIG_HELP    1
#define CONFIG_VERSION 2
int config_parse(int argc, char *const *argv, struct config *ret, char *why, size_t why_size);
void config_done(struct config *c);

/* Gets each line about a file: "FILE:LINE: what is wrong". */
struct config_warn {
	void *userdata;
	void (*line)(void *userdata, const char *text);
	unsigned n_lost; /* lines about something that was meant and has no effect */
};

/* Reads the files that C asks for, below what the command line said. DIRECTORIES are where
 * ptsnapd.conf is looked for, the strongest first, NULL-terminated. 0; -EINVAL with WHY: settings
 * exclude each other, or the file of --config does not exist; -ENOMEM. */
int config_read_files(struct config *c, const char *const *directories, struct config_warn *warn,
		      char *why, size_t why_size);
/* /run/ptsnap, /etc/ptsnap, the vendor's. */
extern const char *const config_directories[];

/*
 * Makes the configuration that the recorder would begin with now, by OLD's command line and the
 * files as they are. Settings that take effect only at start keep OLD's value, and WARN gets those
 * that would have another one. Lists that grow (ExcludeUnits=, ExcludeUsers=) get what was added.
 * Triggers and other settings are new. 0: config_done() frees *ret, which borrows nothing from OLD.
 * -EINVAL with WHY, -ENOMEM: *ret has nothing to free.
 */
int config_reload(const struct config *old, const char *const *directories, struct config *ret,
		  struct config_warn *warn, char *why, size_t why_size);

/* Descriptors for all but mapped files: two events for each CPU, connections, snapshots, our own.
 */
uint64_t config_other_fds(const struct config *c, size_t n_cpus);
/* Prints the text of --help. */
void config_help(FILE *to);
/* Writes all settings and who said them to FD: as a file that --config would read, or as JSON. 0 or
 * -errno. */
int config_show(const struct config *c, int fd);

/*
 * unit_limits.c: the limits that systemd needs for the recorder and its decoders, computed from the
 * configuration, as drop-ins for ptsnapd.service and ptsnap-decode@.service.
 *
 * The limits catch our bugs, so they lie above the recorder's own limits.
 */

/* Bytes of code in memory and of its names in one bundle: memory_default_limits (memory_read.h),
 * without the code that comes with them. */
#define UNIT_LIMITS_CODE (512ull << 20)

struct unit_limits_host {
	size_t n_cpus;	 /* possible CPUs; at least 1 */
	uint64_t memory; /* bytes; 0: not known */
	uint64_t budget; /* of rings, if the configuration has none */
};

struct unit_limits {
	uint64_t recorder_high, recorder_max; /* bytes: MemoryHigh=, MemoryMax= */
	uint64_t decoder_max;		      /* bytes: MemoryMax= of one decoder */
	uint64_t decoder_seconds;	      /* RuntimeMaxSec= */
};

/* Describes this host. */
void unit_limits_host(struct unit_limits_host *ret);
/* Computes the limits. The recorder needs its rings and their copy, a bundle for each snapshot that
 * may wait, what it remembers, and itself; but gets at most a quarter of the host's memory, unless
 * one snapshot needs more. */
void unit_limits(const struct config *c, const struct unit_limits_host *host,
		 struct unit_limits *ret);
/* Writes ptsnapd.service.d/50-memory.conf and ptsnap-decode@.service.d/50-limits.conf in directory
 * DIR. 0 or the first -errno; both files are tried. */
int unit_limits_write(const struct unit_limits *l, const char *dir);
