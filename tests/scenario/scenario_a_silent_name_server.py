#!/usr/bin/env python3
"""A name server that does not answer costs the requests that need it their time, and nobody else: the loop goes on.

Runs in a network of its own, whose name server is a socket that nobody reads from.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import PATIENCE, Wire, post_bytes, record

OWN_NETWORK = ["unshare", "--net", "--mount"]
IS_INSIDE = os.environ.get("SILENT_NAME_SERVER") == "1"


def can_leave():
    return shutil.which("unshare") and subprocess.run(OWN_NETWORK + ["ip", "link", "set", "lo", "up"],
                                                      capture_output=True).returncode == 0


@unittest.skipUnless(IS_INSIDE, "a network of its own cannot be made here")
class Test(harness.Scenario):
    def setUp(self):
        super().setUp()
        self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.server.close)
        self.server.bind(("127.0.0.1", 53))
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n")
            file.flush()
            subprocess.run(["mount", "--bind", file.name, "/etc/resolv.conf"], check=True)
        self.addCleanup(subprocess.run, ["umount", "/etc/resolv.conf"], check=True)

    def test_C_25_requests_that_need_no_name_are_answered_while_others_wait_for_theirs(self):
        self.serve(WORKERS="1")
        self.assertEqual(self.send(1).status, 200)
        silent = "http://silent.example:%d" % self.target.port
        self.restart(TARGET=silent, TARGET_WAS=self.target.url, CONNECT_TIMEOUT="3s")
        waiting = [self.later(self.send, offset) for offset in (2, 3)]
        harness.wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 2, "two requests", PATIENCE)
        self.assertEqual(self.send(1).outcome, "duplicate")
        with Wire(self.proxy.port) as wire:
            wire.send(b"POST /in HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n")
            self.assertEqual(wire.reply().status, 400)
        with Wire(self.proxy.port) as wire:
            wire.send(post_bytes(record("orders", 0, 1)))
            self.assertEqual(wire.reply().one("sinkonce-outcome"), "duplicate")
        self.assertTrue(all(call.is_running() for call in waiting))
        for call in waiting:
            self.assert_own(call.result(), 503, "refused", "target-unreachable")
        self.assertEqual([self.state(offset) for offset in (2, 3)], ["absent"] * 2)
        self.restart(TARGET=self.target.url, TARGET_WAS=silent)
        self.assertEqual([self.send(offset).status for offset in (2, 3)], [200, 200])


if __name__ == "__main__":
    if not IS_INSIDE and can_leave():
        inside = 'ip link set lo up && exec "$0" -B "$1"'
        os.environ["SILENT_NAME_SERVER"] = "1"
        os.execvp(OWN_NETWORK[0], OWN_NETWORK + ["sh", "-c", inside, sys.executable, os.path.abspath(__file__)])
    harness.main()
