#!/usr/bin/env python3
"""On one connection requests are answered in their order, and none is begun before the one ahead of it has ended."""

import harness
from harness import PATIENCE, Wire, post_bytes, record, wait_for


class Test(harness.Scenario):
    def test_H_33_three_pipelined_writes_are_answered_in_order(self):
        self.serve()
        with Wire(self.proxy.port) as wire:
            wire.send(b"".join(post_bytes(record("orders", 0, n), path="/%d" % n) for n in (1, 2, 3)))
            for _ in (1, 2, 3):
                self.assertEqual(wire.final().status, 200)
        self.assertEqual([line[0] for line in self.target.lines()], ["orders/0/%d" % n for n in (1, 2, 3)])

    def test_H_33_R_28_the_next_is_not_begun_before_the_last_has_ended(self):
        self.serve()
        self.target.set(cut="answer", end="stall", key="orders/0/1$", next=1)
        with Wire(self.proxy.port) as wire:
            wire.send(post_bytes(record("orders", 0, 1)) + post_bytes(record("orders", 0, 2)))
            self.held()
            self.send(3)  # others go on, so there was time
            self.assertEqual((self.applied(2), self.state(2)), (0, "absent"))
            self.target.drop()
            self.assertEqual(wire.final().status, 503)
            self.assertEqual(wire.final().status, 200)
        self.assertEqual(self.doubts(), ["orders/0/1"])

    def test_H_33_a_refused_request_ends_the_row(self):
        self.serve()
        with Wire(self.proxy.port) as wire:
            wire.send(post_bytes(record("orders", 0, 1)) + b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nhello" +
                      post_bytes(record("orders", 0, 2)))
            self.assertEqual([wire.final().status, wire.final().status], [200, 400])
            self.assertEqual(wire.rest(), b"")
        self.assertEqual((self.applied(1), self.applied(2)), (1, 0))

    def test_a_hundred_pipelined_writes_are_answered_in_order(self):
        self.serve()
        with Wire(self.proxy.port) as wire:
            wire.send(b"".join(post_bytes(record("orders", 0, n)) for n in range(100)))
            self.assertEqual([wire.final().status for _ in range(100)], [200] * 100)
        self.assertEqual([line[0] for line in self.target.lines()], ["orders/0/%d" % n for n in range(100)])

    def test_requests_before_a_half_close_are_answered(self):
        self.serve()
        with Wire(self.proxy.port) as wire:
            wire.send(b"".join(post_bytes(record("orders", 0, n)) for n in (1, 2, 3)))
            wire.end_output()
            self.assertEqual([wire.final().status for _ in (1, 2, 3)], [200] * 3)
            self.assertTrue(wire.is_ended())

    def test_H_34_R_11_a_100_comes_before_the_body_and_expect_is_not_forwarded(self):
        self.serve()
        body = record("orders", 0, 1)
        whole = post_bytes(body, "Expect: 100-continue\r\n")
        with Wire(self.proxy.port) as wire:
            wire.send(whole[:-len(body)])
            self.assertEqual(wire.reply().status, 100)
            self.assertEqual(self.target.stats()["requests"], 0)
            wire.send(body)
            self.assertEqual(wire.reply().status, 200)
        self.assertNotIn(b"expect", self.target.last().lower())

    def test_H_34_a_body_that_is_already_here_needs_no_100(self):
        self.serve()
        with Wire(self.proxy.port) as wire:
            wire.send(post_bytes(record("orders", 0, 1), "Expect: 100-continue\r\n"))
            self.assertEqual(wire.final().status, 200)

    def test_H_34_a_head_that_is_refused_gets_no_100(self):
        self.serve()
        with Wire(self.proxy.port) as wire:
            wire.send(b"POST /in HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
            self.assertEqual(wire.reply().status, 413)
            self.assertTrue(wire.is_ended())

    def test_R_12_http_1_0_never_gets_a_100(self):
        self.serve()
        body = record("orders", 0, 1)
        whole = post_bytes(body, "Expect: 100-continue\r\n", version="1.0")
        with Wire(self.proxy.port) as wire:
            wire.send(whole[:-len(body)])
            wire.send(body)
            self.assertEqual(wire.reply().status, 200)

    def test_H_53_R_31_a_slow_reader_gets_the_whole_answer_of_an_error(self):
        self.serve()
        self.target.set(status=400, body="x" * 16000)
        with Wire(self.proxy.port, receive_bytes=2304) as wire:
            wire.send(post_bytes(record("orders", 0, 1), "Connection: close\r\n"))
            wait_for(lambda: self.state(1) == "absent" and self.proxy.metric("sinkonce_rejected_records_total") == 1,
                     "the answer of the target", PATIENCE)
            reply = wire.final()
            self.assertEqual((reply.status, len(reply.body)), (400, 16000))
            self.assertTrue(wire.is_ended())

    def test_H_53_a_refused_body_that_still_comes_does_not_lose_the_answer(self):
        self.serve()
        with Wire(self.proxy.port) as wire:
            wire.send(b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n")
            wire.send(b"x" * 500000)
            self.assertEqual(wire.final().status, 413)


if __name__ == "__main__":
    harness.main()
