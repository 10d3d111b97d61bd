/*
 * Stands in for ptsnap-decode in test_job_decode and test_remake, and does everything that a
 * decoder under the control of strangers could do. The bundle is two or three words, each a way to
 * behave: the first one, the one when no symbols are wanted, and the one when lines are wanted,
 * too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/channel.h"
#include "proto/worker.h"

#define CHANNEL_FD 3

static int output;
static uint32_t only_uid; /* the user whose report is wanted; UINT32_MAX: of all users */
static bool with_lines, in_hurry;

static void say(struct worker_message m)
{
	if (channel_send(CHANNEL_FD, &m, sizeof(m), NULL, 0) < 0)
		_exit(99);
}

static void result(int error)
{
	say((struct worker_message){.kind = WORKER_RESULT, .error = error, .faults = 7});
}

static void keep(uint32_t image, uint64_t offset, uint64_t size)
{
	say((struct worker_message){
		.kind = WORKER_KEEP, .image = image, .offset = offset, .size = size});
}

static void report(const char *text)
{
	if (write(output, text, strlen(text)) < 0)
		_exit(98);
}

static void hang(void)
{
	struct pollfd channel = {.fd = CHANNEL_FD};

	while (poll(&channel, 1, -1) != 1 || !(channel.revents & POLLHUP))
		;
	_exit(95);
}

/* Asks with M. Returns the error in the answer. */
static int ask_with(struct worker_message m)
{
	struct worker_image answer = {.error = -EIO};
	size_t size, n_fds = 0;
	int fd = -1;

	say(m);
	if (channel_receive(CHANNEL_FD, &answer, sizeof(answer), &size, &fd, 1, &n_fds) != 0)
		_exit(97);
	/* No descriptor of an image may be writable. */
	if (n_fds == 1 && (write(fd, "x", 1) >= 0 || ftruncate(fd, 0) >= 0))
		_exit(96);
	if (n_fds == 1)
		close(fd);
	return answer.error;
}

static int ask(uint32_t image)
{
	return ask_with((struct worker_message){.kind = WORKER_IMAGE, .image = image});
}

/* Asks for the file with symbols of IMAGE whose build id has BYTE four times. */
static int ask_for_debug(uint32_t image, uint8_t byte)
{
	struct worker_message m = {.kind = WORKER_DEBUG, .image = image, .build_id_size = 4};

	memset(m.build_id, byte, m.build_id_size);
	return ask_with(m);
}

/* Writes as much as the output takes. The recorder limits the output to much less than memory. */
static void fill_output(void)
{
	static char much[65536];
	size_t bytes = 0;
	ssize_t n;

	while ((n = write(output, much, sizeof(much))) > 0 && bytes <= 16u << 20)
		bytes += (size_t)n;
	if (bytes > 16u << 20)
		_exit(87);
	if (ftruncate(output, (off_t)1 << 40) == 0 ||
	    fallocate(output, 0, 0, (off_t)1 << 30) == 0 ||
	    fallocate(output, FALLOC_FL_KEEP_SIZE, (off_t)1 << 30, 1 << 30) == 0)
		_exit(94);
}

static void ask_for_what_is_not_there(void)
{
	static const uint32_t images[] = {1, 2, 3, 1000, 0x80000000u, UINT32_MAX};

	if (ask(0) != 0)
		_exit(93);
	for (size_t i = 0; i < ARRAY_SIZE(images); i++)
		if (ask(images[i]) != -ENOENT)
			_exit(92);
}

static void keep_what_is_not_there(void)
{
	keep(0, UINT64_MAX, UINT64_MAX);
	keep(0, 5, 0);
	keep(1, 0, 1);
	keep(UINT32_MAX, 0, 1);
}

