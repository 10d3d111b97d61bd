/*
 * Records of the kernel's log as /dev/kmsg gives them, and which of them report something.
 *
 * A process that may write to /dev/kmsg can write any text, but not in the kernel's name: the
 * facility of its records is never 0 (kernel/printk/printk.c, devkmsg_write()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/trigger_set.h"

#define KERNEL_TEXT_SIZE 1024u /* of a message, with the NUL; the rest is cut off */

struct kernel_record {
	bool by_kernel;
	char message[KERNEL_TEXT_SIZE]; /* the first line, escaped by the kernel */
};

/* Parses "PRIORITY,SEQUENCE,TIME,FLAGS[,...];MESSAGE\n" (Documentation/ABI/testing/dev-kmsg).
 * TEXT has a NUL at its end. 0 or -EBADMSG. */
int kernel_text_parse(const char *text, struct kernel_record *ret);

/* Which of REPORTS (1u << enum trigger_report) RECORD is; TRIGGER_N_REPORTS: none of them. */
enum trigger_report kernel_text_report(const struct kernel_record *record, uint32_t reports);

/* Sets *RET_PID to the task that a hung-task report names, and *RET_CPU to the CPU of a soft
 * lockup. Other reports leave both alone. */
void kernel_text_subject(const struct kernel_record *record, enum trigger_report report,
			 uint64_t *ret_pid, uint32_t *ret_cpu);
