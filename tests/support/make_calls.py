#!/usr/bin/env python3
"""make_calls.py CALLS: writes a call stream (proto/callstream.h) of CALLS calls in 8 threads on 8 CPUs.

Threads call, wait, lose their CPU and get it again; there are gaps, changes of frequency, signals, recursion, and
names that try to leave the page. The same number gives the same stream.
"""
import sys

HOSTILE = [
    b"</script><script>document.title='owned'</script>",
    b"<img src=x onerror=\"document.title='owned'\">",
    b"\xe2\x80\xaeesrever\xe2\x80\xac",
    b"${document.title='owned'}\\`'\"",
    b"tab\there\nnewline\x1b[31m\xff\xfe",
    b"<!-- --></style>",
]
NAMES = [f"{a}_{b}".encode() for a in ("parse", "read", "lock", "hash", "copy", "send", "alloc", "find")
         for b in ("request", "buffer", "entry", "table", "node", "path", "key", "line")]
IMAGES = [b"/usr/bin/server", b"/usr/lib/x86_64-linux-gnu/libc.so.6", b"/usr/lib/libwork.so.1", b"[kernel]"]


def text(raw):
    return "".join(chr(c) if 32 <= c <= 126 and c != 92 else f"\\x{c:02x}" for c in raw)


class Random:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


class Thread:
    def __init__(self, number, cpu, first):
        self.number, self.cpu, self.time, self.stack = number, cpu, first, []
        self.on = True


def main():
    calls = int(sys.argv[1])
    first, out, random = 1_000_000_000_000, [], Random(calls)
    threads = [Thread(n + 1, n, first + 1000 * n) for n in range(8)]
    emit = out.append
    for t in threads:
        name = HOSTILE[0] if t.number == 8 else f"worker-{t.number}".encode()
        emit(f"T\t{t.number}\t{100 + (t.number - 1) // 4}\t{100 + t.number}\t{text(name)}")
    names = NAMES + HOSTILE
    for n, name in enumerate(names):
        file = b"src/" + name[:20] if n % 3 else b""
        emit(f"F\t{n + 1}\t{0x401000 + 64 * n:#x}\t{text(name)}\t{text(IMAGES[n % 4])}\t{text(file)}\t{n if file else 0}")
    for t in threads:
        emit(f"R\t{t.number}\t{t.time}\t{t.cpu}")
    left, n_frames = calls, 0
    while left > 0:
        t = threads[random.below(8) if random.below(64) == 0 else (calls - left) // 4096 % 8]
        r = random.below(1000)
        t.time += 1 + random.below(60)
        if r < 2:
            emit(f"S\t{t.number}\t{t.time}\t{t.cpu}\t{'blocked' if r else 'preempted'}")
            t.time += 2000 + random.below(40000)
            emit(f"R\t{t.number}\t{t.time}\t{t.cpu}")
        elif r == 2 and random.below(20) == 0:
            for _ in range(len(t.stack)):
                emit(f"E\t{t.number}\t{t.time}\t0\t{t.cpu}\tlost\t10")
            t.stack = []
            length = 500 + random.below(30000)
            emit(f"G\t{t.number}\t{t.time}\t{length}\t{t.cpu}\toverflow")
            t.time += length
        elif r == 3:
            emit(f"M\t{t.number}\t{t.time}\t{t.cpu}\t{800 + 100 * random.below(28)}\tfrequency")
        elif r == 4:
            emit(f"M\t{t.number}\t{t.time}\t{t.cpu}\t{random.below(2**40)}\tptwrite")
        elif len(t.stack) < 3 or (r < 490 + 20 * (10 - min(len(t.stack), 20))):
            function = 1 + (random.below(len(names)) + 7 * len(t.stack)) % len(names)
            kind = "found" if not t.stack and t.time < first + 20000 else "signal" if r == 5 else "call"
            emit(f"B\t{t.number}\t{t.time}\t{random.below(30)}\t{t.cpu}\t{function}\t{kind}")
            t.stack.append(function)
            left, n_frames = left - 1, n_frames + 1
        else:
            t.stack.pop()
            emit(f"E\t{t.number}\t{t.time}\t{random.below(30)}\t{t.cpu}\treturn\t{10 + random.below(200)}")
    last = max(t.time for t in threads)
    for t in threads:
        for _ in t.stack:
            emit(f"E\t{t.number}\t{last}\t0\t{t.cpu}\topen\t5")
    emit(f"G\t0\t{first + (last - first) // 2}\t{(last - first) // 50}\t2\tdark")
    emit(f"Z\t{n_frames}\t0")
    print(f"H\t1\t{first}\t{last - first}\t{last - (last - first) // 10}")
    print("\n".join(out))


main()
