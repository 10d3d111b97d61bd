#!/usr/bin/env python3
"""What nobody should send to ptsnapd's socket. SOCKET [leave-snapshot|many-users|everybody]

Exits 0 when every bad connection was closed, a good one was answered, at once, at every moment
in between, and after each case the recorder has as many descriptors and as little memory as before.

many-users (as root, the socket open to all): so many users with so many connections each that there
is room for no more; root is served all the same.

everybody (as root): strangers do what they can at SOCKET.status; nobody at SOCKET notices.
"""
import array
import json
import os
import re
import socket
import sys
import time

PATH = sys.argv[1]
TIMEOUT = 10


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(PATH)  # which waits for its turn
    s.settimeout(TIMEOUT)
    return s


def connect_status():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(PATH + ".status")
    s.settimeout(TIMEOUT)
    return s


def message(method, **more):
    return json.dumps({"method": method, **more}).encode() + b"\0"


STATUS = message("io.ptsnap.recorder.Status")
LIST = message("io.ptsnap.recorder.List", more=True)


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


def recorder_pid():
    with connect() as s:
        s.sendall(STATUS)
        return read_message(s)["parameters"]["status"]["pid"]


def fds_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def memory_of(pid):
    """Resident KiB; None where that tells nothing, as with AddressSanitizer's quarantine."""
    status = open(f"/proc/{pid}/status").read()
    if int(re.search(r"VmSize:\s+(\d+)", status)[1]) > 1 << 30:
        return None
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1])


# Memory in KiB that the allocator may keep for the next time.
MEMORY_SLACK = 4096


class Steady:
    """Around a case: the recorder has in the end what it had in the beginning."""

    def __init__(self, pid, name):
        self.pid, self.name = pid, name

    def __enter__(self):
        self.fds, self.memory = fds_of(self.pid), memory_of(self.pid)

    def __exit__(self, kind, *_):
        if kind:
            return
        for _ in range(100):
            try:
                check_alive()
            except (EOFError, OSError):
                pass
            if fds_of(self.pid) <= self.fds:
                break
            time.sleep(0.05)
        fds, memory = fds_of(self.pid), memory_of(self.pid)
        assert fds <= self.fds, (self.name, self.fds, fds)
        if memory is not None:
            assert memory <= self.memory + MEMORY_SLACK, (self.name, self.memory, memory)
        check_alive()


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
    b'{"method":"io.ptsnap.recorder.Status","parameters":' + b'{"a":' * 20 + b"1" + b"}" * 20 + b"}\0",
    b'{"method":"io.ptsnap.recorder.Status","parameters":[' + b"0," * 300000 + b"0]}\0",
    b'{"method":"io.ptsnap.recorder.Status\0","parameters":{}}\0',
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
    ("io.ptsnap.recorder.List", {"x" * 900000: 1}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Pin", {"id": "x"}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Pin", {"id": "x", "pinned": None}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Pin", {"id": "x", "pinned": 1}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Pin", {"pinned": True}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Pin", {"id": "latest", "pinned": False}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Pin", {"id": "../x", "pinned": True}, "io.ptsnap.recorder.NoSuchReport"),
    ("io.ptsnap.recorder.Delete", {"id": "latest"}, "org.varlink.service.InvalidParameter"),
    ("io.ptsnap.recorder.Delete", {"id": "../x"}, "io.ptsnap.recorder.NoSuchReport"),
    ("io.ptsnap.recorder.Delete", {"id": ""}, "io.ptsnap.recorder.NoSuchReport"),
]


def garbage():
    for bad in BAD:
        with connect() as s:
            try:
                s.sendall(bad)
            except (BrokenPipeError, ConnectionResetError):
                pass
            expect_closed(s)
        check_alive()


def refusals():
    with connect() as s:
        for method, parameters, error in REFUSED:
            s.sendall(message(method, parameters=parameters))
            answer = read_message(s)
            assert answer.get("error") == error, (method, answer)


def oversized():
    """More than 1 MiB without an end."""
    with connect() as s:
        try:
            for _ in range(64):
                s.sendall(b" " * 65536)
        except (BrokenPipeError, ConnectionResetError):
            pass
        expect_closed(s)
    check_alive()


def slow():
    """Half a message, and one that trickles in: nobody else notices."""
    with connect() as half, connect() as trickle:
        half.sendall(STATUS[:10])
        for byte in STATUS:
            trickle.sendall(bytes([byte]))
            check_alive()
        assert read_message(trickle)["parameters"]["status"]


