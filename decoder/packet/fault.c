/*
 * The table of fault names and their explanations.
 */
#include "decoder/packet/fault.h"

#include <string.h>

#include "proto/base.h"

/* clang-format off */
static const struct {
	const char *name, *why;
} texts[FAULT_N_] = {
	[FAULT_NONE] = { "none", "nothing is wrong" },
	[FAULT_EMPTY] = { "empty", "there are no trace bytes" },
	[FAULT_NO_PSB] = { "no-psb", "there is no synchronization point (PSB) in the trace" },
	[FAULT_HEAD] = { "head", "bytes before the first synchronization point, as every ring has them" },
	[FAULT_BAD_PACKET] = { "bad-packet", "bytes that are no Intel PT packet" },
	[FAULT_TRUNCATED] = { "truncated", "the trace ends within a packet" },
	[FAULT_OVERFLOW] = { "overflow", "the processor could not write packets fast enough and lost some" },
	[FAULT_TRACESTOP] = { "tracestop", "an address filter stopped the trace" },
	[FAULT_TIME_BACKWARDS] = { "time-backwards", "time runs backwards: bytes of the trace are there twice, or in a wrong order" },
	[FAULT_TRACE_MISSING] = { "trace-missing", "bytes of the trace are missing there: they were overwritten before they were read" },
	[FAULT_UNMAPPED] = { "unmapped", "nothing was mapped at that address at that time" },
	[FAULT_ANONYMOUS] = { "anonymous", "code that is in no file, for example compiled at run time" },
	[FAULT_IMAGE_MISSING] = { "image-missing", "the bytes of the mapped file are not available" },
	[FAULT_IMAGE_SHORT] = { "image-short", "the mapping reaches beyond the end of its file" },
	[FAULT_IMAGE_MISMATCH] = { "image-mismatch", "the available file is not the one that was mapped: its build id differs" },
	[FAULT_IMAGE_GONE] = { "image-gone", "the process and the file were gone before the file could be opened" },
	[FAULT_KERNEL_TEXT] = { "kernel-text-unreliable", "the kernel patches its own code there, and its bytes at that time are unknown" },
	[FAULT_CODE_CHANGED] = { "code-changed", "the code in memory was read after it ran, and had changed by then" },
	[FAULT_BAD_INSN] = { "bad-insn", "the bytes at that address are no instruction" },
	[FAULT_NO_SPACE] = { "no-space", "it is unknown which process ran" },
	[FAULT_TNT_UNEXPECTED] = { "tnt-unexpected", "the trace has a branch decision where the code needs a target" },
	[FAULT_TIP_UNEXPECTED] = { "tip-unexpected", "the trace has a branch target where the code needs a decision" },
	[FAULT_TIP_NO_IP] = { "tip-no-ip", "a branch target without an address" },
	[FAULT_RET_EMPTY] = { "ret-empty", "a compressed return whose call is not in the trace" },
	[FAULT_RET_NOT_TAKEN] = { "ret-not-taken", "a compressed return that says it was not taken" },
	[FAULT_EVENT_UNREACHABLE] = { "event-unreachable", "the code does not lead to the address of an event" },
	[FAULT_PACKET_UNEXPECTED] = { "packet-unexpected", "a packet that is not valid at its place" },
	[FAULT_STATUS] = { "status", "a synchronization point contradicts what was decoded" },
	[FAULT_LOOP] = { "loop", "the code loops without a branch that the trace would show" },
	[FAULT_UNSUPPORTED] = { "unsupported", "a processor mode that this decoder does not follow" },
	[FAULT_GUEST] = { "guest", "a virtual machine ran, whose code is unknown" },
	[FAULT_STOP_TIMEOUT] = { "stop-timeout", "a processor did not stop tracing in time" },
	[FAULT_SIDEBAND_LOST] = { "sideband-lost", "records about processes and mappings were lost" },
	[FAULT_SIDEBAND_BAD] = { "sideband-bad", "records about processes and mappings are damaged" },
	[FAULT_IMAGE_UNCERTAIN] = { "image-uncertain", "it is uncertain what was mapped: records were lost, or it is too long ago" },
	[FAULT_AUX_TRUNCATED] = { "aux-truncated", "the kernel cut the trace" },
	[FAULT_AUX_PARTIAL] = { "aux-partial", "vmx-off: KVM was on, and this processor cannot trace then" },
	[FAULT_AUX_COLLISION] = { "aux-collision", "another user of the trace unit interfered" },
	[FAULT_AUX_LOST] = { "aux-lost", "records about the trace were lost: cuts of the trace may be unknown" },
	[FAULT_CPU_OFFLINE] = { "cpu-offline", "a processor was offline and not traced for a time" },
	[FAULT_PT_UNAVAILABLE] = { "pt-unavailable", "processors that cannot trace: only which threads ran on them is known" },
	[FAULT_PT_BUSY] = { "pt-busy", "another program used the trace unit" },
	[FAULT_PT_YIELDED] = { "pt-yielded", "the trace unit was handed back on request" },
	[FAULT_PT_FAILED] = { "pt-failed", "the kernel refused or stopped tracing" },
	[FAULT_PT_STARTING] = { "pt-starting", "the recorder had not yet begun to trace this processor" },
	[FAULT_PT_SILENT] = { "pt-silent", "user code ran on this processor, and its trace unit wrote nothing" },
	[FAULT_SNAPSHOT_COPY] = { "snapshot-copy", "the processor was not traced while an earlier snapshot copied its ring" },
	[FAULT_DARK_UNLISTED] = { "dark-unlisted", "earlier times in which processors were not traced, more than the recorder lists" },
	[FAULT_THREAD_UNCERTAIN] = { "thread-uncertain", "it is uncertain which thread ran" },
	[FAULT_UNTRACED_THREAD] = { "untraced-thread", "threads that the trace source cannot follow" },
	[FAULT_UNTRACED_CHILD] = { "untraced-child", "processes that the trace source cannot follow" },
	[FAULT_EXCLUDED] = { "excluded", "a process that the recorder was told not to decode" },
	[FAULT_NO_TNT] = { "no-tnt", "recorded without TNT packets: only the targets of some branches and events are known" },
	[FAULT_NO_BRANCHES] = { "no-branches", "recorded without branches: only events are known" },
	[FAULT_FILTERED] = { "filtered", "recorded with a filter: only a part of what ran is in the trace" },
	[FAULT_NOT_PERMITTED] = { "not-permitted", "this report is for one user, and says nothing about other users and the kernel" },
	[FAULT_UNTRACED_EXEC] = { "untraced-exec", "a program was started that the trace source cannot follow" },
};
/* clang-format on */

const char *fault_name(enum fault fault)
{
	return (unsigned int)fault < FAULT_N_ ? texts[fault].name : "unknown";
}

const char *fault_why(enum fault fault)
{
	return (unsigned int)fault < FAULT_N_ ? texts[fault].why : "an unknown fault";
}

bool fault_is_dark(enum fault fault)
{
	switch (fault) {
	case FAULT_CPU_OFFLINE:
	case FAULT_PT_BUSY:
	case FAULT_PT_YIELDED:
	case FAULT_PT_FAILED:
	case FAULT_PT_STARTING:
	case FAULT_PT_SILENT:
	case FAULT_SNAPSHOT_COPY: return true;
	default: return false;
	}
}

enum fault fault_by_name(const char *name)
{
	for (size_t i = 1; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(texts[i].name, name) == 0)
			return (enum fault)i;
	}
	return FAULT_NONE;
}
