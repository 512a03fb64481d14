#!/usr/bin/env python3
"""A connector that leaves does not end the exchange: it is finished, recorded, and the next delivery gets its answer."""

import harness
from harness import PATIENCE, Wire, post_bytes, record, straight_and_killed, wait_for


class Test(harness.Scenario):
    def leave_in_the_middle(self, offset, leave):
        """Send a write, leave while the target works on it, let the target go on."""
        self.target.set(delay=1000, next=1, status=201, body="created")
        wire = Wire(self.proxy.port)
        wire.send(post_bytes(record("orders", 0, offset)))
        self.held()
        leave(wire)
        wait_for(lambda: self.state(offset) == "applied", "the late answer to be recorded", PATIENCE)
        self.target.clear()

    @straight_and_killed
    def test_H_50_D1_a_reset_after_sending_is_applied_once_and_the_retry_gets_the_stored_answer(self):
        self.serve()
        self.leave_in_the_middle(1, Wire.reset)
        self.between()
        again = self.send(1)
        self.assertEqual((again.status, again.body, again.outcome, again.is_replayed), (201, b"created", "duplicate", True))
        self.assertEqual(self.applied(1), 1)

    @straight_and_killed
    def test_H_50_D1_a_close_after_sending_does_not_end_the_exchange_either(self):
        self.serve()
        self.leave_in_the_middle(1, lambda wire: wire.socket.close())
        self.between()
        self.assertTrue(self.send(1).is_replayed)
        self.assertEqual(self.applied(1), 1)

    def test_D1_a_reset_is_counted(self):
        self.serve()
        self.leave_in_the_middle(1, Wire.reset)
        self.assert_metric('client_aborts_total{phase="waiting"}', 1)

    def test_D1_a_connector_that_leaves_before_its_request_is_whole_leaves_nothing_behind(self):
        self.serve()
        wire = Wire(self.proxy.port)
        wire.send(post_bytes(record("orders", 0, 1))[:-1])
        wait_for(lambda: self.proxy.metric("sinkonce_http_body_bytes") > 0, "the body to begin", PATIENCE)
        wire.reset()
        self.assert_metric('client_aborts_total{phase="reading"}', 1)
        self.assertEqual((self.target.stats()["requests"], self.state(1)), (0, "absent"))

    def test_D1_a_connector_that_leaves_while_it_waits_for_another_flight_leaves_nothing_behind(self):
        self.serve(WAIT="20s")
        self.target.set(delay=1000, next=1)
        first = self.later(self.send, 1)
        self.held()
        wire = Wire(self.proxy.port)
        wire.send(post_bytes(record("orders", 0, 1)))
        wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 2, "the second to wait", PATIENCE)
        wire.reset()
        self.assertEqual(first.result().status, 200)
        wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 0, "both to end", PATIENCE)
        self.assertEqual(self.applied(1), 1)

    @straight_and_killed
    def test_D2_a_second_delivery_in_flight_joins_the_first_and_gets_the_same_answer(self):
        self.serve(WAIT="20s")
        self.target.set(delay=1000, next=1, status=202, body="taken")
        first = self.later(self.send, 1)
        self.held()
        others = [self.later(self.send, 1) for _ in range(5)]
        answers = [call.result() for call in [first] + others]
        self.assertEqual([(a.status, a.body) for a in answers], [(202, b"taken")] * 6)
        self.assertEqual([a.is_replayed for a in answers], [False] + [True] * 5)
        self.between()
        self.assertEqual((self.send(1).status, self.applied(1)), (202, 1))

    def test_D2_a_delivery_that_cannot_wait_longer_gets_503_and_never_a_4xx(self):
        self.serve(WAIT="100ms")
        self.target.set(cut="answer", end="stall", next=1)
        first = self.later(self.send, 1)
        self.held()
        self.assert_own(self.send(1), 503, "busy", "in-flight")
        self.target.drop()
        self.assertEqual(first.result().outcome, "in-doubt")
        self.assertEqual(self.applied(1), 1)

    def test_D2_when_the_first_is_refused_one_of_those_that_wait_is_sent(self):
        self.serve(WAIT="20s")
        self.target.set(delay=1000, next=1, status=503, apply="no")
        first = self.later(self.send, 1)
        self.held()
        others = [self.later(self.send, 1) for _ in range(3)]
        wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 4, "three to wait", PATIENCE)
        self.assertEqual(first.result().status, 503)
        self.assertEqual([call.result().status for call in others], [200] * 3)
        self.assertEqual(self.applied(1), 1)


if __name__ == "__main__":
    harness.main()
