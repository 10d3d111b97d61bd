/*
 * How test_worker wants the fake worker to behave.
 */
#pragma once

/* What FAKE_TALK writes first, and how much in all. */
#define FAKE_TALK_LINE	"\n<0>ptsnapd: \x1b[2Jall is well\0!\nsecond\n"
#define FAKE_TALK_BYTES 10000000u

enum fake_worker {
	FAKE_PROPER = 1,
	FAKE_CRASH,
	FAKE_RESULT_THEN_CRASH,
	FAKE_RESULT_THEN_EXIT_3,
	FAKE_ERROR,
	FAKE_EXIT_WITHOUT_RESULT,
	FAKE_HANG,
	FAKE_CLOSE_THEN_HANG,
	FAKE_CLOSE_THEN_EXIT,
	FAKE_SHORT_MESSAGE,
	FAKE_LONG_MESSAGE,
	FAKE_FD_MESSAGE,
	FAKE_WRONG_PERCENT,
	FAKE_WRONG_KIND,
	FAKE_WRONG_ERROR,
	FAKE_RESULT_TWICE,
	FAKE_CHATTER,
	FAKE_ASK,
	FAKE_ASK_DEAF,
	FAKE_KEEP_AND_END,
	FAKE_RESULT_THEN_HANG,
	FAKE_DEBUG, /* build ids of request.gap bytes */
	FAKE_DEBUG_DEAF,
	FAKE_DEBUG_NO_ID,
	FAKE_DEBUG_LONG_ID,
	FAKE_TALK, /* fills standard error */
	FAKE_TALK_AND_CRASH,
	FAKE_ENVIRONMENT, /* the error is the number of variables, negative */
};
