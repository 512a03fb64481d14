"""A disk that fails or is slow: strace lets each fdatasync() of the running program fail, or take very long; a library that
is loaded before the C library (oracle/disk_fault.c) does so from one moment to the next, and ends it as well.
"""

import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from unittest import mock

import harness
from harness import PATIENCE


@unittest.skipUnless(shutil.which("strace"), "strace is not installed")
class Scenario(harness.Scenario):
    def break_disk(self, how="error=EIO"):
        self.strace = subprocess.Popen(
            ["strace", "-f", "-p", str(self.proxy.process.pid), "-o", "/dev/null", "-e", "trace=fdatasync,fsync",
             "-e", "inject=fdatasync,fsync:" + how], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.mend_disk)
        said = []
        for line in self.strace.stderr:
            said.append(line)
            if "attached" in line:
                return
        self.skipTest("strace may not attach here: " + " ".join(said).strip())

    def mend_disk(self):
        if self.strace.poll() is None:
            self.strace.send_signal(harness.sinkonce.signal.SIGINT)
            self.strace.wait(PATIENCE)
        self.strace.stderr.close()


class Disk:
    """What disk_fault.c does."""

    HANGS = 3600000  # so late that no test sees the end of it

    def __init__(self, folder):
        self.path = os.path.join(folder, "disk")
        with open(self.path, "wb") as file:
            file.write(struct.pack("=III", 0, 0, 0))

    def order(self, delay_ms, error):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=II", delay_ms, error))

    def late_count(self):
        """How many syncs wait now."""
        with open(self.path, "rb") as file:
            return struct.unpack("=III", file.read())[2]


@unittest.skipIf(harness.is_sanitized() or "DISK_FAULT_LIB" not in os.environ, "needs the library of a bad disk as the first")
class Ordered:
    """Stands before a Scenario: its sinkonce writes to self.disk."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.disk = Disk(folder.name)
        loaded = mock.patch.dict(os.environ, LD_PRELOAD=os.environ["DISK_FAULT_LIB"], DISK_FAULT=self.disk.path)
        loaded.start()
        self.addCleanup(loaded.stop)
