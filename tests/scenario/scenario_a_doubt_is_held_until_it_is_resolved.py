#!/usr/bin/env python3
"""A record of which nobody can know whether it was applied is listed, survives everything, and moves only by the
policy that was set, by a late answer, or by a person.
"""

import harness
from harness import PATIENCE, key, straight_and_killed, wait_for


class Test(harness.Scenario):
    def row_of(self, offset):
        rows = [row for row in self.proxy.in_doubt() if row["first"] <= offset <= row["last"]]
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def change(self, path, document):
        return self.proxy.admin("POST", path, document)

    # the states of C2, C3, C4 by a kill from outside; scenario_killed_at_each_step has them from inside

    def test_C3_F_04_a_kill_while_the_target_works_leaves_a_doubt_before_anybody_can_connect(self):
        self.serve()
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 1)
        self.held()
        self.proxy.kill()
        running.result()
        self.proxy.start()
        self.assertEqual(self.doubts(), ["orders/0/1"])
        self.assertEqual(self.row_of(1)["cause"], "crash")
        self.assert_own(self.send(1), 503, "in-doubt", "in-doubt")
        self.assertEqual(self.applied(1), 1)
        self.assertEqual(self.proxy.metrics()['sinkonce_in_doubt_total{cause="crash"}'], 1)

    @straight_and_killed
    def test_hold_keeps_it_until_a_person_says_applied(self):
        self.serve(IN_DOUBT="hold")
        self.doubt(1)
        for _ in range(3):
            self.between()
            answer = self.send(1)
            self.assert_own(answer, 503, "in-doubt", "in-doubt")
            self.assertEqual(answer.json()["records"], [{"topic": "orders", "partition": 0, "offset": 1}])
        self.assertEqual(self.change("/in-doubt/%s" % self.row_of(1)["id"], {"resolution": "applied", "reason": "seen"})[0], 200)
        self.between()
        answer = self.send(1)
        self.assertEqual((answer.status, answer.outcome, answer.is_replayed), (200, "duplicate", True))
        self.assertEqual((self.applied(1), self.doubts()), (1, []))

    @straight_and_killed
    def test_hold_keeps_it_until_a_person_says_not_applied(self):
        self.serve()
        self.target.set(cut="answer", end="rst", apply="no", next=1)
        self.send(1)
        self.target.clear()
        self.between()
        self.assertEqual(self.change("/in-doubt/%s" % self.row_of(1)["id"], {"resolution": "not-applied", "reason": "looked"})[0], 200)
        self.between()
        self.assertEqual(self.state(1), "absent")
        answer = self.send(1)
        self.assertEqual((answer.status, answer.is_replayed, self.applied(1)), (200, False, 1))

    def test_a_resolution_sets_free_a_request_that_waits_for_it(self):
        self.serve(WAIT="20s")
        self.doubt(1)
        running = self.later(self.send, 1)
        wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 1, "the request to wait", PATIENCE)
        self.change("/in-doubt/%s" % self.row_of(1)["id"], {"resolution": "applied", "reason": "seen"})
        self.assertTrue(running.result().is_replayed)

    @straight_and_killed
    def test_a_doubt_holds_up_its_own_record_only(self):
        self.serve()
        self.doubt(5)
        self.between()
        for offset in (4, 6, 7):
            self.assertEqual(self.send(offset).status, 200)
        self.assertEqual(self.doubts(), ["orders/0/5"])

    @straight_and_killed
    def test_retry_sends_it_again_and_counts_a_possible_duplicate(self):
        self.allowed_twice = ["orders/0/1"]
        self.serve(IN_DOUBT="retry")
        self.doubt(1)
        self.between()
        self.assertEqual(self.state(1), "in_doubt")
        answer = self.send(1)
        self.assertEqual((answer.status, answer.is_replayed, self.applied(1)), (200, False, 2))
        self.assert_metric("retried_records_total", 1)
        self.between()
        self.assertTrue(self.send(1).is_replayed)
        self.assertEqual((self.applied(1), self.doubts()), (2, []))

    def test_retry_with_a_key_gives_the_target_the_same_key_each_time(self):
        self.allowed_twice = ["orders/0/1"]
        self.serve(IN_DOUBT="retry", KEY_HEADER="Idempotency-Key")
        keys = []
        for _ in range(2):
            self.target.set(cut="answer", end="rst", next=1)
            self.send(1)
            head = self.target.last().partition(b"\r\n\r\n")[0].decode().split("\r\n")
            keys += [line for line in head if line.startswith("Idempotency-Key: ")]
        self.assertEqual(keys, ["Idempotency-Key: default/orders/0/1"] * 2)
        self.assertEqual(self.row_of(1)["attempts"], 2)
        self.target.clear()
        self.send(1)

    @straight_and_killed
    def test_assume_applied_drops_it_and_counts_a_possible_loss(self):
        self.serve(IN_DOUBT="assume-applied")
        self.target.set(cut="answer", end="rst", apply="no", next=1)
        self.send(1)
        self.target.clear()
        self.between()
        answer = self.send(1)
        self.assertEqual((answer.status, answer.outcome, self.applied(1)), (200, "duplicate", 0))
        self.assertEqual(self.state(1), "applied")
        if not self.is_killed_between:
            self.assert_metric('in_doubt_resolved_total{resolution="assume-applied"}', 1)

    @straight_and_killed
    def test_a_filter_resolves_many_when_the_count_is_right(self):
        self.serve()
        self.doubt(1, 2, 4)
        self.doubt(1, topic="other")
        self.doubt(9, partition=3)
        self.between()
        wrong = {"resolution": "applied", "reason": "seen", "topic": "orders", "partition": 0, "expect_count": 2}
        status, answer = self.change("/in-doubt", wrong)
        self.assertEqual((status, answer["error"], answer["count"]), (409, "count-mismatch", 3))
        self.assertEqual(len(self.doubts()), 5)
        self.assertEqual(self.change("/in-doubt", {**wrong, "expect_count": 3})[0], 200)
        self.between()
        self.assertEqual(self.doubts(), ["orders/3/9", "other/0/1"])
        self.assertTrue(self.send(4).is_replayed)
        narrow = {"resolution": "not-applied", "reason": "looked", "topic": "orders", "partition": 3, "from": 5, "to": 10}
        self.assertEqual(self.change("/in-doubt", {**narrow, "expect_count": 1})[0], 200)
        self.assertEqual(self.doubts(), ["other/0/1"])
        self.assertEqual(self.change("/in-doubt", {"resolution": "applied", "reason": "all", "expect_count": 1})[0], 200)
        self.assertEqual(self.doubts(), [])

    @straight_and_killed
    def test_more_doubts_than_allowed_stop_new_writes_and_nothing_else(self):
        self.serve(IN_DOUBT_MAX="2")
        self.send(50)
        self.doubt(1, 2, 3)
        self.between()
        self.assert_own(self.send(4), 503, "busy", "too-many-in-doubt")
        self.assertEqual((self.state(4), self.applied(4)), ("absent", 0))
        self.assertTrue(self.send(50).is_replayed)
        self.change("/in-doubt", {"resolution": "applied", "reason": "seen", "topic": "orders", "expect_count": 3})
        self.assertEqual(self.send(4).status, 200)

    def test_the_list_can_be_read_page_by_page_and_by_topic(self):
        self.serve()
        self.doubt(1, 3, 5, 7, 9)
        self.doubt(2, topic="other")
        status, page = self.proxy.admin("GET", "/in-doubt?limit=2")
        self.assertEqual((status, len(page["in_doubt"]), page["total"]), (200, 2, 6))
        seen = []
        while True:
            seen += [(row["topic"], row["first"]) for row in page["in_doubt"]]
            if page["next"] is None:
                break
            page = self.proxy.admin("GET", "/in-doubt?limit=2&after=%s" % page["next"])[1]
        self.assertEqual(sorted(seen), sorted([("orders", n) for n in (1, 3, 5, 7, 9)] + [("other", 2)]))
        self.assertEqual(self.proxy.doubt_keys("other"), ["other/0/2"])

    def test_what_happened_to_a_doubt_is_in_the_events_with_who_and_why(self):
        self.serve()
        self.doubt(1)
        self.change("/in-doubt/%s" % self.row_of(1)["id"], {"resolution": "applied", "reason": "row 17 of the ledger"})
        (entered,), (resolved,) = self.events("record.in_doubt"), self.events("record.resolved")
        self.assertEqual((entered["topic"], entered["first"], resolved["first"]), ("orders", 1, 1))
        self.assertIn("row 17 of the ledger", resolved["detail"])
        self.assertIn("127.0.0.1", resolved["detail"])

    @straight_and_killed
    def test_Z_11_a_record_that_is_not_applied_is_sent_when_it_comes_again_far_below_the_window(self):
        self.serve(WINDOW="65536")
        self.send(0)
        self.doubt(5, apply="no")
        for offset in range(60000, 360000, 60000):
            self.assertEqual(self.send(offset).status, 200)
        self.between()
        self.assertEqual(self.proxy.resolve(key("orders", 0, 5), False)[0], 200)
        self.between()
        self.assertEqual(self.send(360000).status, 200)  # which would fold the ground about it
        self.between()
        self.assertEqual((self.send(5).status, self.applied(5)), (200, 1))
        self.assertTrue(self.send(5).is_replayed)


if __name__ == "__main__":
    harness.main()
