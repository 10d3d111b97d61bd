#!/usr/bin/env python3
"""What nobody should send to ptsnapd's socket. SOCKET [leave-snapshot]

Exits 0 when every bad connection was closed, and a good one was answered, at once, at every moment
in between.
"""
import json
import socket
import sys
import time

PATH = sys.argv[1]
TIMEOUT = 10


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(TIMEOUT)
    s.connect(PATH)
    return s


def message(method, **more):
    return json.dumps({"method": method, **more}).encode() + b"\0"


STATUS = message("io.ptsnap.recorder.Status")


def read_message(s):
    data = b""
    while b"\0" not in data:
        got = s.recv(65536)
        if not got:
            raise EOFError
        data += got
    return json.loads(data[:data.index(b"\0")])


def check_alive():
    with connect() as s:
        s.sendall(STATUS)
        assert read_message(s)["parameters"]["status"]["source"]


def expect_closed(s):
    try:
        while s.recv(65536):
            pass
    except ConnectionResetError:
        pass


def leave_snapshot():
    s = connect()
    s.sendall(message("io.ptsnap.recorder.Snapshot", more=True))
    read_message(s)
    s.close()


BAD = [
    b"\0",
    b"GET / HTTP/1.1\r\n\r\n\0",
    bytes(range(1, 256)) + b"\0",
    b"[]\0",
    b"{}\0",
    b'{"method":7}\0',
    b'{"method":"nodot"}\0',
    b'{"method":"io.ptsnap.recorder.Status"}}\0',
    b'{"method":"io.ptsnap.recorder.Status","parameters":7}\0',
    b'{"method":"io.ptsnap.recorder.Status","more":true,"oneway":true}\0',
    b"[" * 100000 + b"\0",
    b'{"a":' * 1000 + b"\0",
    b'{"method":"\xff\xfe.x"}\0',
]

# Well-formed calls that are refused by name; the connection lives on.
REFUSED = [
    ("io.ptsnap.recorder.Nope", {}, "org.varlink.service.MethodNotFound"),
    ("no.such.Thing", {}, "org.varlink.service.InterfaceNotFound"),
    ("io.ptsnap.recorder.Snapshot", {"windowBytes": "much"}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Snapshot", {"windowBytes": 0}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Snapshot", {"windowUSec": 2**63}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Snapshot", {"deadlineUSec": 2**63}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Snapshot", {"deadlineUSec": -1}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Snapshot", {"reason": "x" * 257}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Snapshot", {"typo": 1}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Get", {}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Get", {"id": "../../etc/passwd"}, "io.ptsnap.recorder.NoSuchReport"),
    ("io.ptsnap.recorder.Get", {"id": "x", "format": "pdf"}, "io.ptsnap.recorder.UnsupportedFormat"),
    ("io.ptsnap.recorder.List", {"limit": -1}, "org.varlink.service.InvalidParameter"),
]


def main():
    for bad in BAD:
        with connect() as s:
            try:
                s.sendall(bad)
            except (BrokenPipeError, ConnectionResetError):
                pass
            expect_closed(s)
        check_alive()

    with connect() as s:
        for method, parameters, error in REFUSED:
            s.sendall(message(method, parameters=parameters))
            answer = read_message(s)
            assert answer.get("error") == error, (method, parameters, answer)

    # Oversized: more than 1 MiB without an end.
    with connect() as s:
        try:
            for _ in range(64):
                s.sendall(b" " * 65536)
        except (BrokenPipeError, ConnectionResetError):
            pass
        expect_closed(s)
    check_alive()

    # Half a message, and one that trickles in: nobody else notices.
    half, slow = connect(), connect()
    half.sendall(STATUS[:10])
    for byte in STATUS:
        slow.sendall(bytes([byte]))
        check_alive()
    assert read_message(slow)["parameters"]["status"]

    # One that asks and asks and never reads.
    deaf = connect()
    deaf.setblocking(False)
    try:
        for _ in range(100000):
            deaf.sendall(STATUS)
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass
    check_alive()

    # Fds that nobody asked for.
    with connect() as s, open("/dev/null") as null:
        socket.send_fds(s, [STATUS], [null.fileno()] * 100)
        assert read_message(s)["parameters"]["status"]

    # More connections than there may be: refused, and room again afterwards.
    crowd = []
    for _ in range(100):
        try:
            crowd.append(connect())
        except OSError:
            break
    for s in crowd:
        s.close()
    half.close()
    slow.close()
    deaf.close()
    for _ in range(50):
        try:
            check_alive()
            break
        except (EOFError, OSError):
            time.sleep(0.1)
    else:
        raise AssertionError("no room after the crowd has left")


if len(sys.argv) > 2 and sys.argv[2] == "leave-snapshot":
    leave_snapshot()
else:
    main()
