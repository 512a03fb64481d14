"""The two-minute drill: what happened, what the operator knows, and what must be true when it is over.

Five records of one topic go to the target, whose connections are reset: it has applied three of them and not the other
two, and one more of another topic, which it has.  Nobody but the target can say so.  The operator, woken by the alert
on sinkonce_in_doubt_records, finds out what is in doubt and why, looks into the target, and says what is there.  How it
is said is the business of each drill: by the command line alone, by curl alone.  A drill counts its steps.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import harness  # noqa: E402
from harness import key  # noqa: E402

APPLIED = [("orders", 0, 11), ("orders", 0, 12), ("orders", 0, 13), ("bills", 4, 9007199254740993)]
NOT_APPLIED = [("orders", 0, 21), ("orders", 0, 22)]
STEPS_MAX = 7


class Drill(harness.Scenario):
    def setUp(self):
        super().setUp()
        self.steps = []

    def cause(self):
        """Doubts, and the alert."""
        self.serve()
        for topic, partition, offset in APPLIED + NOT_APPLIED:
            is_applied = (topic, partition, offset) in APPLIED
            self.target.set(cut="answer", end="rst", next=1, **({} if is_applied else {"apply": "no"}))
            answer = self.send(offset, topic, partition)
            self.assertEqual((answer.status, answer.outcome), (503, "in-doubt"))
        self.target.clear()
        self.assertEqual(self.proxy.metric("sinkonce_in_doubt_records"), len(APPLIED + NOT_APPLIED))

    def look_into_the_target(self, topic, partition, offset):
        """The operator's own means: a query in the target's database."""
        return self.target.count(key(topic, partition, offset)) == 1

    def step(self, what):
        self.steps.append(what)

    def check_over(self):
        """The alert is off, and what the connector delivers again is answered, each record applied once."""
        self.assertEqual(self.proxy.metric("sinkonce_in_doubt_records"), 0)
        for topic, partition, offset in APPLIED + NOT_APPLIED:
            answer = self.send(offset, topic, partition)
            is_applied = (topic, partition, offset) in APPLIED
            self.assertEqual((answer.status, answer.outcome), (200, "duplicate" if is_applied else None), answer)
            self.assertEqual(self.applied(offset, topic, partition), 1)
        events = [row for row in self.events("record.resolved") if "look into the target" in row["detail"]]
        self.assertGreater(len(events), 0)
        print("\n".join("  %d  %s" % step for step in enumerate(self.steps, 1)), flush=True)
        self.assertLessEqual(len(self.steps), STEPS_MAX)
