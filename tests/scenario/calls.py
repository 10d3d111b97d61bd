"""The call stream against what a program says of itself.

The programs write a letter wherever one of their functions begins and ends, goes to another stack,
or is where a longjmp or an exception led to, one log for each thread. From the log follows which
frames the stream must have, in which order, nested how, and how each ended. The decoder must say
the same of every thread: through tail calls, PLT entries, callbacks of libraries, recursion,
longjmp, exceptions, signal handlers, swapcontext, and while threads share CPUs. The report must
count as many calls. Prints TAP. `calls.py NAME...` runs only those.
"""
import json
import os
import shutil
import subprocess
import sys

from common import PTSNAPCTL, TIMING, Failed, Recording, Work, main, run

LOG = r"""
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

struct log { char text[1 << 17]; unsigned n; };
static __thread struct log *mine;
#define SAY(c) (mine->text[mine->n++] = (c))
#define IN(c) SAY(c)                       /* a function begins */
#define OUT(c) SAY((c) + 32)               /* it ends */
#define AT(c) (SAY('@'), SAY(c))           /* a longjmp or an exception led to this function */
#define SWAP() SAY('~')                    /* another stack follows */
#define BACK(c) (SAY('^'), SAY(c))         /* this function goes on, on a stack that was left */
#define FN(name) extern "C" __attribute__((noinline, noclone)) void f_##name(void)
#ifndef __cplusplus
#undef FN
#define FN(name) __attribute__((noinline, noclone)) void f_##name(void)
#endif
static volatile int never;

static void print(const struct log *l, int tid)
{
	printf("%d %.*s\n", tid, (int)l->n, l->text);
}
"""

PLAIN = LOG + r"""
/* Leaves, and a chain of tail calls: A to B to C. */
FN(C) { IN('C'); never++; OUT('C'); }
FN(B) { IN('B'); f_C(); }
FN(A) { IN('A'); f_B(); }
/* Recursion. */
static __thread int depth;
FN(D) { IN('D'); if (depth-- > 0) f_D(); never++; OUT('D'); }
/* A callback of a library. */
int f_E(const void *a, const void *b) { IN('E'); int r = *(const int *)a - *(const int *)b; OUT('E'); return r; }
FN(F)
{
	IN('F');
	int list[9] = {5, 1, 4, 2, 8, 7, 3, 6, 9};
	qsort(list, 9, sizeof(int), f_E);
	OUT('F');
}
/* longjmp over three functions. */
static __thread jmp_buf away;
FN(G) { IN('G'); f_C(); longjmp(away, 1); }
FN(H) { IN('H'); f_G(); never++; }
FN(I) { IN('I'); if (setjmp(away) == 0) f_H(); AT('I'); f_C(); OUT('I'); }
/* A signal handler, and one that leaves by siglongjmp. */
static __thread sigjmp_buf out;
void f_J(int s) { IN('J'); (void)s; f_C(); OUT('J'); }
void f_K(int s) { IN('K'); (void)s; f_C(); siglongjmp(out, 1); }
FN(L)
{
	IN('L');
	raise(SIGUSR1);
	f_C();
	if (sigsetjmp(out, 1) == 0)
		raise(SIGUSR2);
	AT('L');
	f_C();
	OUT('L');
}
/* Two stacks. */
static __thread ucontext_t here, there;
static __thread char stack[65536];
FN(N) { IN('N'); f_C(); SWAP(); swapcontext(&there, &here); BACK('N'); f_C(); OUT('N'); }
FN(O) { IN('O'); f_N(); BACK('O'); f_A(); SWAP(); swapcontext(&there, &here); never++; }
FN(P)
{
	IN('P');
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, f_O, 0);
	SWAP();
	swapcontext(&here, &there);
	BACK('P');
	f_C();
	SWAP();
	swapcontext(&here, &there);
	BACK('P');
	OUT('P');
}
FN(Q) { IN('Q'); f_A(); depth = 40; f_D(); f_F(); f_I(); f_L(); syscall(SYS_sched_yield); f_P(); BACK('Q'); f_C(); OUT('Q'); }

static int rounds;
void *f_R(void *p)
{
	mine = (struct log *)p;
	for (int i = 0; i < rounds; i++) {
		IN('R');
		f_Q();
		BACK('R');
		SAY('!');
	}
	print(mine, (int)syscall(SYS_gettid));
	return NULL;
}
"""

