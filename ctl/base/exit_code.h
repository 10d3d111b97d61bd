/*
 * The exit codes of ptsnapctl; documented in ptsnapctl(1), section EXIT STATUS.
 */
#pragma once

enum exit_code {
	EXIT_CODE_OK = 0,
	EXIT_CODE_FAILURE = 1,
	EXIT_CODE_USAGE = 2,
	EXIT_CODE_NO_REPORT = 3,
	EXIT_CODE_PERMISSION = 4,
	EXIT_CODE_UNREACHABLE = 5,
	EXIT_CODE_NOT_TRACING = 6,
	EXIT_CODE_BUSY = 7,
	EXIT_CODE_TOO_MANY_ERRORS = 8,
	EXIT_CODE_TIMEOUT = 124, /* as timeout(1) */
};
