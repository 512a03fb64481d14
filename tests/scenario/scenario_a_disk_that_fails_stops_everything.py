#!/usr/bin/env python3
"""When the disk does not take what is written, nothing is sent and nothing is told to be done; when it works again,
everything that was known meanwhile is written down.
"""

import disk
import harness
from harness import PATIENCE, key, straight_and_killed, wait_for


class Test(disk.Scenario):
    def assert_last_detail(self, event, detail):
        self.assertIn(detail, self.logged(event)[-1]["detail"])

    def works_again(self, offset):
        wait_for(lambda: self.send(offset).status == 200, "the ledger to work again", PATIENCE, [self.proxy.log])

    @straight_and_killed
    def test_S1_L_01_nothing_is_sent_while_claims_cannot_be_written(self):
        self.serve()
        self.send(0)
        self.break_disk()
        for offset in (1, 2, 1):
            self.assert_own(self.send(offset), 503, "refused", "ledger-failed")
        self.assertEqual((self.applied(1), self.applied(2)), (0, 0))
        self.assertEqual(self.proxy.admin("GET", "/readyz")[0], 503)
        self.assertEqual(self.proxy.admin("GET", "/livez")[0], 200)
        self.assertGreaterEqual(self.proxy.metric("sinkonce_ledger_errors_total"), 1)
        self.assertTrue(any("fails" in text for text in self.proxy.admin("GET", "/status")[1]["warnings"]))
        self.mend_disk()
        self.between()
        if self.is_killed_between:
            for doubt in self.doubts():  # the claim may have been on the disk, although it was not told so
                self.proxy.resolve(doubt, False)
        for offset in (1, 2):
            self.works_again(offset)
        self.assertTrue(self.send(0).is_replayed)
        self.assertEqual((self.applied(1), self.applied(2)), (1, 1))
        self.assertEqual(self.proxy.admin("GET", "/readyz")[0], 200)

    def test_S2_a_success_that_cannot_be_written_is_not_told_and_is_written_later(self):
        self.serve()
        self.target.set(delay=1500, status=201, body="created", next=1)
        running = self.later(self.send, 1)
        self.held()
        self.break_disk()
        self.assert_own(running.result(), 503, "refused", "ledger-failed")
        self.assertEqual(self.applied(1), 1)
        self.assertEqual(self.send(1).status, 503)
        self.mend_disk()
        self.target.clear()
        wait_for(lambda: self.proxy.admin("GET", "/readyz")[0] == 200, "the ledger to work again", PATIENCE, [self.proxy.log])
        self.assert_last_detail("ledger.error", "Input/output error")
        wait_for(lambda: self.logged("ledger.resumed"), "the end of it to be logged", PATIENCE, [self.proxy.log])
        self.assert_last_detail("ledger.resumed", "Input/output error")
        self.assertGreater(self.logged("ledger.resumed")[0]["refused_ms"], 0)
        self.assertEqual(self.state(1), "applied")
        again = self.send(1)
        self.assertEqual((again.status // 100, again.is_replayed), (2, True))  # its answer may not have been kept
        self.assertEqual(self.applied(1), 1)

    def test_L_01_what_waits_for_a_connection_when_the_disk_fails_is_not_sent(self):
        self.serve(WORKERS="1", TARGET_CONNECTIONS="1", CONNECT_TIMEOUT="60s")
        self.target.set(delay=1500, next=2)
        running = []
        for offset in (1, 2, 3):
            running.append(self.later(self.send, offset))
            wait_for(lambda: self.state(offset) == "in_flight", "the claim", PATIENCE, [self.proxy.log])
        self.break_disk()
        for one in running:  # the second has left before the result of the first was refused
            self.assert_own(one.result(), 503, "refused", "ledger-failed")
        self.assertEqual([self.applied(offset) for offset in (1, 2, 3)], [1, 1, 0])
        self.mend_disk()
        wait_for(lambda: self.proxy.admin("GET", "/readyz")[0] == 200, "the ledger to work again", PATIENCE, [self.proxy.log])
        self.assertEqual([self.state(offset) for offset in (1, 2, 3)], ["applied", "applied", "absent"])
        self.assertEqual(self.send(3).status, 200)
        self.assertEqual(self.applied(3), 1)

    def test_Z_16_observe_passes_the_answer_on_although_it_cannot_be_written(self):
        self.is_journal_checked = False
        self.serve(MODE="observe")
        self.target.set(delay=1500, status=201, next=1)
        running = self.later(self.send, 1)
        self.held()
        self.break_disk()
        answer = running.result()
        self.assertEqual((answer.status, answer.outcome), (201, None))
        self.mend_disk()

    def test_S2_killed_before_the_success_could_be_written_it_is_in_doubt(self):
        self.serve()
        self.target.set(delay=1500, next=1)
        running = self.later(self.send, 1)
        self.held()
        self.break_disk()
        self.assertEqual(running.result().status, 503)
        self.proxy.kill()
        self.mend_disk()
        self.proxy.start()
        self.assertIn(self.state(1), ("in_doubt", "applied"))
        self.assertEqual(self.send(1).status, 503 if self.doubts() == [key("orders", 0, 1)] else 200)
        self.assertEqual(self.applied(1), 1)


if __name__ == "__main__":
    harness.main()
