#!/usr/bin/env python3
"""A record that the target has applied is never sent to it again, however often and however late it comes back."""

import email.utils

import harness
from harness import straight_and_killed


class Test(harness.Scenario):
    @straight_and_killed
    def test_C5_R_30_a_duplicate_gets_the_stored_answer_in_a_framing_of_today(self):
        self.serve()
        self.target.set(status=201, body='{"id":7}', header="Content-Type: application/json\r\nKeep-Alive: timeout=1\r\n"
                                                            "Set-Cookie: a=b\r\nDate: Mon, 01 Jan 2001 00:00:00 GMT")
        first = self.send(1)
        self.assertEqual((first.status, first.outcome, first.is_replayed), (201, None, False))
        self.between()
        for _ in range(3):
            again = self.send(1)
            self.assertEqual((again.status, again.body), (201, b'{"id":7}'))
            self.assertEqual((again.outcome, again.is_replayed), ("duplicate", True))
            self.assertEqual(again.headers["content-type"], "application/json")
            self.assertFalse(set(again.headers) & {"keep-alive", "set-cookie", "transfer-encoding", "connection"})
            self.assertGreater(email.utils.parsedate_to_datetime(again.headers["date"]).year, 2001)
            self.between()
        self.assertEqual(self.applied(1), 1)

    def test_the_first_answer_says_what_became_of_it(self):
        self.serve()
        self.assertEqual(self.send(1).status, 200)
        self.assert_metric("applied_records_total", 1)
        self.send(1)
        self.assert_metric("duplicate_records_total", 1)
        self.assert_metric("records_total", 2)

    @straight_and_killed
    def test_C5_without_a_stored_answer_a_success_with_an_empty_body_is_made(self):
        self.serve(REPLIES="0", DUPLICATE_STATUS="204")
        self.send(1)
        self.between()
        again = self.send(1)
        self.assertEqual((again.status, again.body, again.outcome, again.is_replayed), (204, b"", "duplicate", True))

    @straight_and_killed
    def test_C5_an_answer_too_long_to_keep_is_not_kept_cut(self):
        self.serve(REPLY_BYTES="8B")
        self.target.set(status=201, body="123456789")
        self.send(1)
        self.between()
        again = self.send(1)
        self.assertEqual((again.status, again.body), (200, b""))
        self.target.set(status=201, body="12345678")
        self.send(2)
        self.between()
        self.assertEqual((self.send(2).status, self.send(2).body), (201, b"12345678"))

    def test_C5_the_oldest_answers_make_room_and_stay_duplicates(self):
        self.serve(REPLIES="10")
        self.target.set(status=201, body="kept")
        for offset in range(40):
            self.send(offset)
        self.assertEqual((self.send(39).status, self.send(39).body), (201, b"kept"))
        oldest = self.send(0)
        self.assertEqual((oldest.status, oldest.body, oldest.outcome), (200, b"", "duplicate"))
        self.assertEqual(self.target.stats()["duplicates"], 0)

    @straight_and_killed
    def test_C6_Z_11_a_whole_history_that_comes_back_is_dropped(self):
        self.serve()
        for offset in range(60):
            self.send(offset)
        self.between()
        for offset in range(60):
            self.assertTrue(self.send(offset).is_replayed, offset)
        self.between()
        self.assertEqual((self.target.stats()["applied"], self.target.stats()["duplicates"]), (60, 0))
        row = self.proxy.admin("GET", "/partitions?topic=orders")[1]["partitions"][0]
        self.assertEqual((row["lowest"], row["highest"], row["intervals"], row["gaps"]), (0, 59, 1, 0))

    @straight_and_killed
    def test_Z_07_gaps_and_jumps_are_kept_exactly(self):
        self.serve()
        applied = [5, 3, 9, 100, 101, 4, 70000, 70002, 65535, 65536, 4999999, 0]
        for offset in applied:
            self.assertEqual(self.send(offset).status, 200)
            self.between()
        for offset in applied:
            self.assertTrue(self.send(offset).is_replayed, offset)
        for offset in (1, 2, 6, 8, 10, 99, 102, 65534, 65537, 70001, 4999998):
            self.assertEqual(self.state(offset), "absent")
            answer = self.send(offset)
            self.assertEqual((answer.status, answer.is_replayed, self.applied(offset)), (200, False, 1), offset)

    def test_Z_07_the_ends_of_the_number_range_are_records_like_others(self):
        self.serve()
        top = {"x-kafka-topic": "a" * 249, "x-kafka-partition": str(2**31 - 1), "x-kafka-offset": str(2**63 - 1)}
        for _ in range(2):
            self.assertEqual(self.proxy.post("/in", b"x", top)[0], 200)
        self.assertEqual(self.target.stats()["applied"], 1)
        for name, value in (("x-kafka-partition", str(2**31)), ("x-kafka-offset", str(2**63)), ("x-kafka-offset", "-1"),
                            ("x-kafka-offset", "01"), ("x-kafka-offset", "1.0"), ("x-kafka-topic", "a" * 250)):
            self.proxy.post("/in", b"x", {**top, name: value})
        self.assert_metric("unkeyed_records_total", 6)

    def test_topics_and_partitions_are_apart(self):
        self.serve()
        for topic in ("orders", "orders.v2", "o-1_2.3"):
            for partition in (0, 1, 17):
                self.assertFalse(self.send(1, topic, partition).is_replayed)
                self.assertTrue(self.send(1, topic, partition).is_replayed)
        self.assertEqual(self.target.stats()["applied"], 9)

    @straight_and_killed
    def test_the_answers_speak_the_dialects_of_splunk(self):
        self.serve(REPLIES="0")
        body = b'{"event":"x","fields":{"kafka_topic":"orders","kafka_partition":"0","kafka_offset":"1"}}'
        self.assertEqual(self.proxy.post("/services/collector/event", body)[0], 200)
        self.between()
        status, headers, answer = self.proxy.post("/services/collector/event", body)
        self.assertEqual((status, harness.sinkonce.json.loads(answer)), (200, {"text": "Success", "code": 0}))
        self.assertEqual(headers["sinkonce-outcome"], "duplicate")


if __name__ == "__main__":
    harness.main()