def deaf():
    """Those that ask and ask and never read."""
    crowd = [connect() for _ in range(8)]
    for s in crowd:
        s.setblocking(False)
        try:
            for _ in range(100000):
                s.sendall(STATUS + LIST)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
        check_alive()
    for s in crowd:
        s.close()


def fd_bombs():
    """Descriptors that nobody asked for: with a message, with half of one, and with nothing."""
    with open("/dev/null") as null:
        many = [null.fileno()] * 253
        with connect() as s:
            socket.send_fds(s, [STATUS], many)
            assert read_message(s)["parameters"]["status"]
        crowd = [connect() for _ in range(8)]
        for s in crowd:
            s.setblocking(False)
            try:
                for _ in range(200):
                    socket.send_fds(s, [STATUS[:1]], many)
            except (OSError, BrokenPipeError):
                pass
            check_alive()
        for s in crowd:
            s.close()
        # One that is itself on its way: only the kernel can clear that away.
        left, right = socket.socketpair()
        with connect() as s:
            left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                   array.array("i", [right.fileno()]))])
            socket.send_fds(s, [b"{"], [left.fileno(), right.fileno()])
        left.close()
        right.close()


def crowd():
    """A thousand connections of one who is an administrator: refused, and room again afterwards."""
    held = []
    for _ in range(1000):
        held.append(connect())
    for s in held:
        s.close()


def one_of_many(uid, ready, go_on):
    """As UID: more connections than one may have, each with half a message."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    held = []
    for _ in range(20):
        held.append(connect())
        try:
            held[-1].sendall(STATUS[:10])
        except OSError:
            pass
    os.write(ready, b"x")
    os.read(go_on, 1)
    os._exit(0)


def many_users(control=None):
    global connect
    ready, go_on = os.pipe(), os.pipe()
    pids = []
    for uid in range(20001, 20009):
        pid = os.fork()
        if pid == 0:
            os.close(go_on[1])
            one_of_many(uid, ready[1], go_on[0])
        pids.append(pid)
    os.close(go_on[0])
    for _ in pids:
        os.read(ready[0], 1)
    if control:
        connect = control
    for _ in range(5):
        check_alive()
    for fd in (*ready, go_on[1]):
        os.close(fd)
    for pid in pids:
        os.waitpid(pid, 0)


# Methods that the socket for everybody answers; it refuses all others, whoever asks.
OPEN = ["org.varlink.service.GetInfo", "org.varlink.service.GetInterfaceDescription", "io.ptsnap.recorder.Status"]


def methods():
    with connect() as s:
        s.sendall(message("org.varlink.service.GetInterfaceDescription",
                          parameters={"interface": "io.ptsnap.recorder"}))
        text = read_message(s)["parameters"]["description"]
    return ["io.ptsnap.recorder." + name for name in re.findall(r"^method (\w+)", text, re.M)]


def closed_doors():
    """Each method, by itself and with whatever parameters; garbage, too."""
    for method in methods() + OPEN:
        with connect_status() as s:
            for more in ({"parameters": {"id": "latest", "pinned": True}}, {}):
                s.sendall(message(method, **more))
                error = read_message(s).get("error", "")
                assert (method in OPEN) != error.endswith("recorder.PermissionDenied"), (method, error)
    for bad in BAD:
        with connect_status() as s:
            try:
                s.sendall(bad)
            except (BrokenPipeError, ConnectionResetError):
                pass
            expect_closed(s)


def talkers():
    """More calls than a connection has, and connections of one that come again and again."""
    for _ in range(30):
        with connect_status() as s:
            try:
                s.sendall(STATUS * 5000)
            except (BrokenPipeError, ConnectionResetError):
                pass
            got = b""
            try:
                while data := s.recv(65536):
                    got += data
            except ConnectionResetError:
                pass
            assert got.count(b"\0") <= 16, got.count(b"\0")
        check_alive()


def strangers():
    """More of them than there is room for."""
    global connect
    control = connect
    connect = connect_status
    try:
        many_users(control)
    finally:
        connect = control


def main(cases):
    pid = recorder_pid()
    # Once, so that the recorder has all the memory that it needs for such a client at all.
    cases[0]()
    for case in cases:
        with Steady(pid, case.__name__):
            case()


if len(sys.argv) > 2 and sys.argv[2] == "leave-snapshot":
    leave_snapshot()
elif len(sys.argv) > 2 and sys.argv[2] == "many-users":
    main([many_users])
elif len(sys.argv) > 2 and sys.argv[2] == "everybody":
    main([closed_doors, talkers, strangers])
else:
    main([garbage, refusals, oversized, slow, deaf, fd_bombs, crowd])
