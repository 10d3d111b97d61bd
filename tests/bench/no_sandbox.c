/*
 * An empty sandbox for a worker under valgrind, which cannot run sandboxed. Linked in place of the
 * library's sandbox.c; never installed.
 */
#include "decoder/worker/sandbox.h"

int sandbox_enter(const struct sandbox_limits *limits, unsigned *ret_missing)
{
	*ret_missing = 0;
	return limits->start != NULL ? limits->start(limits->userdata) : 0;
}
