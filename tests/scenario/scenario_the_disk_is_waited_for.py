#!/usr/bin/env python3
"""Nothing is sent before the disk has the intent, and no success is told before it has the result, however slow it is."""

import os
import struct
import tempfile
import unittest
from unittest import mock

import disk
import harness
from harness import PATIENCE, wait_for


class Test(disk.Scenario):
    def loop_has_turned(self):
        """What needs no ledger is forwarded meanwhile, on each of the loops."""
        for _ in range(4):
            self.assertEqual(self.proxy.send("GET", "/in")[0], 200)

    def test_P4_F_03_nothing_is_sent_before_the_intent_is_on_the_disk(self):
        self.serve()
        self.break_disk("delay_enter=5000000")
        running = self.later(self.send, 1)
        wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 1, "the claim", PATIENCE)
        self.loop_has_turned()
        self.assertEqual(self.target.stats()["writes"], 0)
        self.proxy.kill()
        self.mend_disk()
        self.assertIsNone(running.result())
        self.proxy.start()
        self.assertEqual(self.target.stats()["writes"], 0)
        self.assertIn(self.state(1), ("absent", "in_doubt"))

    def test_P4_F_06_no_success_is_told_before_the_result_is_on_the_disk(self):
        self.serve()
        self.target.set(delay=800, next=1)
        running = self.later(self.send, 1)
        self.held()
        self.break_disk("delay_enter=5000000")
        wait_for(lambda: not self.target.held(), "the answer of the target", PATIENCE)
        self.loop_has_turned()
        self.assertTrue(running.is_running())
        self.proxy.kill()
        self.mend_disk()
        self.assertIsNone(running.result())
        self.proxy.start()
        self.assertIn(self.state(1), ("in_doubt", "applied"))
        self.assertEqual(self.applied(1), 1)


@unittest.skipIf(harness.is_sanitized() or "DISK_FAULT_LIB" not in os.environ, "needs the library of a slow disk as the first")
class Slow(harness.Scenario):
    def test_a_second_sigterm_does_not_wait_for_it(self):
        with tempfile.NamedTemporaryFile() as orders:
            orders.write(struct.pack("II", 0, 0))
            orders.flush()
            with mock.patch.dict(os.environ, LD_PRELOAD=os.environ["DISK_FAULT_LIB"], DISK_FAULT=orders.name):
                self.serve()
            orders.seek(0)
            orders.write(struct.pack("II", 3600000, 0))
            orders.flush()
            asked = self.later(self.proxy.admin, "PUT", "/mode", {"mode": "observe"})  # the ledger is to note it
            self.wait_logged("admin.change")
            self.proxy.process.signal(harness.sinkonce.signal.SIGTERM)
            self.wait_logged("server.stop")
            self.assertEqual(self.proxy.stop(), 0)
            asked.result()

    def wait_logged(self, event):
        def is_logged():
            with open(self.proxy.log) as log:
                return event in log.read()
        wait_for(is_logged, event, PATIENCE)


if __name__ == "__main__":
    harness.main()
