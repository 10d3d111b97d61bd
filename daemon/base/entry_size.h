/*
 * Sizes of the texts of a snapshot, their NUL included, and the value of a number that is absent.
 */
#pragma once

#include <stdint.h>

#define ENTRY_ID_SIZE	  40
#define ENTRY_REASON_SIZE 257
#define ENTRY_ERROR_SIZE  257
#define ENTRY_NAME_SIZE	  64
#define ENTRY_UNIT_SIZE	  256 /* as systemd limits them (src/basic/unit-def.h, UNIT_NAME_MAX) */
#define ENTRY_CORE_SIZE	  256 /* NAME_MAX and its NUL */
#define ENTRY_ABSENT	  UINT64_MAX
