#!/usr/bin/env python3
"""A recorder that says what it is told to, for tests of ptsnapctl.

    fake_recorder.py SOCKET BEHAVIOUR

One connection a call, until killed. BEHAVIOUR: normal, failing, garbage, half, silent, closed, slow, huge,
nofd, wrongsize, continues, or error:NAME[:JSON] (an error reply to everything).
"""

import array
import json
import os
import socket
import sys
import time

ID = "5abc-0001"
HOSTILE = "re\x1b[31mason\nline"
REPORT = {"schemaVersion": "2.0", "id": ID, "trigger": {"kind": "control", "reason": HOSTILE}}
ENTRY = {"id": ID, "state": "done", "trigger": "control", "reason": HOSTILE,
         "realtimeUSec": 1700000000000000, "bootId": "b", "rawBytes": 8388608, "reportBytes": 12345,
         "gaps": 0, "later": {"field": True}}
STATUS = {"version": "9", "state": "tracing", "source": "emulated", "pid": 42, "uptimeUSec": 1500000,
          "terms": "tsc,mtc,mtc_period=9", "yielded": {"untilUSec": 1700000000000000, "uid": 7, "pid": 99},
          "attrs": {"preset": "std", "terms": "tsc,mtc,mtc_period=9", "pt": "type=8 config=0x2600e602",
                    "sideband": "type=1 " + HOSTILE, "sidebandMissing": "text_poke",
                    "sizesNote": "trace ring 4M instead of 8M", "clockIsMonotonic": False},
          "cpus": [{"cpu": 0, "state": "tracing", "node": 0, "auxBytes": 8388608, "dataBytes": 65536,
                    "instructions": 1234567}] +
                  [{"cpu": i, "state": "tracing", "node": None, "auxBytes": 8388608,
                    "dataBytes": 65536, "instructions": None,
                    "lost": 5 if i == 7 else 0} for i in range(1, 8)] +
                  [{"cpu": 8, "state": "bu\x1b[31msy", "why": HOSTILE, "auxBytes": 0,
                    "dataBytes": 65536, "instructions": None, "lost": 0}],
          "timeline": {"records": 10}, "command": {"pid": 43, "running": False, "exitStatus": 3}}
FINDINGS = [{"level": "ok", "what": "pmu", "text": "intel_pt is here", "fix": None},
            {"level": "warning", "what": "lost", "text": "3 records " + HOSTILE,
             "fix": "--data-size=2M"}]
FAILURE = {"level": "failure", "what": "paranoid", "text": "is 3", "fix": "sysctl"}
BUNDLE = b"bundle\0bytes"
if "FAKE_REPORT" in os.environ:  # files to hand out instead
    with open(os.environ["FAKE_REPORT"], "rb") as f:
        REPORT = json.load(f)
if "FAKE_BUNDLE" in os.environ:
    with open(os.environ["FAKE_BUNDLE"], "rb") as f:
        BUNDLE = f.read()


class Peer:
    def __init__(self, connection, behaviour):
        self.connection = connection
        self.behaviour = behaviour
        self.buffer = b""

    def calls(self):
        while True:
            while b"\0" in self.buffer:
                text, self.buffer = self.buffer.split(b"\0", 1)
                yield json.loads(text)
            data = self.connection.recv(65536)
            if not data:
                return
            self.buffer += data

    def reply(self, parameters, continues=False, fd=None):
        message = {"parameters": parameters}
        if continues:
            message["continues"] = True
        data = json.dumps(message).encode() + b"\0"
        if fd is None:
            self.connection.sendall(data)
        else:
            socket.send_fds(self.connection, [data], [fd])

    def snapshot(self, call):
        parameters = call["parameters"]
        if parameters.get("reason") == "fail":
            entry = dict(ENTRY, state="failed", error="worker was killed")
            return self.reply({"report": entry})
        if not call.get("more"):
            return self.reply({"report": dict(ENTRY, state="queued", asked=parameters)})
        for percent, phase in enumerate(("freeze", "copy", "decode", "write")):
            progress = {"id": ID, "phase": phase, "percent": percent * 25}
            self.reply({"progress": progress}, continues=True)
        return self.reply({"report": dict(ENTRY, asked=parameters)})

    def list(self, call):
        if not call.get("more"):
            return self.reply({"report": ENTRY})
        self.reply({"report": ENTRY}, continues=True)
        return self.reply({"report": dict(ENTRY, id="5abc-0002", state="failed", error="no",
                                       asked=call.get("parameters"))})

    def get(self, call):
        report = call["parameters"]["format"] == "report"
        data = json.dumps(REPORT).encode() if report else BUNDLE
        fd = os.memfd_create("stored")
        os.write(fd, data)
        size = len(data) + (1 if self.behaviour == "wrongsize" else 0)
        answer = {"fileDescriptor": 0, "sizeBytes": size, "mediaType": "x/y", "name": "n"}
        self.reply(answer, fd=None if self.behaviour == "nofd" else fd)
        os.close(fd)

    def answer(self, call):
        method = call["method"]
        if method == "io.ptsnap.recorder.Snapshot":
            self.snapshot(call)
        elif method == "io.ptsnap.recorder.List":
            self.list(call)
        elif method == "io.ptsnap.recorder.Get":
            self.get(call)
        elif method == "io.ptsnap.recorder.Status":
            self.reply({"status": STATUS}, continues=self.behaviour == "continues")
        elif method == "io.ptsnap.recorder.Check":
            self.reply({"findings": FINDINGS + ([FAILURE] if self.behaviour == "failing" else [])})
        elif method == "io.ptsnap.recorder.Yield":
            asked = call["parameters"].get("forUSec")
            self.reply({"untilUSec": None if asked is None else 1700000000000000 + asked})
        elif method == "io.ptsnap.recorder.Resume":
            self.reply({"untilUSec": None})

    def error(self, call):
        name, _, parameters = self.behaviour[len("error:"):].partition(":")
        message = {"error": name, "parameters": json.loads(parameters or "{}")}
        self.connection.sendall(json.dumps(message).encode() + b"\0")

    def misbehave(self, call):
        if self.behaviour.startswith("error:"):
            self.error(call)
        elif self.behaviour == "garbage":
            self.connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n\0")
        elif self.behaviour == "half":
            self.connection.sendall(b'{"parameters": {"status": {')
            return False
        elif self.behaviour == "huge":
            try:
                self.connection.sendall(b"x" * (3 << 20))
            except OSError:
                return False
        elif self.behaviour == "silent":
            time.sleep(60)
        elif self.behaviour == "slow":
            for byte in b'{"parameters": {}, "continues": true}' * 100:
                self.connection.sendall(bytes([byte]))
                time.sleep(0.1)
        else:
            self.answer(call)
        return True

    def serve(self):
        if self.behaviour == "closed":
            return
        for call in self.calls():
            if not self.misbehave(call):
                return


def main():
    path, behaviour = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen(8)
    os.rename(path + ".new", path)
    while True:
        connection, _ = listener.accept()
        try:
            Peer(connection, behaviour).serve()
        except OSError:
            pass  # the client has gone; the next one is served
        connection.close()


main()
