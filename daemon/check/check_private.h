/*
 * The parts of the check share this: the facts found so far, and functions that read files and make
 * findings.
 */
#pragma once

#include "capture/perf/pmu.h"
#include "capture/proc/number.h"
#include "daemon/check/check.h"
#include "proto/base.h"

/* The folder with example drop-ins for the unit: systemd/README.md. */
#ifndef PTSNAP_VENDORDIR
#define PTSNAP_VENDORDIR "/usr/lib/ptsnap"
#endif
#define CHECK_NO_COMMAND_FIX "ptsnapd -- COMMAND records COMMAND in software"
#define CHECK_TEXT_MAX	     (16u << 10)

/* Bits of CapEff: include/uapi/linux/capability.h. */
enum check_capability {
	CHECK_DAC_READ_SEARCH = 2,
	CHECK_IPC_LOCK = 14,
	CHECK_SYS_MODULE = 16,
	CHECK_SYS_RAWIO = 17,
	CHECK_SYS_PTRACE = 19,
	CHECK_SYS_ADMIN = 21,
	CHECK_SYS_NICE = 23,
	CHECK_SYSLOG = 34,
	CHECK_PERFMON = 38,
	CHECK_CHECKPOINT_RESTORE = 40,
};

struct check {
	const struct check_paths *paths;
	const struct config *config;
	finding_fn fn;
	void *userdata;
	int failures;
	bool emulated; /* the emulated source is used: failures of the hardware are only notes */

	/* Facts that a part finds and later parts use. */
	struct cpulist online; /* CPUs that are online and wanted */
	size_t n_online;       /* CPUs that are online */
	uint64_t capabilities; /* CapEff of this process */
	bool seccomp;	       /* this process has a filter */
	int paranoid;	       /* INT_MAX: the kernel has no perf events */
	int open_error;	       /* opening a sideband event: 0 or -errno */
	uint32_t kinds;	       /* sideband records of this kernel: capture/perf/perf_event.h */
	char vendor[32], model_name[64];
	uint64_t family, model;
	bool flag_pt, flag_hypervisor;
	struct cpuid *cpuids; /* CPUID of each CPU in online, owned; NULL: no memory */
	size_t n_cpuids;
	bool have_pmu;
	struct pmu pmu;
	bool have_config; /* pt_config is the configuration that tracing would use */
	uint64_t pt_config;
};

/* Makes a finding and tells the caller of check_host(). A failure becomes a note where the source
 * is the emulated one. Text and fix are made printable. */
void check_say(struct check *c, enum finding_level level, const char *what, const char *fix,
	       const char *format, ...) PRINTF_LIKE(5, 6);
/* Reads the file ROOT/PATH into RET, SIZE bytes with the NUL, without a newline at the end. Returns
 * the number of bytes, or -errno with RET empty. */
ssize_t check_read(const char *root, const char *path, char *ret, size_t size);
bool check_exists(const char *root, const char *path);
/* Reads a file that holds one decimal number, which may be negative. */
bool check_number(const char *root, const char *path, int64_t *ret);
/* Copies the value behind "KEY:" or "KEY\t:" in TEXT, up to the line's end; false: no such line. */
bool check_value(const char *text, const char *key, char *ret, size_t size);
/* Whether TEXT, words with one space between two, has WORD. */
bool check_word(const char *text, const char *word);
/* Whether this process has CAPABILITY. */
bool check_capable(const struct check *c, enum check_capability capability);
/* Whether the configuration wants the kernel traced. */
bool check_trace_kernel(const struct check *c);
/* The first CPU that is online and wanted. */
uint32_t check_first_cpu(const struct check *c);
/* 12345678 -> "11.8 MiB". */
struct check_size {
	char text[24];
};
struct check_size check_bytes(uint64_t bytes);

/* check_unit.c: whether the trace unit of the first CPU writes, with the event ATTR, which can be
 * opened. */
void check_unit(struct check *c, const struct perf_event_attr *attr);

/* The parts, in the order in which check_host goes through them. */
void check_look(struct check *c);    /* collects facts, makes no finding */
void check_pmu(struct check *c);     /* is there Intel PT, and why not */
void check_rights(struct check *c);  /* paranoid, capabilities, seccomp, lockdown */
void check_kernel(struct check *c);  /* symbols and code of the kernel, where it is traced */
void check_events(struct check *c);  /* perf events, really opened */
void check_memory(struct check *c);  /* rings: locked memory, memory, descriptors */
void check_cpus(struct check *c);    /* which CPUs, of what kinds, KVM's part */
void check_clock(struct check *c);   /* TSC, crystal, cost of MTC */
void check_storage(struct check *c); /* state directory, decoder, the decoder's sandbox */
