#!/usr/bin/env python3
"""Coordinates alone do not prove that it is the same record: other records at old coordinates stop the partition until
a person says what they are; nothing of them is dropped and nothing is sent.
"""

import harness
from harness import straight_and_killed


class Test(harness.Scenario):
    settings = {"IDENTITY": "body"}

    def fill(self, count, life, topic="orders"):
        for offset in range(count):
            self.assertEqual(self.send(offset, topic, life=life).status, 200)

    def the_conflict(self):
        rows = self.proxy.conflicts()
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def decide(self, decision):
        status, answer = self.proxy.decide(self.the_conflict()["id"], decision)
        self.assertEqual(status, 200, answer)

    @straight_and_killed
    def test_Z_01_a_topic_created_again_stops_whatever_the_length_of_its_new_life(self):
        self.serve()
        for topic, count in (("shorter", 2), ("equal", 5), ("longer", 8)):
            with self.subTest(topic):
                self.fill(5, 1, topic)
                self.between()
                sent = self.target.stats()["writes"]
                for offset in range(count):
                    self.assert_own(self.send(offset, topic, life=2), 503, "conflict", "conflict")
                    self.between()
                self.assertEqual(self.target.stats()["writes"], sent)
                row = [row for row in self.proxy.conflicts() if row["topic"] == topic][0]
                self.assertEqual((row["offset"], row["kind"]), (0, "identity"))
                status, _ = self.proxy.decide(row["id"], "new-topic")
                self.assertEqual(status, 200)
                self.between()
                for offset in range(count):
                    answer = self.send(offset, topic, life=2)
                    self.assertEqual((answer.status, answer.is_replayed), (200, False))
                self.assertTrue(self.send(0, topic, life=2).is_replayed)
        self.allowed_twice = ["%s/0/%d" % (topic, n) for topic in ("shorter", "equal", "longer") for n in range(8)]

    def check_journal(self):
        """Two lives of a topic have the same keys with other bodies: each body once."""
        lines = [line[:2] for line in self.target.lines()]
        self.assertEqual(len(lines), len(set(lines)), "a record of one life took effect twice")

    @straight_and_killed
    def test_Z_02_another_record_at_the_same_offset_of_a_cut_log_stops_the_partition(self):
        self.serve()
        self.fill(10, 1)
        self.between()
        self.assertTrue(self.send(6, life=1).is_replayed)
        self.assert_own(self.send(7, life=2), 503, "conflict", "conflict")
        self.assertEqual(self.the_conflict()["offset"], 7)
        self.between()
        self.assert_own(self.send(10, life=2), 503, "conflict", "conflict")  # the partition waits as a whole
        self.assertEqual(self.send(0, "other").status, 200)
        self.assertEqual((self.applied(7), self.applied(10)), (1, 0))

    @straight_and_killed
    def test_Z_08_a_body_that_changed_on_its_way_can_be_called_the_same_record(self):
        self.serve()
        self.fill(3, 1)
        self.assertEqual(self.send(1, life=2).outcome, "conflict")
        self.between()
        self.decide("same")
        self.between()
        self.assertTrue(self.send(1, life=2).is_replayed)
        self.assertEqual((self.send(3, life=1).status, self.applied(1)), (200, 1))

    def test_Z_08_with_identity_off_coordinates_alone_decide(self):
        self.serve(IDENTITY="off")
        self.fill(3, 1)
        answer = self.send(1, life=2)
        self.assertEqual((answer.status, answer.outcome, self.applied(1)), (200, "duplicate", 1))

    def test_Z_08_a_delete_that_comes_again_is_not_sent_to_a_404(self):
        self.serve(IDENTITY="auto")
        names = {"x-kafka-topic": "orders", "x-kafka-partition": "0", "x-kafka-offset": "1"}
        self.assertEqual(self.proxy.send("DELETE", "/in/7", None, names)[0], 200)
        self.target.set(status=404)
        status, headers, _ = self.proxy.send("DELETE", "/in/7", None, names)
        self.assertEqual((status, headers["sinkonce-outcome"]), (200, "duplicate"))

    @straight_and_killed
    def test_Z_02_a_timestamp_tells_records_apart_and_lets_a_changed_body_pass(self):
        self.serve(IDENTITY="auto")
        self.assertEqual(self.send(1, __timestamp=1700000000000, clock=1).status, 200)
        self.between()
        self.assertTrue(self.send(1, __timestamp=1700000000000, clock=2).is_replayed)
        self.between()
        self.assertEqual(self.send(1, __timestamp=1700000000001, clock=1).outcome, "conflict")

    @straight_and_killed
    def test_Z_01_a_doubt_meets_another_record_too(self):
        self.serve()
        self.send(0, life=1)
        self.doubt(1, life=1)
        self.between()
        self.assertEqual(self.send(1, life=2).outcome, "conflict")
        self.assertEqual(self.applied(1), 1)

    def test_Z_01_a_recreated_topic_is_noticed_by_its_first_record_long_after(self):
        self.serve(MARKS="16")
        self.fill(120, 1)
        self.assert_own(self.send(0, life=2), 503, "conflict", "conflict")

    def test_a_conflict_is_counted_and_an_event(self):
        self.serve()
        self.fill(1, 1)
        self.send(0, life=2)
        self.send(0, life=2)
        self.assert_metric("conflict_records_total", 2)
        self.assertEqual(len(self.events("record.conflict")), 1)
        self.assertTrue(any("conflict" in text for text in self.proxy.admin("GET", "/status")[1]["warnings"]))
        self.decide("new-topic")
        self.assertEqual(len(self.events("record.decided")), 1)


if __name__ == "__main__":
    harness.main()
