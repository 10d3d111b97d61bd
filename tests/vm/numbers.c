/*
 * The stream has words of eight bytes: the CPU in the highest bits, the word's number above bit 0.
 * Bit 0 and the topmost bit are set. All words differ, and neither the first nor the last byte of a
 * word is zero.
 */
#include "tests/vm/numbers.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define WORD 8

static uint64_t word(unsigned cpu, uint64_t number)
{
	return UINT64_C(1) << 63 | (uint64_t)cpu << 56 | number << 1 | 1;
}

static uint8_t byte_at(unsigned cpu, uint64_t position)
{
	return (uint8_t)(word(cpu, position / WORD) >> WORD * (position % WORD));
}

void numbers_fill(unsigned cpu, uint64_t position, uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = byte_at(cpu, position + i);
}

/* The stream's end, as the last whole word tells, if that word ends PHASE bytes before the end. */
static bool end_with_phase(unsigned cpu, const uint8_t *bytes, size_t size, size_t phase,
			   uint64_t *ret_end)
{
	uint64_t last;

	if (size < WORD + phase)
		return false;
	memcpy(&last, bytes + size - phase - WORD, WORD);
	*ret_end = ((last & UINT64_C(0x00ffffffffffffff)) >> 1) * WORD + WORD + phase;
	if (last != word(cpu, *ret_end / WORD - 1))
		return false;
	for (size_t i = 1; i <= phase; i++)
		if (bytes[size - i] != byte_at(cpu, *ret_end - i))
			return false;
	return true;
}

int numbers_check(unsigned cpu, uint64_t base, const uint8_t *bytes, size_t size, uint64_t *ret_end,
		  size_t *ret_wrong)
{
	size_t phase = 0;

	while (phase < WORD && !end_with_phase(cpu, bytes, size, phase, ret_end))
		phase++;
	*ret_wrong = size;
	if (phase == WORD)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		uint64_t back = size - i;
		bool before = *ret_end < base + back;

		if (bytes[i] != (before ? 0 : byte_at(cpu, *ret_end - back))) {
			*ret_wrong = i;
			return -EINVAL;
		}
	}
	return 0;
}
