/*
 * The page: calls as one HTML file to look at, without a network, a server or any other file.
 *
 * page_take() is fed with the items of a call stream (proto/callstream.h) one by one and writes
 * them at once: page.c checks and numbers the items, page_pack.c compresses them (zlib) and writes
 * base64. The program of the page is plain JavaScript in web/, one file for each idea; make joins
 * the files in the order of ctl/local.mk into page_web.c. No framework: what the page needs is
 * typed arrays and a canvas.
 *
 * Decisions that govern the room:
 * - Names from traced programs are a stranger's. They are in the page only inside the compressed,
 *   base64-coded block, which no browser parses or executes; the page shows them by textContent and
 *   fillText() and never as HTML. web/text.js makes characters visible that control or reorder.
 * - The page's content security policy permits one script and one style sheet, by their SHA-256,
 *   and nothing else: no network, no inline handlers, no eval. make computes the sums, so that the
 *   same input gives the same page.
 * - Memory does not grow with the number of calls here. The page keeps typed arrays in the browser,
 *   about 100 bytes for each call: there is a limit of calls, and what is left out is counted and
 *   shown.
 * - Levels of detail are made when the page loads (web/rows.js): this takes about 100 ms for a
 *   million calls, and the file would be larger by a third.
 * - Boxes are pixels of one image and not rectangles of a canvas (web/draw.js): 20,000 rectangles
 *   took 170 ms of a frame where the browser has no GPU.
 * - No viewer of others: speedscope (npm) shows one thread's stacks and neither CPUs, switches nor
 *   gaps; Perfetto's and Firefox's are programs of many megabytes that need a server.
 *
 * The block is a sequence of records. A record is a byte for its kind, then numbers (LEB128:
 * 7 bits a byte, low ones first, the top bit says that more follow; 64-bit values are two numbers,
 * the high 32 bits first) and texts (a number, then so many bytes).
 *
 *   1  title                                     first
 *   2  first, length, trigger                    times in ns; trigger 0: unknown
 *   3  thread, pid, tid, name
 *   4  function, address (64), name, image, file, line
 *   5  thread, cpu                               events below are of this thread and CPU
 *   6  delta                                     the thread gets the CPU
 *   7  delta, why                                the thread leaves it
 *   8  time, length, name                        a gap; time counts from FIRST
 *   9  time, value (64), name                    a mark
 *  10  frames, cut, left out, repaired           the end
 *  11                                            suspects were looked for
 *  12  place, from, to, tid, cpu, kind, text, function  a suspect
 *  13  text                                      when and why the calls were recorded
 *  0x10 + begin: delta, function                 a frame begins
 *  0x20 + end:   delta, insns                    a frame ends
 *  0x18, 0x28 + ...: the same, and a width behind the last number
 *
 * The place of a suspect says what is known of it: 1: the times (since FIRST), 2: the thread, 4:
 * the CPU; numbers of what is not known are 0.
 *
 * A delta is the time since the last such event of the same thread (of the first one: since FIRST).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/callstream.h"

/* The largest number of a thread or function, and the deepest frame. A stream that has more threads
 * or functions is refused; deeper frames are left out. */
#define PAGE_MAX_NUMBER (UINT32_C(1) << 22)
#define PAGE_MAX_DEPTH	4096u
/* What a browser with 8 GB of memory shows without trouble. */
#define PAGE_MAX_FRAMES UINT64_C(8000000)

struct page;

/* What the page could not show. */
struct page_told {
	uint64_t frames;   /* shown */
	uint64_t left_out; /* because of the limits of the page */
	uint64_t cut;	   /* that the stream says it left out */
	uint64_t repaired; /* events before FIRST or before their thread's last event, which were
			    * moved, and ends without a begin, which were dropped */
};

/* Begins a page with at most MAX_FRAMES frames on FD, which the caller keeps. TITLE may be a
 * stranger's text. 0 or -errno. */
int page_new(int fd, const char *title, uint64_t max_frames, struct page **ret);
void page_freep(struct page **p);

/* Adds ITEM. The first item is the HEAD. 0; -EBADMSG: no call stream goes on like this; or -errno
 * of writing, which stays. */
int page_take(struct page *p, const struct callstream_item *item);

/* What stands out, and where to look for it. */
struct page_suspect {
	const char *kind, *text, *function; /* "": none; texts may be a stranger's */
	uint64_t from, to;		    /* ns, as in the stream, with HAS_TIME */
	bool has_time, has_tid, has_cpu;
	uint32_t tid, cpu;
};

/* Says in one line, which may have a stranger's texts, when and why the calls were recorded: behind
 * the HEAD, before page_finish(). 0; -ENODATA: there was no HEAD; or -errno of writing, which
 * stays.
 */
int page_set_occasion(struct page *p, const char *text);

/* Says that suspects were looked for, and adds them: behind the HEAD, before page_finish(). 0;
 * -ENODATA: there was no HEAD; or -errno of writing, which stays. */
int page_looked(struct page *p);
int page_add_suspect(struct page *p, const struct page_suspect *s);

/* Writes the rest of the page. TOLD may be NULL. 0; -ENODATA: there was no HEAD; or -errno. A
 * stream without an END makes a page that says so. */
int page_finish(struct page *p, struct page_told *told);
