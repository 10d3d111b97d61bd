/*
 * The manifest's keys, types and ranges.
 */
#include "proto/bundle/manifest_private.h"

#include "proto/base.h"
#include "proto/bundle/bundle.h"

/* clang-format off */
#define TEXT(s, key, member)	{ key, MANIFEST_STRING, offsetof(struct s, member), false, false, 0, 0 }
#define TEXT_OPT(s, key, member) { key, MANIFEST_STRING, offsetof(struct s, member), true, false, 0, 0 }
#define BOOL(s, key, member)	{ key, MANIFEST_BOOL, offsetof(struct s, member), false, false, 0, 0 }
#define BOOL_OPT(s, key, member) { key, MANIFEST_BOOL, offsetof(struct s, member), true, false, 0, 0 }
#define U16(s, key, member, max) { key, MANIFEST_U16, offsetof(struct s, member), false, false, 0, max }
#define U32(s, key, member, max) { key, MANIFEST_U32, offsetof(struct s, member), false, false, 0, max }
#define U64(s, key, member, max) { key, MANIFEST_U64, offsetof(struct s, member), false, false, 0, max }
#define U32_OPT(s, key, member, absent, max) \
	{ key, MANIFEST_U32, offsetof(struct s, member), true, false, absent, max }
#define U64_OPT(s, key, member) \
	{ key, MANIFEST_U64, offsetof(struct s, member), true, false, MANIFEST_ABSENT, UINT64_MAX }
#define HEX_OPT(s, key, member) \
	{ key, MANIFEST_HEX, offsetof(struct s, member), true, false, MANIFEST_ABSENT, UINT64_MAX }

/* Keys of later versions: left out if absent. */
#define TEXT_QUIET(s, key, member) { key, MANIFEST_STRING, offsetof(struct s, member), true, true, 0, 0 }
#define BOOL_QUIET(s, key, member) { key, MANIFEST_BOOL, offsetof(struct s, member), true, true, 0, 0 }
#define U32_QUIET(s, key, member, absent, max) \
	{ key, MANIFEST_U32, offsetof(struct s, member), true, true, absent, max }
#define U64_QUIET(s, key, member) \
	{ key, MANIFEST_U64, offsetof(struct s, member), true, true, MANIFEST_ABSENT, UINT64_MAX }
#define HEX_QUIET(s, key, member) \
	{ key, MANIFEST_HEX, offsetof(struct s, member), true, true, MANIFEST_ABSENT, UINT64_MAX }

static const struct manifest_field identity[] = {
	TEXT(manifest, "id", id),
	TEXT(manifest, "version", version),
};

static const struct manifest_field host[] = {
	TEXT_OPT(manifest, "hostname", hostname),
	TEXT_OPT(manifest, "kernelRelease", kernel_release),
	TEXT_OPT(manifest, "machine", machine),
	TEXT_OPT(manifest, "bootId", boot_id),
	TEXT_OPT(manifest, "cpuModelName", cpu_model_name),
};

static const struct manifest_field cpu_model[] = {
	U32(manifest, "family", cpu_family, UINT32_MAX),
	U32(manifest, "model", cpu_model, UINT32_MAX),
	U32(manifest, "stepping", cpu_stepping, UINT32_MAX),
	BOOL(manifest, "intel", cpu_intel),
};

static const struct manifest_field trigger[] = {
	TEXT(manifest, "kind", trigger_kind),
	TEXT_OPT(manifest, "name", trigger_name),
	TEXT_OPT(manifest, "reason", reason),
	U64_OPT(manifest, "senderPid", sender_pid),
	U64_OPT(manifest, "senderUid", sender_uid),
	TEXT_QUIET(manifest, "unit", unit),
	TEXT_QUIET(manifest, "senderUnit", sender_unit),
	TEXT_QUIET(manifest, "coredump", coredump),
	U64_OPT(manifest, "realtimeNSec", realtime_ns),
	U64_OPT(manifest, "monotonicNSec", monotonic_ns),
	U64_OPT(manifest, "perfNSec", perf_ns),
	HEX_OPT(manifest, "tsc", tsc),
};

/* A shift by 64 or more is undefined. */
static const struct manifest_field clock_fields[] = {
	U16(manifest, "timeShift", time_shift, 63),
	U32(manifest, "timeMult", time_mult, UINT32_MAX),
	U64(manifest, "timeZero", time_zero, UINT64_MAX),
};