static void behave(const char *how)
{
	if (strcmp(how, "well") == 0) {
		keep(0, 1, 2);
		report("well");
	} else if (strcmp(how, "crash") == 0) {
		keep(0, 0, 1);
		report("half");
		raise(SIGKILL);
	} else if (strcmp(how, "exit") == 0) {
		_exit(5);
	} else if (strcmp(how, "hang") == 0) {
		hang();
	} else if (strcmp(how, "lie") == 0) {
		say((struct worker_message){.kind = 77});
		hang();
	} else if (strcmp(how, "short") == 0) {
		channel_send(CHANNEL_FD, "x", 1, NULL, 0);
		hang();
	} else if (strcmp(how, "twice") == 0) {
		report("twice");
		result(0);
	} else if (strcmp(how, "chatter") == 0) {
		for (;;)
			say((struct worker_message){.kind = WORKER_PROGRESS,
						    .phase = WORKER_PHASE_DECODE});
	} else if (strcmp(how, "deaf") == 0) {
		for (;;)
			say((struct worker_message){.kind = WORKER_IMAGE});
	} else if (strcmp(how, "flood") == 0) {
		fill_output();
	} else if (strcmp(how, "nothing") == 0) {
		/* Writes no report, and reports success. */
	} else if (strcmp(how, "uid") == 0) {
		char text[16];

		snprintf(text, sizeof(text), "%u", only_uid);
		report(text);
	} else if (strcmp(how, "lines") == 0) {
		report(with_lines ? "lines" : "none");
	} else if (strcmp(how, "hurry") == 0) {
		report(in_hurry ? "hurry" : "none");
	} else if (strcmp(how, "named") == 0) {
		bool found = ask_for_debug(0, 0xab) == 0 && ask_for_debug(1, 0xab) == 0;

		if (ask_for_debug(0, 0xcd) != -ENOENT || ask_for_debug(UINT32_MAX, 0xcd) != -ENOENT)
			_exit(91);
		report(found ? "named" : "none");
	} else if (strcmp(how, "debug") == 0) {
		say((struct worker_message){.kind = WORKER_DEBUG, .build_id_size = 20});
		hang();
	} else if (strcmp(how, "seek") == 0) {
		lseek(output, (off_t)1 << 40, SEEK_SET);
	} else if (strcmp(how, "ask") == 0) {
		ask_for_what_is_not_there();
		report("asked");
	} else if (strcmp(how, "keep") == 0) {
		keep_what_is_not_there();
		report("kept");
	} else if (strcmp(how, "memory") == 0) {
		result(-ENOMEM);
		_exit(1);
	} else if (strcmp(how, "unknown") == 0) {
		result(-EPROTONOSUPPORT);
		_exit(1);
	} else {
		_exit(91);
	}
}

int main(void)
{
	struct worker_request request;
	char text[64] = "", words[3][16] = {"", "", ""};
	size_t size, n_fds;
	int fds[2];

	if (channel_receive(CHANNEL_FD, &request, sizeof(request), &size, fds, 2, &n_fds) != 0 ||
	    size != sizeof(request) || n_fds != 2)
		return 90;
	if (write(fds[0], "x", 1) >= 0 || ftruncate(fds[0], 0) >= 0)
		return 89; /* the bundle must not be writable */
	if (pread(fds[0], text, sizeof(text) - 1, 0) < 0 ||
	    sscanf(text, "%15s %15s %15s", words[0], words[1], words[2]) < 1)
		return 88;
	output = fds[1];
	only_uid = request.options.has_only_uid ? request.options.only_uid : UINT32_MAX;
	/* Lines may take a quarter of the time. */
	with_lines =
		request.options.lines != 0 && request.options.lines_ns == UINT64_C(15000000000);
	/* In a hurry the deadline is half of the quarter of the time that is left. */
	in_hurry =
		request.options.has_deadline && request.options.deadline_ns <= UINT64_C(250000000);
	behave(words[request.options.lines && *words[2] ? 2 : request.options.no_symbols != 0]);
	result(0);
	return 0;
}
