#!/usr/bin/env python3
"""sinkonce kills itself at each step of a batch of which a part is known.  After the restart the new records are together
absent, in doubt or applied, the known ones stay so, and each takes effect once, however the batch comes back.

Needs the program with failpoints: SINKONCE_FAILPOINTS_BIN.
"""

import batches
import failpoints
from batches import BatchScenario, record
from harness import PATIENCE

PAD = "x" * 200000  # so that there is a middle of the sending
OFFSETS, KNOWN, NEW = range(10, 15), (11, 13), (10, 12, 14)


class Test(failpoints.Mortal, BatchScenario):
    def some(self, offsets):
        return [record(offset, pad=PAD) for offset in offsets]

    def die_and_recover(self, shape, point, is_applied, state):
        name, build, path, settings = shape
        self.serve(**settings)
        self.assertEqual(self.deliver(build(self.some(KNOWN)), path).status, 200)
        self.die_at(point, self.deliver, build(self.some(OFFSETS)), path)
        self.assertEqual(self.states(*NEW), [state] * 3)
        self.assertEqual(self.states(*KNOWN), ["applied"] * 2)
        batches.wait_for(lambda: sum(self.applied(offset) for offset in NEW) == is_applied * len(NEW), "the target", PATIENCE)
        self.assertEqual(len(self.doubts()), 3 if state == "in_doubt" else 0)
        answer = self.deliver(build(self.some(OFFSETS)), path)
        self.assertEqual(answer.outcome, {"absent": "partial", "in_doubt": "in-doubt", "applied": "duplicate"}[state], answer)
        for doubt in self.doubts():
            self.assertEqual(self.proxy.resolve(doubt, is_applied)[0], 200)
        for cut in ((9, 10, 11), (12,), (13, 14, 15), OFFSETS):
            self.assertEqual(self.deliver(build(self.some(cut)), path).status, 200)
        self.assertEqual([self.applied(offset) for offset in range(9, 16)], [1] * 7)
        self.assertEqual(self.doubts(), [])

    def test_F_06_a_split_batch_that_dies_after_its_first_result_keeps_it(self):
        self.serve(SPLIT="record")
        some = [record(offset) for offset in NEW]
        self.die_at("after_result", self.deliver, batches.array(some), "/in")
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
            self.die_at("after_response", self.deliver, batches.array(some[0::2]), "/in")
            self.assertEqual(self.deliver(batches.array(some)).status, 200)
            self.assertEqual([self.applied(offset, topic) for offset in OFFSETS], [count, 1, count, 1, count])


for shape in batches.SHAPES:
    failpoints.add_tests(Test, "die_and_recover", shape, name=shape[0] + "_")


if __name__ == "__main__":
    batches.main()
