#!/usr/bin/env python3
"""`observe` forwards everything and counts what it would have dropped; `off` is a plain proxy."""

import harness
from harness import straight_and_killed


class Test(harness.Scenario):
    is_journal_checked = False

    @straight_and_killed
    def test_Z_16_observe_forwards_duplicates_and_counts_them(self):
        self.serve(MODE="observe")
        for _ in range(3):
            self.between()
            answer = self.send(1)
            self.assertEqual((answer.status, answer.is_replayed, answer.outcome), (200, False, None))
        self.assertEqual(self.applied(1), 3)
        if not self.is_killed_between:
            self.assert_metric("would_drop_records_total", 2)

    def test_Z_16_observe_passes_every_answer_of_the_target_on(self):
        self.serve(MODE="observe")
        for offset, status in enumerate((201, 302, 404, 500, 502, 503, 504)):
            self.target.set(status=status, next=1)
            self.assertEqual(self.send(offset).status, status)

    def test_Z_16_observe_never_stops_for_its_notebook(self):
        self.serve(MODE="observe", IN_DOUBT_MAX="1", UNKEYED="reject", MAX_RECORDS="2")
        self.target.set(cut="answer", end="rst", next=3)
        for offset in range(3):
            self.assertEqual(self.send(offset).outcome, None)
        self.target.clear()
        for offset in range(6):
            self.assertEqual(self.send(offset).status, 200)
        self.assertEqual(self.proxy.post("/in", b"no coordinates")[0], 200)
        self.assertEqual(self.proxy.post("/in", b"".join(harness.record("orders", 0, n) for n in range(9)))[0], 200)

    @straight_and_killed
    def test_what_observe_saw_is_known_to_enforce(self):
        self.serve(MODE="observe")
        self.send(1)
        self.restart(MODE="enforce")
        self.assertTrue(self.send(1).is_replayed)
        self.assertEqual(self.applied(1), 1)

    def test_off_is_a_plain_proxy_and_says_so(self):
        self.serve(MODE="off")
        self.assertEqual([self.send(1).status for _ in range(2)], [200, 200])
        self.assertEqual((self.applied(1), self.state(1)), (2, "absent"))
        self.assertTrue(any("off" in text for text in self.proxy.admin("GET", "/status")[1]["warnings"]))


if __name__ == "__main__":
    harness.main()