PLAIN_MAIN = r"""
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t threads[8];
	rounds = argc > 2 ? atoi(argv[2]) : 1;
	signal(SIGUSR1, f_J);
	signal(SIGUSR2, f_K);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, f_R, calloc(1, sizeof(struct log)));
	f_R(calloc(1, sizeof(struct log)));
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""

THROW = LOG + r"""
FN(C) { IN('C'); never = never + 1; OUT('C'); }
FN(T) { IN('T'); f_C(); throw 5; }
FN(U) { IN('U'); f_T(); never = never + 1; }
/* Its destructor runs while the exception goes through V, which ends afterwards. */
struct cleaned { ~cleaned() { AT('V'); f_C(); } };
FN(V) { IN('V'); cleaned c; f_U(); }
FN(W)
{
	IN('W');
	try {
		f_V();
	} catch (int) {
		AT('W');
		f_C();
	}
	OUT('W');
}
FN(X) { IN('X'); try { f_W(); f_T(); } catch (...) { AT('X'); } f_C(); OUT('X'); }
int main()
{
	mine = (struct log *)calloc(1, sizeof(struct log));
	for (int i = 0; i < 3; i++)
		f_X();
	print(mine, (int)syscall(SYS_gettid));
}
"""

TAIL = {"A", "B"}  # end with the function that they called last


def frames_of(log):
    """Returns what the stream has to say: (letter,) for a begin, (letter, end) for an end."""
    said, stack = [], []

    def end(how):
        said.append((stack.pop(), how))

    it = iter(log)
    for c in it:
        if c in "@^":
            target = next(it)
            if c == "@":
                while stack[-1] != target:
                    end("unwound")
            elif not stack or stack[-1] != target:
                stack.append(target)
                said.append((target,))
        elif c == "~":
            while stack:
                end("swapped")
        elif c == "!":  # a round of R
            stack.pop()
        elif c.isupper():
            stack.append(c)
            said.append((c,))
        else:
            if stack[-1] != c.upper():
                raise Failed(f"the log makes no sense: {c} in {stack}")
            end("return")
            while stack and stack[-1] in TAIL:
                end("left")
    return said


class Stream:
    """What the stream says of functions f_X, by tid."""

    def __init__(self, lines):
        self.threads, self.tids, self.functions, self.stacks = {}, {}, {}, {}
        self.calls = {}
        self.ended = False
        for line in lines:
            self.take(line.rstrip("\n").split("\t"))
        if not self.ended:
            raise Failed("the stream was cut off")

    def take(self, f):
        kind, number = f[0], f[1]
        if kind == "T":
            self.tids[number] = int(f[3])
        elif kind == "F":
            self.functions[number] = f[3].split("(")[0]
        elif kind == "B":
            name = self.functions.get(f[5], "")
            own = name[2:] if len(name) == 3 and name.startswith("f_") else None
            self.stacks.setdefault(number, []).append(own)
            if own and f[6] in ("call", "jump", "signal"):
                self.calls[name] = self.calls.get(name, 0) + 1
            if own:
                self.said(number, (own,))
        elif kind == "E":
            own = self.stacks[number].pop()
            if own:
                self.said(number, (own, f[5]))
        elif kind == "G" and number != "0":
            raise Failed(f"gap {f}")
        self.ended = kind == "Z"

    def said(self, number, what):
        self.threads.setdefault(self.tids[number], []).append(what)


def compare(tid, got, want):
    # R begins each round, and is found anew behind its end: its frames are no matter.
    got, want = ([x for x in said if x[0] != "R"] for said in (got, want))
    for i, (g, w) in enumerate(zip(got, want)):
        if g != w:
            raise Failed(f"thread {tid}, event {i} of {len(want)}: the stream has {g}, the program "
                         f"{w}; before: {got[max(0, i - 8):i]}")
    if len(got) != len(want):
        raise Failed(f"thread {tid}: the stream has {len(got)} events, the program {len(want)}; "
                     f"{got[len(want):][:5]} {want[len(got):][:5]}")
    return len(want)


def build(work, text, compiler, name, options):
    path = f"{work}/prog.{name}"
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    run([compiler, *options, "-fno-pie", "-no-pie", "-g", "-pthread", "-w", "-o", f"{work}/prog",
         path])
    return f"{work}/prog"


def scenario(name, text, language, arguments, terms, emu, options):
    compiler = shutil.which({"c": "cc", "cc": "c++"}[language])
    if not compiler:
        return f"SKIP no compiler of {language}"
    with Work(name) as work:
        prog = build(work, text, compiler, language, options)
        r = Recording(work, [prog, *arguments], terms, emu, aux="8M")
        r.record(0, 0)
        bundle = r.bundles()[-1]
        stream = Stream(run([PTSNAPCTL, "decode", "--view=calls", bundle]).splitlines())
        with open(r.out, encoding="ascii") as f:
            logs = dict(line.split() for line in f)
        events = sum(compare(tid, stream.threads.get(int(tid), []), frames_of(log))
                     for tid, log in logs.items())
        report = json.loads(run([PTSNAPCTL, "decode", "--view=report", "--json=short", bundle]))
        counted = {f["name"].split("(")[0]: f["calls"] for f in report["functions"] if f.get("name")}
        for function, calls in stream.calls.items():
            if function not in ("f_R", "f_J", "f_K") and counted.get(function) != calls:
                raise Failed(f"{function}: the report counts {counted.get(function)} calls, the "
                             f"stream has {calls}")
        if name != "exceptions" and events < 500:
            raise Failed(f"only {events} begins and ends")
        return f"{len(logs)} threads, {events} begins and ends as the program says"


def short(work):
    del work
    plain = PLAIN + PLAIN_MAIN
    return [
        ("one thread", plain, "c", ["0", "3"], TIMING["mtc3"], ["--emu-cpus=1"], ["-O2"]),
        ("one thread, cyc", plain, "c", ["0", "3"], TIMING["cyc"], ["--emu-cpus=1"], ["-O2"]),
        ("four threads on two CPUs", plain, "c", ["3", "4"], TIMING["cyc"], ["--emu-cpus=2"],
         ["-O2"]),
        ("exceptions", THROW, "cc", [], TIMING["mtc3"], ["--emu-cpus=1"], ["-O1"]),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv, short, short, scenario))
