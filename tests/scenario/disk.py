"""A disk that fails or is slow: strace lets each fdatasync() of the running program fail, or take very long."""

import shutil
import subprocess
import unittest

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
