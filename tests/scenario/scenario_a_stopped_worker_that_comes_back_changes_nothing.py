#!/usr/bin/env python3
"""A worker that is stopped in the middle, replaced, and let go on does no harm: what it sends late is known by then, what the
target answers late is recorded, and what is held for one partition holds up no other.
"""

import signal

import harness
from harness import PATIENCE, Wire, post_bytes, record, wait_for


def batch(*offsets):
    return b"[" + b",".join(record("orders", 0, offset) for offset in offsets) + b"]"


class Test(harness.Scenario):
    def deliver(self, *offsets):
        return harness.Answer(*self.proxy.post("/in", batch(*offsets)))

    def test_Z_04_the_rest_of_a_request_that_comes_after_a_rebalance_is_a_duplicate(self):
        self.serve()
        late = post_bytes(batch(1, 2, 3))
        with Wire(self.proxy.port) as zombie:
            zombie.send(late[:-20])  # stopped here
            self.assertEqual([self.deliver(1, 2, 3).status, self.deliver(4).status], [200, 200])
            zombie.send(late[-20:])
            self.assertEqual(zombie.final().one("sinkonce-outcome"), "duplicate")
            zombie.send(post_bytes(batch(2, 3, 4, 5)))  # it does not know yet
            self.assertEqual(zombie.final().one("sinkonce-outcome"), "partial")
        self.assertEqual(self.deliver(5, 6).outcome, "partial")
        self.assertEqual([self.applied(offset) for offset in range(1, 7)], [1] * 6)

    def test_Z_04_an_answer_that_the_stopped_worker_never_reads_is_recorded_and_given_to_its_successor(self):
        self.serve(WAIT="20s")
        self.target.set(delay=800, next=1, status=201, body="created")
        with Wire(self.proxy.port) as zombie:
            zombie.send(post_bytes(record("orders", 0, 1)))
            self.held()
            answer = self.send(1)
            self.assertEqual((answer.status, answer.body, answer.outcome), (201, b"created", "duplicate"))
            self.assertEqual(zombie.final().status, 201)
        self.assertEqual((self.applied(1), self.state(1)), (1, "applied"))

    def test_Z_04_an_answer_that_comes_while_sinkonce_itself_is_stopped_is_recorded(self):
        self.serve(WAIT="20s")
        self.target.set(delay=300, next=1)
        first = self.later(self.send, 1)
        self.held()
        self.proxy.process.signal(signal.SIGSTOP)
        try:
            wait_for(lambda: not self.target.held(), "the answer of the target", PATIENCE)
            successor = self.later(self.send, 1)
        finally:
            self.proxy.process.signal(signal.SIGCONT)
        self.assertEqual([first.result().status, successor.result().status], [200, 200])
        self.assertEqual((self.applied(1), self.state(1), self.doubts()), (1, "applied", []))

    def test_Z_09_a_held_record_is_answered_within_the_workers_patience_and_other_partitions_go_on(self):
        self.serve(WAIT="1s", WORKERS="1")
        self.doubt(1)
        held = self.later(self.send, 1, timeout=PATIENCE)
        wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 1, "the held request", PATIENCE)
        self.assertEqual({self.send(offset, partition=1).status for offset in range(10)}, {200})
        self.assert_own(held.result(), 503, "in-doubt", "in-doubt")
        self.assertEqual(self.doubts(), ["orders/0/1"])


if __name__ == "__main__":
    harness.main()