/* MTCFreq is four bits of IA32_RTIT_CTL (SDM volume 3, 33.2.7.2). */
static const struct manifest_field trace[] = {
	TEXT(manifest, "source", source),
	TEXT_OPT(manifest, "terms", pt_terms),
	HEX_OPT(manifest, "config", pt_config),
	BOOL(manifest, "user", trace_user),
	BOOL(manifest, "kernel", trace_kernel),
	BOOL_QUIET(manifest, "tasksOnly", tasks_only),
	BOOL_QUIET(manifest, "paused", paused),
	TEXT_QUIET(manifest, "addressFilter", address_filter),
	U32_OPT(manifest, "mtcPeriod", mtc_period, UINT32_MAX, 15),
	U32_OPT(manifest, "maxNonturboRatio", max_nonturbo_ratio, 0, UINT32_MAX),
	U32_OPT(manifest, "tscArtNumerator", tsc_art_num, 0, UINT32_MAX),
	U32_OPT(manifest, "tscArtDenominator", tsc_art_den, 0, UINT32_MAX),
	BOOL(manifest, "noRetComp", noretcomp),
	BOOL_OPT(manifest, "clockIsMonotonic", clock_is_monotonic),
	TEXT_OPT(manifest, "preset", preset),
	TEXT_OPT(manifest, "ptAttr", pt_attr),
	TEXT_OPT(manifest, "sidebandAttr", sideband_attr),
	TEXT_OPT(manifest, "sidebandMissing", sideband_missing),
	TEXT_OPT(manifest, "sizesNote", sizes_note),
	HEX_QUIET(manifest, "kernelStart", kernel_start),
};

static const struct manifest_field request[] = {
	U64_OPT(manifest, "lastBytes", last_bytes),
	U64_OPT(manifest, "lastNSec", last_ns),
	U64_OPT(manifest, "previousStopNSec", previous_stop_ns),
};

static const struct manifest_field sideband[] = {
	U64_OPT(manifest, "horizonNSec", horizon_ns),
	U64(manifest, "droppedRecords", dropped_records, UINT64_MAX),
	BOOL_QUIET(manifest, "excluding", excluding),
	U64_QUIET(manifest, "unrecordedCPUs", unrecorded_cpus),
};

static const struct manifest_field cpu[] = {
	U32_OPT(manifest_cpu, "cpu", cpu, MANIFEST_ANY, MANIFEST_MAX_CPUS - 1),
	U32_OPT(manifest_cpu, "tid", tid, MANIFEST_ANY, INT32_MAX),
	U64(manifest_cpu, "ringBytes", ring_bytes, UINT64_MAX),
	U64(manifest_cpu, "bytes", bytes, BUNDLE_MAX_BYTES),
	U64_OPT(manifest_cpu, "askedBytes", asked_bytes),
	U64_OPT(manifest_cpu, "stopNSec", stop_ns),
	U64_OPT(manifest_cpu, "darkNSec", dark_ns),
	U64_OPT(manifest_cpu, "copyNSec", copy_ns),
	U64(manifest_cpu, "auxFlags", aux_flags, UINT64_MAX),
	U64_QUIET(manifest_cpu, "truncatedNSec", truncated_ns),
	U64_QUIET(manifest_cpu, "partialNSec", partial_ns),
	U64_QUIET(manifest_cpu, "collisionNSec", collision_ns),
	U64(manifest_cpu, "lostRecords", lost_records, UINT64_MAX),
	BOOL(manifest_cpu, "stopTimeout", stop_timeout),
	TEXT_OPT(manifest_cpu, "state", state),
	TEXT_OPT(manifest_cpu, "why", why),
	U64_OPT(manifest_cpu, "stopOrder", stop_order),
};

static const struct manifest_field process[] = {
	U32(manifest_process, "pid", pid, UINT32_MAX),
	U64_OPT(manifest_process, "ppid", ppid),
	U64_OPT(manifest_process, "startNSec", start_ns),
	U64_OPT(manifest_process, "uid", uid),
	TEXT_OPT(manifest_process, "exe", exe),
	TEXT_OPT(manifest_process, "cmdline", cmdline),
	TEXT_OPT(manifest_process, "cgroup", cgroup),
	U64_QUIET(manifest_process, "mountNamespace", mount_ns),
	U64_QUIET(manifest_process, "nsPid", ns_pid),
	U64_QUIET(manifest_process, "uidSinceNSec", uid_since_ns),
	BOOL_QUIET(manifest_process, "excluded", excluded),
};

static const struct manifest_field image[] = {
	TEXT(manifest_image, "path", path),
	U32(manifest_image, "maj", maj, UINT32_MAX),
	U32(manifest_image, "min", min, UINT32_MAX),
	U64(manifest_image, "ino", ino, UINT64_MAX),
	U64(manifest_image, "inoGeneration", ino_generation, UINT64_MAX),
	U64(manifest_image, "bytes", size, BUNDLE_MAX_BYTES),
	TEXT_OPT(manifest_image, "missing", missing),
	U64(manifest_image, "offset", offset, INT64_MAX),
	TEXT_OPT(manifest_image, "buildId", build_id),
	BOOL_QUIET(manifest_image, "elsewhere", elsewhere),
	U64_QUIET(manifest_image, "fileBytes", file_size),
	TEXT_QUIET(manifest_image, "pieces", pieces),
	TEXT_QUIET(manifest_image, "kind", kind),
	U32_QUIET(manifest_image, "pid", pid, MANIFEST_ANY, INT32_MAX),
	HEX_QUIET(manifest_image, "address", address),
	U64_QUIET(manifest_image, "readNSec", read_ns),
	U64_QUIET(manifest_image, "unchangedNSec", unchanged_ns),
	BOOL_QUIET(manifest_image, "unverified", unverified),
};

