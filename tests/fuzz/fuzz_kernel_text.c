/*
 * Fuzzes the reader of records of /dev/kmsg, whose messages have names that processes gave
 * themselves. Invariants: a message fits and is one line; only the kernel reports, and only what is
 * asked for.
 */
#include "daemon/condition/kernel_text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	CLEANUP_FREE char *text = malloc(size + 1);
	struct kernel_record r;

	assert(text);
	if (size)
		memcpy(text, bytes, size);
	text[size] = '\0';
	if (kernel_text_parse(text, &r) < 0)
		return 0;
	assert(strlen(r.message) < KERNEL_TEXT_SIZE && !strchr(r.message, '\n'));
	for (unsigned i = 0; i < TRIGGER_N_REPORTS; i++) {
		enum trigger_report report = kernel_text_report(&r, 1u << i);
		uint64_t pid = 0;
		uint32_t cpu = 0;

		assert(report == i || report == TRIGGER_N_REPORTS);
		assert(r.by_kernel || report == TRIGGER_N_REPORTS);
		kernel_text_subject(&r, report, &pid, &cpu);
		assert(pid <= INT32_MAX && cpu <= UINT16_MAX);
	}
	return 0;
}
