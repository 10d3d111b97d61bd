/*
 * A call stream (proto/callstream.h) as the calls and returns of each thread.
 *
 * A call is a frame that begins by `call'. Frames that jumps began within it belong to it: their
 * instructions are its own, and the return of the innermost one is its return. So does a frame that
 * takes its place: a function that is entered again by a jump of what it jumped to ends by `left',
 * and a new frame of it begins by `jump'. What is no near call
 * or return gives no step: system calls, interrupts, frames that were unwound or left.
 *
 * For test programs: out of memory ends the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CALL_LINES_NONE UINT32_MAX

struct call_step {
	uint64_t lo, hi;   /* ns; it happened within */
	uint64_t own;	   /* a call: instructions of its frame, and of those jumped to */
	uint32_t other;	   /* of a call, the return; of a return, the call; CALL_LINES_NONE */
	uint32_t around;   /* a call: the call whose frame it is made in; CALL_LINES_NONE */
	uint32_t function; /* a call: index of what it called; 0: unknown */
	bool call;
};

/* The thread has no CPU from LEAVE to BACK. */
struct call_off {
	uint64_t leave, back; /* ns */
	uint32_t cpu, cpu_back;
	size_t steps, steps_back; /* before LEAVE, before BACK */
};

struct call_frame {
	uint32_t step; /* the call that it belongs to; CALL_LINES_NONE */
	bool returns;  /* it can end by a near return */
};

struct call_thread {
	uint32_t pid, tid;
	struct call_step *steps;
	size_t n_steps, steps_room;
	struct call_off *offs;
	size_t n_offs, offs_room;
	bool off;      /* the last of OFFS has not ended */
	uint32_t left; /* the last line ended this call's frame, and not by its return */
	struct call_frame *frames;
	size_t n_frames, frames_room;
};

struct call_function {
	uint64_t address;
	char *name, *image;
};

struct call_lines {
	struct call_thread *threads; /* by the stream's number; [0] is nobody */
	size_t n_threads, threads_room;
	struct call_function *functions; /* likewise */
	size_t n_functions, functions_room;
	uint64_t gaps, again, cut; /* AGAIN: frames that took the place of others */
};

/* Reads the stream up to its end. False: the stream is damaged or was cut off; *ret_line is the
 * line. Call call_lines_done() in every case. */
bool call_lines_read(FILE *f, struct call_lines *ret, size_t *ret_line);
void call_lines_done(struct call_lines *l);