static const struct manifest_field note[] = {
	TEXT(manifest_note, "kind", kind),
	U64(manifest_note, "count", count, UINT64_MAX),
	TEXT_OPT(manifest_note, "why", why),
	U32_QUIET(manifest_note, "cpu", cpu, MANIFEST_ANY, MANIFEST_MAX_CPUS - 1),
	U64_QUIET(manifest_note, "sinceNSec", since_ns),
	U64_QUIET(manifest_note, "untilNSec", until_ns),
};

static const struct manifest_field pevent[] = {
	TEXT(manifest_pevent, "name", name),
	U64(manifest_pevent, "bytes", size, BUNDLE_MAX_BYTES),
	BOOL(manifest_pevent, "secondary", secondary),
	U64(manifest_pevent, "sampleType", sample_type, UINT64_MAX),
	U32(manifest_pevent, "timeShift", time_shift, 63),
	U32(manifest_pevent, "timeMult", time_mult, UINT32_MAX),
	U64(manifest_pevent, "timeZero", time_zero, UINT64_MAX),
	U64(manifest_pevent, "tscOffset", tsc_offset, UINT64_MAX),
};

static const struct manifest_field text[] = {
	TEXT(manifest_text, "kind", kind),
	U32_QUIET(manifest_text, "pid", pid, MANIFEST_ANY, INT32_MAX),
	U64(manifest_text, "bytes", size, BUNDLE_MAX_BYTES),
	TEXT_OPT(manifest_text, "missing", missing),
};

#define FIELDS(a) a, ARRAY_SIZE(a)

static const struct manifest_field label[] = {
	TEXT(manifest_label, "key", key),
	TEXT(manifest_label, "value", value),
};

static const struct manifest_field seam[] = {
	U32(manifest_seam, "trace", trace, MANIFEST_MAX_CPUS - 1),
	U64(manifest_seam, "offset", offset, BUNDLE_MAX_BYTES),
	TEXT(manifest_seam, "kind", kind),
};

const struct manifest_group manifest_groups[MANIFEST_N_GROUPS] = {
	{ NULL, FIELDS(identity), MANIFEST_ALWAYS },
	{ "host", FIELDS(host), MANIFEST_ALWAYS },
	{ "cpuModel", FIELDS(cpu_model), offsetof(struct manifest, have_cpu) },
	{ "trigger", FIELDS(trigger), MANIFEST_ALWAYS },
	{ "clock", FIELDS(clock_fields), offsetof(struct manifest, have_clock) },
	{ "trace", FIELDS(trace), MANIFEST_ALWAYS },
	{ "request", FIELDS(request), MANIFEST_ALWAYS },
	{ "sideband", FIELDS(sideband), MANIFEST_ALWAYS },
};

const struct manifest_list manifest_lists[MANIFEST_N_LISTS] = {
	[MANIFEST_CPUS] = { "cpus", FIELDS(cpu), sizeof(struct manifest_cpu), MANIFEST_MAX_CPUS, false },
	[MANIFEST_PROCESSES] = { "processes", FIELDS(process), sizeof(struct manifest_process),
				 MANIFEST_MAX_PROCESSES, false },
	[MANIFEST_IMAGES] = { "images", FIELDS(image), sizeof(struct manifest_image),
			      MANIFEST_MAX_IMAGES, false },
	[MANIFEST_NOTES] = { "notes", FIELDS(note), sizeof(struct manifest_note),
			     MANIFEST_MAX_NOTES, false },
	[MANIFEST_PEVENTS] = { "pevents", FIELDS(pevent), sizeof(struct manifest_pevent),
			       MANIFEST_MAX_PEVENTS, false },
	[MANIFEST_TEXTS] = { "texts", FIELDS(text), sizeof(struct manifest_text),
			     MANIFEST_MAX_TEXTS, true },
	[MANIFEST_LABELS] = { "labels", FIELDS(label), sizeof(struct manifest_label),
			      MANIFEST_MAX_LABELS, true },
	[MANIFEST_SEAMS] = { "seams", FIELDS(seam), sizeof(struct manifest_seam), MANIFEST_MAX_SEAMS,
			     true },
};
/* clang-format on */
