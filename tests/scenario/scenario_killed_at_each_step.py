#!/usr/bin/env python3
"""sinkonce kills itself at each step of an exchange.  After the restart the checker finds no record applied twice, none
lost, and in doubt exactly what nobody can know.

Needs the program with failpoints: SINKONCE_FAILPOINTS_BIN.
"""

import os
import subprocess
import unittest

import failpoints
import harness
from harness import PATIENCE, checker, key, record, sinkonce, wait_for

BIG = "x" * 300000  # so that there is a middle of the sending


class Test(failpoints.Mortal, harness.Scenario):
    def setUp(self):
        super().setUp()
        self.acked, self.produced = [], {}

    def deliver(self, offset, pad=""):
        """A delivery of the connector; None: it was never answered."""
        body = record("orders", 0, offset, pad=pad)
        self.produced[key("orders", 0, offset)] = sinkonce.journal_hash(body)
        answer = self.later(self.send, offset, pad=pad).result()
        if answer is not None and answer.status // 100 == 2:
            self.acked.append(key("orders", 0, offset))
        return answer

    def check(self, exact_doubts, allow_twice=()):
        journal = [line[:2] for line in self.target.lines()]
        report = checker.check(journal, self.produced, self.acked, self.doubts(), exact_doubts, allow_twice)
        self.assertTrue(report.is_good, "\n".join(report.lines()))

    def die_and_recover(self, point, is_applied, state):
        self.serve()
        for offset in range(5):
            self.deliver(offset)
        self.die_at(point, self.deliver, 5, BIG)
        doubtful = [key("orders", 0, 5)] if state == "in_doubt" else []
        wait_for(lambda: self.applied(5) == is_applied, "the target", PATIENCE)
        self.assertEqual((self.state(5), self.doubts()), (state, doubtful))
        again = self.deliver(5, BIG)
        self.assertEqual(again.outcome, {"absent": None, "in_doubt": "in-doubt", "applied": "duplicate"}[state])
        if doubtful:  # the person looks at the target
            self.assertEqual(self.proxy.resolve(doubtful[0], is_applied)[0], 200)
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
                self.die_at(point, self.deliver, offset, BIG)
                self.assertEqual(self.deliver(offset, BIG).status, 200)
                self.assertEqual(self.applied(offset), applied + 1)
        self.check([], self.allowed_twice)

    def test_F_04_the_policy_assume_applied_drops_what_a_kill_left_in_doubt(self):
        self.serve(IN_DOUBT="assume-applied")
        self.die_at("after_response", self.deliver, 5, BIG)
        self.assertTrue(self.deliver(5, BIG).is_replayed)
        self.check([])

    def test_F_06_the_stored_answer_is_given_after_a_kill_before_the_reply(self):
        self.serve()
        self.target.set(status=201, body="created")
        self.die_at("before_reply", self.deliver, 5, BIG)
        again = self.deliver(5, BIG)
        self.assertEqual((again.status, again.body, again.is_replayed), (201, b"created", True))

    def test_F_01_to_F_07_a_kill_at_a_random_commit_of_many_exchanges(self):
        self.serve(WORKERS="2")
        for round_number, (point, _, _, _) in enumerate(failpoints.POINTS):
            self.start_with(point)
            running = [self.later(self.deliver, round_number * 100 + n, "x" * 70000) for n in range(12)]
            for call in running:
                call.result()
            self.assertEqual(self.proxy.process.wait(), -9)
        self.proxy.start()
        for doubt in self.doubts():
            self.assertEqual(self.proxy.resolve(doubt, self.target.count(doubt) > 0)[0], 200)
        for record_key in list(self.produced):
            self.assertEqual(self.deliver(int(record_key.rpartition("/")[2]), "x" * 70000).status, 200)
        self.check([])


failpoints.add_tests(Test, "die_and_recover")


class Control(unittest.TestCase):
    @staticmethod
    def strings_of(binary):
        return subprocess.run(["strings", "-a", binary], stdout=subprocess.PIPE, text=True).stdout.split("\n")

    def test_the_program_for_users_holds_no_failpoint(self):
        strings = self.strings_of(os.environ["SINKONCE_BIN"])
        found = [text for text in strings if text in [point for point, _, _, _ in failpoints.POINTS] + ["FAILPOINT"]]
        if "failpoint_hit" in strings:
            self.skipTest("the whole build has failpoints")
        self.assertEqual(found, [])

    @unittest.skipUnless(failpoints.BINARY, "SINKONCE_FAILPOINTS_BIN is not set")
    def test_the_program_with_failpoints_holds_all_of_them(self):
        strings = self.strings_of(failpoints.BINARY)
        self.assertEqual([point for point, _, _, _ in failpoints.POINTS if point not in strings], [])


if __name__ == "__main__":
    harness.main()
