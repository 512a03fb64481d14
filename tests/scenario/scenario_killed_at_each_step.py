#!/usr/bin/env python3
"""sinkonce kills itself at each step of an exchange.  After the restart the checker finds no record applied twice, none
lost, and in doubt exactly what nobody can know.

Needs the program with failpoints: SINKONCE_FAILPOINTS_BIN.
"""

import os
import subprocess
import unittest

import harness
from harness import checker, key, record, sinkonce

# point, id of the crash row, what the target has of the record, its state after the restart
POINTS = [
    ("before_intent", "C1 F-01", 0, "absent"),
    ("after_intent", "C2 F-02", 0, "in_doubt"),
    ("mid_send", "C3 F-03", 0, "in_doubt"),
    ("after_send", "C3 F-04", 1, "in_doubt"),
    ("after_response", "C4 F-05", 1, "in_doubt"),
    ("after_result", "C5 F-06", 1, "applied"),
    ("before_reply", "C5 F-07", 1, "applied"),
]
BINARY = os.environ.get("SINKONCE_FAILPOINTS_BIN")
BIG = "x" * 300000  # so that there is a middle of the sending


@unittest.skipUnless(BINARY, "SINKONCE_FAILPOINTS_BIN is not set")
class Test(harness.Scenario):
    def setUp(self):
        super().setUp()
        self.acked, self.produced = [], {}

    def serve(self, **settings):
        os.environ["SINKONCE_BIN"], plain = BINARY, os.environ["SINKONCE_BIN"]
        try:
            super().serve(**settings)
        finally:
            os.environ["SINKONCE_BIN"] = plain

    def deliver(self, offset, pad=""):
        """A delivery of the connector; None: it was never answered."""
        body = record("orders", 0, offset, pad=pad)
        self.produced[key("orders", 0, offset)] = sinkonce.journal_hash(body)
        answer = self.later(self.send, offset, pad=pad).result()
        if answer is not None and answer.status // 100 == 2:
            self.acked.append(key("orders", 0, offset))
        return answer

    def die_at(self, point, offset):
        os.environ["FAILPOINT"] = point + ":abort"
        self.addCleanup(os.environ.pop, "FAILPOINT", None)
        self.proxy.kill()
        self.proxy.start()
        self.assertIsNone(self.deliver(offset, BIG), "the connection ends without an answer")
        self.assertEqual(self.proxy.process.wait(), -9)
        del os.environ["FAILPOINT"]
        self.proxy.start()

    def check(self, exact_doubts, allow_twice=()):
        journal = [line[:2] for line in self.target.lines()]
        report = checker.check(journal, self.produced, self.acked, self.doubts(), exact_doubts, allow_twice)
        self.assertTrue(report.is_good, "\n".join(report.lines()))

    def die_and_recover(self, point, applied, state):
        self.serve()
        for offset in range(5):
            self.deliver(offset)
        self.die_at(point, 5)
        doubtful = [key("orders", 0, 5)] if state == "in_doubt" else []
        self.assertEqual((self.applied(5), self.state(5), self.doubts()), (applied, state, doubtful))
        again = self.deliver(5, BIG)
        self.assertEqual(again.outcome, {"absent": None, "in_doubt": "in-doubt", "applied": "duplicate"}[state])
        if doubtful:  # the person looks at the target
            self.assertEqual(self.proxy.resolve(doubtful[0], applied > 0)[0], 200)
            self.assertEqual(self.deliver(5, BIG).status, 200)
        for offset in range(7):
            self.assertEqual(self.deliver(offset, BIG if offset == 5 else "").status, 200)
        self.check([])
        self.assertEqual(self.applied(5), 1)

    def test_F_02_F_04_the_policy_retry_sends_again_what_a_kill_left_in_doubt(self):
        self.allowed_twice = [key("orders", 0, 5)]
        self.serve(IN_DOUBT="retry")
        for point, applied in (("after_intent", 0), ("after_response", 1)):
            with self.subTest(point):
                offset = 5 + applied
                self.allowed_twice = [key("orders", 0, 6)]
                self.die_at(point, offset)
                self.assertEqual(self.deliver(offset, BIG).status, 200)
                self.assertEqual(self.applied(offset), applied + 1)
        self.check([], self.allowed_twice)

    def test_F_04_the_policy_assume_applied_drops_what_a_kill_left_in_doubt(self):
        self.serve(IN_DOUBT="assume-applied")
        self.die_at("after_response", 5)
        self.assertTrue(self.deliver(5, BIG).is_replayed)
        self.check([])

    def test_F_06_the_stored_answer_is_given_after_a_kill_before_the_reply(self):
        self.serve()
        self.target.set(status=201, body="created")
        self.die_at("before_reply", 5)
        again = self.deliver(5, BIG)
        self.assertEqual((again.status, again.body, again.is_replayed), (201, b"created", True))

    def test_F_01_to_F_07_a_kill_at_a_random_commit_of_many_exchanges(self):
        self.serve(WORKERS="2")
        for round_number, (point, _, _, _) in enumerate(POINTS):
            os.environ["FAILPOINT"] = point + ":abort"
            self.proxy.kill()
            self.proxy.start()
            running = [self.later(self.deliver, round_number * 100 + n, "x" * 70000) for n in range(12)]
            for call in running:
                call.result()
            self.assertEqual(self.proxy.process.wait(), -9)
            os.environ.pop("FAILPOINT")
        self.proxy.start()
        for doubt in self.doubts():
            self.assertEqual(self.proxy.resolve(doubt, self.target.count(doubt) > 0)[0], 200)
        for record_key in list(self.produced):
            self.assertEqual(self.deliver(int(record_key.rpartition("/")[2]), "x" * 70000).status, 200)
        self.check([])


def one_test(point, applied, state):
    return lambda self: self.die_and_recover(point, applied, state)


for point_, row_, applied_, state_ in POINTS:
    name_ = "test_%s_killed_%s_it_is_%s" % (row_.replace(" ", "_").replace("-", "_"), point_, state_)
    setattr(Test, name_, one_test(point_, applied_, state_))


class Control(unittest.TestCase):
    @staticmethod
    def strings_of(binary):
        return subprocess.run(["strings", "-a", binary], stdout=subprocess.PIPE, text=True).stdout.split("\n")

    def test_the_program_for_users_holds_no_failpoint(self):
        strings = self.strings_of(os.environ["SINKONCE_BIN"])
        found = [text for text in strings if text in [point for point, _, _, _ in POINTS] + ["FAILPOINT"]]
        if "failpoint_hit" in strings:
            self.skipTest("the whole build has failpoints")
        self.assertEqual(found, [])

    @unittest.skipUnless(BINARY, "SINKONCE_FAILPOINTS_BIN is not set")
    def test_the_program_with_failpoints_holds_all_of_them(self):
        strings = self.strings_of(BINARY)
        self.assertEqual([point for point, _, _, _ in POINTS if point not in strings], [])


if __name__ == "__main__":
    harness.main()
