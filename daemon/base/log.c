/*
 * Writes lines and events to the journal or to stderr.
 *
 * sd_journal_send(3) returns 0 and writes nothing if no journal listens. The target is therefore
 * chosen once, at start: stderr is the journal if its device and inode are those in
 * $JOURNAL_STREAM, which systemd sets (systemd.exec(5)).
 */
#include "daemon/base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <systemd/sd-journal.h>

#define LINE_MAX_BYTES 2048
#define FIELD_SIZE     (LINE_MAX_BYTES + 64)
#define MAX_FIELDS     16

static bool log_to_journal;
static struct log_listener log_listener;

void log_listen(const struct log_listener *listener)
{
	log_listener = listener ? *listener : (struct log_listener){0};
}

void log_open(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	log_to_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
			 fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device &&
			 st.st_ino == inode;
}

/* Whether S begins one of U+2000 to U+207F, three bytes of UTF-8, some of which reorder or hide
 * their neighbours. */
static bool is_format(const unsigned char *s)
{
	return s[0] == 0xe2 && (s[1] == 0x80 || s[1] == 0x81) && s[2] >= 0x80;
}

/* Replaces control characters, also those of C1, which are two bytes of UTF-8 or a byte alone. */
static void log_clean(char *text)
{
	for (unsigned char *s = (unsigned char *)text; *s; s++) {
		if (*s < ' ' || *s == 0x7f || (*s == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0))
			*s = '?';
		else if (is_format(s))
			s[0] = s[1] = s[2] = '?';
		else if (*s >= 0x80 && *s < 0xa0 && (s == (unsigned char *)text || s[-1] < 0x80))
			*s = '?';
	}
}

/* Fields for sd_journal_sendv(3), and their memory. */
struct message {
	struct iovec parts[MAX_FIELDS];
	char texts[MAX_FIELDS][FIELD_SIZE];
	size_t n;
};

static void put(struct message *m, const char *name, const char *value)
{
	char *text = m->texts[m->n];

	if (!value || !*value || m->n == MAX_FIELDS)
		return;
	snprintf(text, FIELD_SIZE, "%s=%s", name, value);
	m->parts[m->n++] = (struct iovec){text, strlen(text)};
}

static void put_number(struct message *m, const char *name, uint64_t value)
{
	char text[24];

	if (value == ENTRY_ABSENT)
		return;
	snprintf(text, sizeof(text), "%" PRIu64, value);
	put(m, name, text);
}

static void send_to_journal(int priority, const char *id, const struct log_fields *f,
			    const char *text)
{
	struct message m = {.n = 0};

	put(&m, "MESSAGE", text);
	put_number(&m, "PRIORITY", (uint64_t)priority);
	put(&m, "SYSLOG_IDENTIFIER", "ptsnapd");
	put(&m, "MESSAGE_ID", id);
	put(&m, "PTSNAP_REPORT_ID", f->report);
	put(&m, "PTSNAP_TRIGGER", f->trigger);
	put(&m, "PTSNAP_TRIGGER_UNIT", f->trigger_unit);
	put(&m, "UNIT", f->trigger_unit);
	put(&m, "PTSNAP_REPORT_PATH", f->report_path);
	put_number(&m, "PTSNAP_TRIGGER_PID", f->trigger_pid);
	put_number(&m, "PTSNAP_BYTES", f->bytes);
	put_number(&m, "PTSNAP_LOST", f->lost);
	put_number(&m, "PTSNAP_DURATION_USEC", f->duration_usec);
	if (f->error > 0)
		put_number(&m, "ERRNO", (uint64_t)f->error);
	(void)sd_journal_sendv(m.parts, (int)m.n);
}

static void log_text(int priority, const char *id, const struct log_fields *fields, char *text)
{
	log_clean(text);
	if (log_to_journal)
		send_to_journal(priority, id, fields, text);
	else if (priority < LOG_DEBUG)
		fprintf(stderr, "ptsnapd: %s\n", text);
	if (log_listener.fn && priority < LOG_DEBUG)
		log_listener.fn(log_listener.userdata, priority, id, fields, text);
}

void log_line(int priority, const char *snapshot, const char *format, ...)
{
	struct log_fields fields = LOG_NO_FIELDS;
	char text[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fields.report = snapshot;
	log_text(priority, NULL, &fields, text);
}

void log_event(int priority, const char *id, const struct log_fields *fields, const char *format,
	       ...)
{
	char text[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_text(priority, id, fields, text);
}
