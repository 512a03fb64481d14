#!/usr/bin/env python3
"""N-13: the checker itself, on histories written by hand.  Each broken one must be called broken, for its reason."""

import os
import tempfile
import unittest

import checker

PRODUCED = {"t/0/%d" % offset: "h%d" % offset for offset in range(4)}
GOOD = [("t/0/%d" % offset, "h%d" % offset) for offset in range(4)]


class Checker(unittest.TestCase):
    def kinds(self, journal=GOOD, produced=PRODUCED, **more):
        return [kind for kind, _ in checker.check(journal, produced, **more).breaches]

    def test_a_clean_history_is_good(self):
        self.assertEqual(self.kinds(acked=list(PRODUCED), in_order=True, exact_doubts=[]), [])

    def test_N_13_one_duplicate(self):
        self.assertEqual(self.kinds(GOOD + [GOOD[2]]), ["applied twice"])

    def test_a_duplicate_that_a_policy_decided_is_allowed(self):
        self.assertEqual(self.kinds(GOOD + [GOOD[2]], allow_twice=["t/0/2"]), [])

    def test_N_13_one_loss(self):
        self.assertEqual(self.kinds(GOOD[:3]), ["lost"])

    def test_a_listed_doubt_is_no_loss(self):
        self.assertEqual(self.kinds(GOOD[:3], doubts=["t/0/3"]), [])

    def test_an_acknowledged_record_that_was_not_applied(self):
        self.assertEqual(self.kinds(GOOD[:3], acked=["t/0/3"], may_lack=True),
                         ["lost", "acknowledged and not applied"])

    def test_a_run_stopped_half_way_may_lack_what_was_never_acknowledged(self):
        self.assertEqual(self.kinds(GOOD[:3], acked=["t/0/2"], may_lack=True), [])

    def test_N_13_one_swap(self):
        self.assertEqual(self.kinds([GOOD[0], GOOD[2], GOOD[1], GOOD[3]], in_order=True), ["out of order"])

    def test_order_is_asked_of_first_applications_and_within_a_partition_only(self):
        produced = {"t/0/0": None, "t/0/1": None, "t/1/0": None}
        journal = [("t/0/0", "a"), ("t/0/1", "b"), ("t/1/0", "c"), ("t/0/0", "a")]
        self.assertEqual(self.kinds(journal, produced, in_order=True, allow_twice=["t/0/0"]), [])

    def test_offsets_are_ordered_as_numbers(self):
        produced = {"t/0/9": None, "t/0/10": None}
        self.assertEqual(self.kinds([("t/0/9", "a"), ("t/0/10", "b")], produced, in_order=True), [])

    def test_N_13_one_changed_body(self):
        self.assertEqual(self.kinds(GOOD[:3] + [("t/0/3", "other")]), ["body changed"])

    def test_a_body_that_differs_between_two_applications(self):
        self.assertEqual(self.kinds([("t/0/0", "a"), ("t/0/0", "b")], {"t/0/0": None}, allow_twice=["t/0/0"]),
                         ["body changed"])

    def test_a_record_that_nobody_produced(self):
        self.assertEqual(self.kinds(GOOD + [("t/0/9", "h")]), ["applied and never produced"])

    def test_a_doubt_that_is_missing_from_the_list(self):
        self.assertEqual(self.kinds(exact_doubts=["t/0/1"]), ["unknown and not listed in doubt"])

    def test_a_doubt_too_many_on_the_list(self):
        self.assertEqual(self.kinds(doubts=["t/0/1"], exact_doubts=[]), ["listed in doubt and not unknown"])

    def test_a_doubt_of_what_was_acknowledged(self):
        self.assertEqual(self.kinds(doubts=["t/0/1"], acked=["t/0/1"]), ["in doubt and acknowledged"])

    def test_the_program_reads_its_files_and_gives_an_exit_code(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                path = os.path.join(folder, name)
                with open(path, "w") as out:
                    out.write(text)
                return path
            journal = write("journal", "".join("%s\t%s\t17\n" % line for line in GOOD[:3]))
            produced = write("produced", "".join("%s\t%s\n" % pair for pair in PRODUCED.items()))
            doubts = write("doubts", '{"in_doubt":[{"topic":"t","partition":0,"first":3,"last":3}]}')
            self.assertEqual(checker.main(["--journal", journal, "--produced", produced, "--doubts", doubts]), 0)
            self.assertEqual(checker.main(["--journal", journal, "--produced", produced]), 1)


if __name__ == "__main__":
    unittest.main()
