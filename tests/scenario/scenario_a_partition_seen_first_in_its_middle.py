#!/usr/bin/env python3
"""A partition that the ledger meets at an offset above 0 is an event, and with `hold` it waits for a person: the worker
that had it before may have sent its last records to another ledger.
"""

import harness
from harness import record, straight_and_killed


class Test(harness.Scenario):
    @straight_and_killed
    def test_Z_03_it_is_counted_and_told_once(self):
        self.serve()
        for offset in (40, 41, 39):
            self.assertEqual(self.send(offset).status, 200)
            self.between()
        self.send(0, "fresh")
        seen = self.events("partition.first_sight")
        self.assertEqual([(row["topic"], row["partition"], row["first"]) for row in seen], [("orders", 0, 40)])
        if not self.is_killed_between:
            self.assertEqual(self.proxy.metric("sinkonce_first_sight_total"), 1)

    @straight_and_killed
    def test_Z_03_held_it_waits_for_a_decision_and_nothing_is_sent(self):
        self.serve(FIRST_SIGHT="hold")
        self.assert_own(self.send(40), 503, "conflict", "conflict")
        self.between()
        self.assert_own(self.send(40), 503, "conflict", "conflict")
        self.assertEqual(self.send(0, "fresh").status, 200)
        self.assertEqual(self.applied(40), 0)
        (row,) = self.proxy.conflicts()
        self.assertEqual((row["kind"], row["topic"], row["offset"]), ("first-sight", "orders", 40))
        self.assertEqual(self.proxy.decide(row["id"], "new-topic")[0], 200)
        self.between()
        self.assertEqual((self.send(40).status, self.applied(40)), (200, 1))

    def test_Z_03_a_second_sidecar_beside_another_worker_notices_that_its_ledger_is_empty(self):
        self.serve()
        for offset in range(5):
            self.send(offset)
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 5)
        self.held()
        self.proxy.kill()
        running.result()
        self.target.clear()
        other = harness.sinkonce.Sinkonce(self.target.url, env={"SINKONCE_FIRST_SIGHT": "hold"})
        self.addCleanup(other.close)
        other.start()
        self.assertEqual(other.post("/in", record("orders", 0, 5))[0], 503)
        self.assertEqual(self.applied(5), 1)
        self.proxy.start()
        self.assertEqual(self.doubts(), ["orders/0/5"])


if __name__ == "__main__":
    harness.main()
