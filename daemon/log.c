/*
 * Where the daemon's words go: never to stdout, which is the traced command's.
 *
 * sd_journal_send returns 0 and writes nothing where no journal listens, so the choice is made
 * once, at the start: stderr is the journal exactly when its device and inode are those that
 * systemd put into $JOURNAL_STREAM (systemd.exec(5)).
 */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <systemd/sd-journal.h>

#define LINE_MAX_BYTES 2048

static bool log_to_journal;

void log_open(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	log_to_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
			 fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device &&
			 st.st_ino == inode;
}

static void log_clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

static void log_send(int priority, const char *snapshot, const char *text)
{
	if (snapshot)
		sd_journal_send("PRIORITY=%i", priority, "SYSLOG_IDENTIFIER=ptsnapd", "MESSAGE=%s",
				text, "PTSNAP_REPORT_ID=%s", snapshot, NULL);
	else
		sd_journal_send("PRIORITY=%i", priority, "SYSLOG_IDENTIFIER=ptsnapd", "MESSAGE=%s",
				text, NULL);
}

void log_line(int priority, const char *snapshot, const char *format, ...)
{
	char text[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_clean(text);
	if (log_to_journal)
		log_send(priority, snapshot, text);
	else if (priority < LOG_DEBUG)
		fprintf(stderr, "ptsnapd: %s\n", text);
}
