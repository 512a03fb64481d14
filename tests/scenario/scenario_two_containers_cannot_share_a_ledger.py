#!/usr/bin/env python3
"""Two containers on one volume: both processes are number 1 there, and still only one of them gets the ledger."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import unittest
from signal import SIGTERM

import harness
from harness import sinkonce

EX_TEMPFAIL = 75
CONTAINER = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def has_namespaces():
    return shutil.which("unshare") and subprocess.run(CONTAINER + ["true"], capture_output=True).returncode == 0


@unittest.skipUnless(has_namespaces(), "namespaces of processes cannot be made here")
class Test(harness.Scenario):
    is_sum_checked = False

    def in_a_container(self, **env):
        process = sinkonce.Sinkonce(self.target.url, env=env, wrapper=CONTAINER)
        self.addCleanup(process.close)
        self.proxy = self.proxy or process
        return process

    def test_L_08_of_two_processes_that_are_both_number_1_the_second_is_refused(self):
        first = self.in_a_container().start()
        self.assertEqual(self.send(1).status, 200)
        second = self.in_a_container(SINKONCE_DATA_DIR=first.data_dir)
        second.start(is_ready=False)
        self.assertEqual(second.process.wait(), EX_TEMPFAIL)
        with open(second.log) as log:
            self.assertIn("is in use by another process", log.read())
        self.assertEqual([self.send(offset).status for offset in (1, 2)], [200, 200])
        first.kill()  # what held the ledger is gone with its container
        second.start()
        self.proxy = second
        self.assertEqual(self.state(2), "applied")
        self.assertEqual(self.send(2).outcome, "duplicate")
        self.assertEqual(self.applied(2), 1)

    def test_a_process_1_that_waits_for_the_ledger_ends_when_it_is_asked_to(self):
        process = self.in_a_container()
        path = os.path.join(process.data_dir, "sinkonce.lock")
        with open(path, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process.start(is_ready=False)
            os.kill(sinkonce.wait_for(lambda: self.waiting(process.process.pid, path), "a start that waits"), SIGTERM)
            self.assertEqual(process.process.wait(), 0)  # unheard, it would end with EX_TEMPFAIL

    @staticmethod
    def waiting(wrapper, path):
        """The child of the process WRAPPER that has PATH open; None: it is not there yet."""
        with open("/proc/%d/task/%d/children" % (wrapper, wrapper)) as children:
            for child in children.read().split():
                folder = "/proc/%s/fd/" % child
                with contextlib.suppress(OSError):
                    if path in [os.readlink(folder + number) for number in os.listdir(folder)]:
                        return int(child)
        return None


if __name__ == "__main__":
    harness.main()
