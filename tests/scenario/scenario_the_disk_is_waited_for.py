#!/usr/bin/env python3
"""Nothing is sent before the disk has the intent, and no success is told before it has the result, however slow it is."""

import errno

import disk
import harness
from harness import PATIENCE, key, wait_for


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


class Hanging(disk.Ordered, harness.Scenario):
    def wait_logged(self, event):
        return wait_for(lambda: self.logged(event), event, PATIENCE, [self.proxy.log])[-1]

    def known_but_not_written(self, **settings):
        """The first is applied and answered; of the second the target's answer has come, and the disk hangs."""
        self.serve(**settings)
        self.assertEqual(self.send(0).status, 200)
        self.target.set(delay=1500, next=1)
        self.running = self.later(self.send, 1)
        self.held()
        self.disk.order(disk.Disk.HANGS, 0)
        wait_for(self.disk.late_count, "the result to wait for the disk", PATIENCE, [self.proxy.log])

    def answered_but_not_written(self, **settings):
        """As before, but the disk failed first: the connector has its 503, and only the ledger still waits."""
        self.serve(**settings)
        self.assertEqual(self.send(0).status, 200)
        self.target.set(delay=1500, next=1)
        self.running = self.later(self.send, 1)
        self.held()
        self.disk.order(0, errno.EIO)
        self.assert_own(self.running.result(), 503, "refused", "ledger-failed")
        self.disk.order(disk.Disk.HANGS, 0)
        wait_for(self.disk.late_count, "the ledger to try again", PATIENCE, [self.proxy.log])

    def terminate(self):
        self.proxy.process.signal(harness.sinkonce.signal.SIGTERM)

    def assert_nothing_is_lost(self):
        self.disk.order(0, 0)
        self.proxy.start()
        self.assertTrue(self.send(0).is_replayed)
        self.assertEqual((self.state(1), self.send(1).outcome), ("in_doubt", "in-doubt"))
        self.proxy.resolve(key("orders", 0, 1), True)
        self.assertEqual((self.send(1).status, self.applied(0), self.applied(1)), (200, 1, 1))

    def test_C4_a_kill_during_the_drain_loses_nothing_that_was_answered(self):
        self.known_but_not_written()
        self.terminate()
        waits = self.wait_logged("drain.start")
        self.assertEqual((waits["in_flight"], waits["at_target"]), (1, 0))  # so the ledger is what it waits for
        self.proxy.kill()
        self.assertIsNone(self.running.result())
        self.assert_nothing_is_lost()

    def test_the_drain_ends_in_time_although_the_disk_does_not_answer(self):
        self.known_but_not_written(DRAIN_TIMEOUT="300ms")
        self.assertEqual(self.proxy.stop(), 0)
        over = self.wait_logged("drain.timeout")
        self.assertEqual((over["in_flight"], over["at_target"]), (1, 0))
        self.assertIsNone(self.running.result())
        self.assert_nothing_is_lost()

    def test_C4_a_kill_during_the_last_wait_loses_nothing_that_was_answered(self):
        self.answered_but_not_written()
        self.terminate()
        self.assertIn("waits for its disk", self.wait_logged("drain.waiting")["msg"])
        self.assertEqual(self.logged("server.stop"), [])
        self.proxy.kill()
        self.assert_nothing_is_lost()

    def test_the_last_wait_ends_in_time_although_the_disk_does_not_answer(self):
        self.answered_but_not_written(DRAIN_TIMEOUT="300ms")
        self.assertEqual(self.proxy.stop(), 0)
        self.wait_logged("drain.waiting")
        self.assertIn("disk", self.wait_logged("drain.timeout")["msg"])
        self.assert_nothing_is_lost()

    def test_a_disk_that_answers_within_the_last_wait_ends_it(self):
        self.answered_but_not_written()
        self.terminate()
        self.wait_logged("drain.waiting")
        self.disk.order(0, 0)
        self.assertEqual(self.proxy.process.wait(), 0)
        self.wait_logged("server.stop")
        self.proxy.start()
        self.assertEqual((self.state(1), self.send(1).outcome), ("applied", "duplicate"))

    def test_a_second_sigterm_does_not_wait_for_it(self):
        self.serve()
        self.disk.order(disk.Disk.HANGS, 0)
        asked = self.later(self.proxy.admin, "PUT", "/mode", {"mode": "observe"})  # the ledger is to note it
        wait_for(self.disk.late_count, "the note to wait for the disk", PATIENCE, [self.proxy.log])
        self.terminate()
        self.wait_logged("drain.waiting")
        self.assertEqual(self.proxy.stop(), 0)
        asked.result()


if __name__ == "__main__":
    harness.main()
