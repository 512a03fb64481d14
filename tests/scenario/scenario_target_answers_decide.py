#!/usr/bin/env python3
"""What the target's answer proves decides what becomes of a record: applied, free to be sent again, or in doubt."""

import harness
from harness import straight_and_killed

REFUSED = (301, 302, 307, 400, 401, 403, 404, 409, 413, 422, 429, 501, 503, 505)
UNKNOWN = (500, 502, 504, 507, 599)
BROKEN = (("request", "close"), ("request", "rst"), ("answer", "close"), ("answer", "rst"), ("status", "close"),
          ("status", "rst"), ("head", "close"), ("head", "rst"))


class Test(harness.Scenario):
    @straight_and_killed
    def test_A1_a_target_that_cannot_be_reached_leaves_no_state(self):
        self.serve()
        self.target.refuse()
        self.assert_own(self.send(1), 503, "refused", "target-unreachable")
        self.assertEqual(self.state(1), "absent")
        self.between()
        self.target.listen()
        self.assertEqual((self.send(1).status, self.applied(1), self.doubts()), (200, 1, []))

    def test_A1_a_name_that_is_unknown_leaves_no_state(self):
        self.serve(TARGET="http://nowhere.invalid:1", CONNECT_TIMEOUT="2s")
        self.assert_own(self.send(1), 503, "refused", "target-unreachable")
        self.assertEqual((self.state(1), self.doubts()), ("absent", []))

    def test_A1_tls_towards_a_plain_port_leaves_no_state(self):
        self.serve(TARGET="https://127.0.0.1:%d" % self.target.port)
        self.assert_own(self.send(1), 503, "refused", "target-unreachable")
        self.assertEqual((self.state(1), self.doubts(), self.applied(1)), ("absent", [], 0))

    @straight_and_killed
    def test_A2_a_time_out_after_the_send_is_in_doubt(self):
        self.serve(TARGET_TIMEOUT="300ms")
        self.target.set(cut="answer", end="stall", next=1)
        self.assert_own(self.send(1), 503, "in-doubt", "in-doubt")
        self.between()
        self.assertEqual(self.proxy.in_doubt()[0]["cause"], "timeout")
        self.assert_own(self.send(1), 503, "in-doubt", "in-doubt")
        self.assertEqual(self.applied(1), 1)

    @straight_and_killed
    def test_A3_C_10_whatever_breaks_off_before_a_whole_head_is_in_doubt_and_never_sent_again(self):
        self.serve()
        for offset, (cut, end) in enumerate(BROKEN):
            with self.subTest(cut=cut, end=end):
                self.send(1000 + offset)  # so that the connection is a used one
                self.target.set(cut=cut, end=end, next=1)
                answer = self.send(offset)
                self.target.clear()
                self.assert_own(answer, 503, "in-doubt", "in-doubt")
                self.between()
                self.assertEqual(self.state(offset), "in_doubt")
                self.assertLessEqual(self.applied(offset), 1)
        self.assertEqual(self.doubts(), sorted("orders/0/%d" % n for n in range(len(BROKEN))))
        self.assertEqual(self.proxy.metric("sinkonce_in_doubt_records"), len(BROKEN))

    def test_C_01_C_05_a_used_connection_that_dies_sends_nothing_twice(self):
        self.serve(WORKERS="1")
        for offset, (end, size) in enumerate((end, size) for end in ("close", "rst") for size in (0, 100000)):
            with self.subTest(end=end, size=size):
                self.send(1000 + offset)
                seen = self.target.stats()
                self.target.set(cut="answer", end=end, next=1)
                self.assertEqual(self.send(offset, pad="x" * size).outcome, "in-doubt")
                self.target.clear()
                now = self.target.stats()
                self.assertEqual((now["requests"] - seen["requests"], self.applied(offset)), (1, 1))

    def test_C_03_a_delete_with_an_empty_body_is_not_sent_twice_either(self):
        self.serve(WORKERS="1")
        names = {"x-kafka-topic": "orders", "x-kafka-partition": "0"}
        for offset, end in enumerate(("close", "rst")):
            self.send(1000 + offset)
            seen = self.target.stats()["requests"]
            self.target.set(cut="answer", end=end, next=1)
            status, _, _ = self.proxy.send("DELETE", "/in/7", None, {**names, "x-kafka-offset": str(offset)})
            self.target.clear()
            self.assertEqual((status, self.target.stats()["requests"] - seen), (503, 1))

    @straight_and_killed
    def test_A4_A5_a_status_that_proves_nothing_is_in_doubt(self):
        self.serve()
        for offset, status in enumerate(UNKNOWN):
            with self.subTest(status=status):
                self.target.set(status=status, next=1)
                self.assert_own(self.send(offset), 503, "in-doubt", "in-doubt")
                self.between()
                self.assertEqual(self.state(offset), "in_doubt")
        self.assertEqual({row["cause"] for row in self.proxy.in_doubt()}, {"status"})

    def test_A5_which_status_proves_what_can_be_set(self):
        self.serve(APPLIED_STATUS="200-299,409", NOT_APPLIED_STATUS="300-408,410-499,500,502-505")
        for offset, (status, state) in enumerate(((409, "applied"), (500, "absent"), (504, "absent"), (501, "in_doubt"))):
            with self.subTest(status=status):
                self.target.set(status=status, next=1)
                told = {"in_doubt": 503, "applied": 200}.get(state, status)  # applied is a success, whatever said so
                self.assertEqual(self.send(offset).status, told)
                self.assertEqual(self.state(offset), state)

    def test_A7_a_success_that_is_set_to_mean_not_applied_is_not_told_as_success(self):
        self.serve(APPLIED_STATUS="200", NOT_APPLIED_STATUS="201-499")
        for offset, status in enumerate((202, 204, 304)):
            with self.subTest(status=status):
                self.target.set(status=status, next=1)
                self.assert_own(self.send(offset), 503, "refused", "redirected")
                self.assertEqual(self.state(offset), "absent")

    @straight_and_killed
    def test_A7_a_refusal_goes_back_as_it_is_and_leaves_the_record_free(self):
        self.serve()
        for offset, status in enumerate(REFUSED):
            with self.subTest(status=status):
                self.target.set(status=status, body="why", header="Retry-After: 7\r\nLocation: /there", next=1)
                answer = self.send(offset)
                self.target.clear()
                if status // 100 == 3:  # some connectors count it as delivered
                    self.assert_own(answer, 503, "refused", "redirected")
                else:
                    self.assertEqual((answer.status, answer.body, answer.headers["retry-after"]), (status, b"why", "7"))
                self.assertEqual(self.state(offset), "absent")
                self.between()
                again = self.send(offset)
                self.assertEqual((again.status, again.is_replayed, self.applied(offset)), (200, False, 1))
        self.assertEqual(self.doubts(), [])

    def test_A6_a_whole_head_of_success_is_applied_however_the_body_ends(self):
        self.serve(TARGET_TIMEOUT="500ms")
        for offset, end in enumerate(("close", "rst", "stall")):
            self.target.set(cut="body", end=end, next=1, body="x" * 100)
            answer = self.send(offset)
            self.assertEqual((answer.status, answer.outcome, answer.body), (200, "applied", b""), end)
            self.assertEqual(self.state(offset), "applied")

    def test_unkeyed_writes_are_forwarded_or_refused_as_set(self):
        self.serve()
        self.assertEqual([self.proxy.post("/in", b'{"a":1}')[0] for _ in range(2)], [200, 200])
        self.assertEqual(self.target.stats()["applied"], 2)
        self.assert_metric("unkeyed_records_total", 2)
        self.restart(UNKEYED="reject")
        status, headers, _ = self.proxy.post("/in", b'{"a":1}')
        self.assertEqual((status, headers["sinkonce-outcome"], self.target.stats()["applied"]), (422, "unkeyed", 2))
        self.assertEqual(self.proxy.send("GET", "/in")[0], 200)

    def test_methods_that_write_nothing_are_always_forwarded(self):
        self.serve(UNKEYED="reject")
        names = {"x-kafka-topic": "orders", "x-kafka-partition": "0", "x-kafka-offset": "1"}
        for method in ("GET", "HEAD", "OPTIONS"):
            self.assertEqual([self.proxy.send(method, "/in", None, names)[0] for _ in range(2)], [200, 200])
        self.assertEqual((self.target.stats()["requests"], self.state(1)), (6, "absent"))


if __name__ == "__main__":
    harness.main()
