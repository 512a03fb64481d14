#!/usr/bin/env python3
"""Nothing is sent before the disk has the intent, and no success is told before it has the result, however slow it is."""

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


if __name__ == "__main__":
    harness.main()
