/*
 * The program ptsnap-decode: decodes one snapshot in a sandbox, writes one view, and ends.
 *
 * ptsnapd and ptsnapctl start it (decoder/run) and give it one request over a channel. main.c
 * receives the request, enters the sandbox (sandbox.c) and runs the decode. ask.c asks whoever
 * started the program for images that lie elsewhere. decode.c turns a request into its view:
 * report, summary, lines, packets or skim. decode_stretch.c counts or writes each stretch of the
 * replay. decode_rounds.c decodes within a deadline: the newest part first, then more, then the
 * last stretches of other threads. decode_slice.c limits a decode to a span of time, and what is
 * counted to some threads.
 *
 * Main types: struct decode_job is one request while it is decoded; struct decode (count/) has the
 * results; struct decode_sink (view/) says where the output goes.
 *
 * Decisions that govern the room:
 * - The program has one channel, a bundle and an output. It gets file descriptors, never names, and
 *   opens nothing. It parses what strangers wrote, so the sandbox is complete before the first byte
 *   of the bundle is read, and there is no way back.
 * - In the sandbox the program can compute, write to the output, ask over the channel, and end.
 *   Every other system call kills it. Its death is an outcome of this one job; the bundle stays.
 * - Threads exist before the filter of system calls is put on. One of them waits for the channel's
 *   end and ends the process.
 * - With a deadline, each round is a whole decode since some moment. The last round that was done
 *   in time is the report; images, names and compiled code are kept from one round to the next.
 * - A fault in a trace is a gap in the report. A negative result is an error of ours, of the
 *   memory, or of the output.
 *
 * One decode owns everything that it makes, and borrows the bundle, the options and the sink.
 */
#pragma once

#include <stdint.h>

#include "decoder/worker/view/views.h"
#include "proto/bundle/bundle.h"
#include "proto/decode_options.h"

/* Decodes BUNDLE into the view that OPTIONS ask for; OPTIONS are sound (decode_options_are_sound).
 * *ret_faults: the number of gaps. 0 or -errno: -ENODATA (there is no gap of the number that was
 * asked for), -ERANGE (the traces have nothing of the slice), -ENOTSUP (a slice of traces without
 * times), -ENOMEM, -E2BIG (a report that does not fit its limit even with all lists cut), or the
 * error of the output. */
int decode_run(const struct bundle *bundle, const struct decode_options *options,
	       const struct decode_sink *sink, uint64_t *ret_faults);
