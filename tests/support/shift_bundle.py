"""shift_bundle.py FROM TO NSEC: copies a snapshot's bundle with all times of its sideband NSEC later.

The trace stays unchanged, so the sideband must be applied NSEC earlier to fit again. Times 0 (the
state before the first record) stay. Sizes stay, so nothing moves.
"""
import re
import struct
import sys
import tarfile

TRAILER = 32  # pid, tid, time, cpu, reserved, id
FORK, EXIT = 7, 4  # PERF_RECORD_*: these also have a time in their body
BODY_TIME = 24


def add(data, at, nsec):
    time, = struct.unpack_from("<Q", data, at)
    if time:
        struct.pack_into("<Q", data, at, time + nsec)


def shift_records(data, nsec):
    at = 0
    while at + 8 <= len(data):
        kind, _, size = struct.unpack_from("<IHH", data, at)
        add(data, at + size - TRAILER + 8, nsec)
        if kind in (FORK, EXIT):
            add(data, at + BODY_TIME, nsec)
        at += size
    assert at == len(data)


def shift_manifest(data, nsec):
    """Shifts the stop times of CPUs, which come from AUX records."""
    def later(m):
        text = m[1] + str(int(m[2]) + nsec).encode()
        assert len(text) == len(m[0])
        return text
    return bytearray(re.sub(rb'("stopNSec": )(\d+)', later, bytes(data)))


def shift_bundle(source, target, nsec):
    with open(source, "rb") as f:
        data = bytearray(f.read())
    with tarfile.open(source) as tar:
        members = {m.name: (m.offset_data, m.size) for m in tar}
    for name, change in (("sideband", shift_records), ("manifest.json", shift_manifest)):
        at, size = members[name]
        part = data[at:at + size]
        part = change(part, nsec) or part
        data[at:at + size] = part
    with open(target, "wb") as f:
        f.write(data)


if __name__ == "__main__":
    shift_bundle(sys.argv[1], sys.argv[2], int(sys.argv[3]))
