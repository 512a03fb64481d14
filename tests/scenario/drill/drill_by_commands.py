#!/usr/bin/env python3
"""From the alert to resolved by the command line alone."""

import shlex

import drill

WHY = ("--reason", "a look into the target")


class Test(drill.Drill):
    def command(self, *arguments):
        self.step("sinkonce " + shlex.join(arguments))
        done = self.proxy.run(*arguments)
        self.assertEqual((done.returncode, self.proxy.process.is_running()), (0, True), done)
        return done.stdout

    def doubts_shown(self):
        """{(topic, partition, offset): id} as the table shows them, each a record alone."""
        rows = [line.split() for line in self.command("in-doubt").splitlines()[1:]]
        self.assertTrue(all(row[3] == row[4] for row in rows), rows)
        return {(row[1], int(row[2]), int(row[3])): row[0] for row in rows}

    def test_doubts_caused_by_resets_are_found_and_resolved_by_the_command_line_alone(self):
        self.cause()
        self.assertRegex(self.command("status"), r"in doubt now +6\n")
        shown = self.doubts_shown()
        self.assertEqual(sorted(shown), sorted(drill.APPLIED + drill.NOT_APPLIED))
        there = [record for record in shown if self.look_into_the_target(*record)]
        self.assertEqual(sorted(there), sorted(drill.APPLIED))
        self.command("in-doubt", "resolve", shown["bills", 4, 9007199254740993], "--applied", *WHY)
        self.command("in-doubt", "resolve", "--topic", "orders", "--partition", "0", "--from", "11", "--to", "13",
                     "--expect", "3", "--applied", *WHY)
        self.command("in-doubt", "resolve", "--topic", "orders", "--expect", "2", "--not-applied", *WHY)
        self.assertEqual(self.doubts_shown(), {})
        self.check_over()

    def test_why_a_record_is_in_doubt_is_shown_with_it(self):
        self.cause()
        lines = self.command("in-doubt").splitlines()
        self.assertIn("CAUSE", lines[0])
        for line in lines[1:]:
            self.assertRegex(line, r"  (guard|no_reply) .*after the request was sent")


if __name__ == "__main__":
    drill.harness.main()
