#!/usr/bin/env python3
"""sinkonce kills itself at each step of a batch of which a part is known.  After the restart the new records are together
absent, in doubt or applied, the known ones stay so, and each takes effect once, however the batch comes back.

Needs the program with failpoints: SINKONCE_FAILPOINTS_BIN.
"""

import os
import unittest

import batches
from batches import BatchScenario, record

# point, id of the crash row, how many of the new records the target has, their state after the restart
POINTS = [
    ("before_intent", "C1 F-01", 0, "absent"),
    ("after_intent", "C2 F-02", 0, "in_doubt"),
    ("mid_send", "C3 F-03", 0, "in_doubt"),
    ("after_send", "C3 F-04", 3, "in_doubt"),
    ("after_response", "C4 F-05", 3, "in_doubt"),
    ("after_result", "C5 F-06", 3, "applied"),
    ("before_reply", "C5 F-07", 3, "applied"),
]
BINARY = os.environ.get("SINKONCE_FAILPOINTS_BIN")
PAD = "x" * 200000  # so that there is a middle of the sending
OFFSETS, KNOWN, NEW = range(10, 15), (11, 13), (10, 12, 14)


@unittest.skipUnless(BINARY, "SINKONCE_FAILPOINTS_BIN is not set")
class Test(BatchScenario):
    def serve(self, **settings):
        os.environ["SINKONCE_BIN"], plain = BINARY, os.environ["SINKONCE_BIN"]
        try:
            super().serve(**settings)
        finally:
            os.environ["SINKONCE_BIN"] = plain

    def some(self, offsets):
        return [record(offset, pad=PAD) for offset in offsets]

    def die_at(self, point, body, path):
        os.environ["FAILPOINT"] = point + ":abort"
        self.addCleanup(os.environ.pop, "FAILPOINT", None)
        self.proxy.kill()
        self.proxy.start()
        self.assertIsNone(self.later(self.deliver, body, path).result(), "the connection ends without an answer")
        self.assertEqual(self.proxy.process.wait(), -9)
        del os.environ["FAILPOINT"]
        self.proxy.start()

    def die_and_recover(self, shape, point, applied, state):
        name, build, path, settings = shape
        self.serve(**settings)
        self.assertEqual(self.deliver(build(self.some(KNOWN)), path).status, 200)
        self.die_at(point, build(self.some(OFFSETS)), path)
        self.assertEqual(self.states(*NEW), [state] * 3)
        self.assertEqual(self.states(*KNOWN), ["applied"] * 2)
        batches.wait_for(lambda: sum(self.applied(offset) for offset in NEW) == applied, "the target", 20)
        self.assertEqual(len(self.doubts()), 3 if state == "in_doubt" else 0)
        answer = self.deliver(build(self.some(OFFSETS)), path)
        self.assertEqual(answer.outcome, {"absent": "partial", "in_doubt": "in-doubt", "applied": "duplicate"}[state], answer)
        for doubt in self.doubts():
            self.assertEqual(self.proxy.resolve(doubt, applied > 0)[0], 200)
        for cut in ((9, 10, 11), (12,), (13, 14, 15), OFFSETS):
            self.assertEqual(self.deliver(build(self.some(cut)), path).status, 200)
        self.assertEqual([self.applied(offset) for offset in range(9, 16)], [1] * 7)
        self.assertEqual(self.doubts(), [])

    def test_F_06_a_split_batch_that_dies_after_its_first_result_keeps_it(self):
        self.serve(SPLIT="record")
        some = [record(offset) for offset in NEW]
        self.die_at("after_result", batches.array(some), "/in")
        self.assertEqual(self.states(*NEW)[0], "applied")
        self.assertEqual(self.applied(NEW[0]), 1)
        for doubt in self.doubts():
            self.proxy.resolve(doubt, self.target.count(doubt) > 0)
        self.assertEqual(self.deliver(batches.array(some)).status, 200)
        self.assertEqual([self.applied(offset) for offset in NEW], [1] * 3)

    def test_F_04_policies_settle_what_a_kill_left_of_a_batch(self):
        self.allowed_twice = [batches.key("again", 0, offset) for offset in NEW]
        self.serve()
        for policy, topic, count in (("assume-applied", "assumed", 1), ("retry", "again", 2)):
            some = [record(offset, topic, pad=PAD) for offset in OFFSETS]
            self.proxy.settings["SINKONCE_IN_DOUBT"] = policy
            self.die_at("after_response", batches.array(some[0::2]), "/in")
            self.assertEqual(self.deliver(batches.array(some)).status, 200)
            self.assertEqual([self.applied(offset, topic) for offset in OFFSETS], [count, 1, count, 1, count])


def one_test(shape, point, applied, state):
    return lambda self: self.die_and_recover(shape, point, applied, state)


for shape_ in batches.SHAPES:
    for point_, row_, applied_, state_ in POINTS:
        setattr(Test, "test_%s_%s_killed_%s_it_is_%s" % (row_.replace(" ", "_").replace("-", "_"), shape_[0], point_, state_),
                one_test(shape_, point_, applied_, state_))


if __name__ == "__main__":
    batches.main()
