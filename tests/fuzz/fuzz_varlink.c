/*
 * Fuzzes the control socket with untrusted bytes. Invariant: an accepted message that is sent and
 * received again is the same message.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "proto/base.h"
#include "proto/varlink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(struct json_object *m)
{
	return strdup(json_object_to_json_string_ext(m, JSON_C_TO_STRING_PLAIN));
}

static void send_and_compare(struct varlink *v, const int fds[2], struct json_object *message)
{
	CLEANUP_FREE char *before = text_of(message);
	struct varlink_call call;
	struct varlink_reply reply;
	struct json_object *back = NULL;

	(void)varlink_parse_call(message, &call);
	(void)varlink_parse_reply(message, &reply);
	assert(varlink_queue(v, message, -1) == 0 && varlink_send(v, fds[1]) == 0);
	assert(varlink_receive(v, fds[0], true) == 0 && varlink_next(v, &back) == 0);
	CLEANUP_FREE char *after = text_of(back);
	assert(strcmp(before, after) == 0);
	json_object_put(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(varlink_freep) struct varlink *v = NULL, *again = NULL;
	struct json_object *message;
	int fds[2], r;

	if (size == 0 || size > 16384 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		return 0;
	assert(varlink_new(&v) == 0 && varlink_new(&again) == 0);
	assert(send(fds[1], data, size, 0) == (ssize_t)size &&
	       varlink_receive(v, fds[0], false) == 0);
	while ((r = varlink_next(v, &message)) != VARLINK_AGAIN) {
		if (r < 0)
			continue;
		send_and_compare(again, fds, message);
		json_object_put(message);
	}
	close_fd(fds[0]);
	close_fd(fds[1]);
	return 0;
}
