#!/usr/bin/env python3
"""From the alert to resolved by curl alone: the admin API needs no tool of ours."""

import json
import shlex
import shutil
import subprocess
import unittest

import drill


@unittest.skipUnless(shutil.which("curl"), "curl is not installed")
class Test(drill.Drill):
    def curl(self, path, document=None):
        arguments = ["curl", "-sS", "--noproxy", "*", "--fail-with-body"]
        if document is not None:
            arguments += ["-H", "Content-Type: application/json", "-d", json.dumps(document)]
        arguments.append("localhost:%d%s" % (self.proxy.admin_port, path))
        self.step(shlex.join(arguments))
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stdout)

    def resolve(self, resolution, path="/in-doubt", **where):
        return self.curl(path, {"resolution": resolution, "reason": "a look into the target", **where})["records"]

    def test_doubts_caused_by_resets_are_found_and_resolved_by_curl_alone(self):
        self.cause()
        self.assertEqual(self.curl("/status")["records"]["in_doubt_now"], 6)
        shown = {(row["topic"], row["partition"], row["first"]): row["id"] for row in self.curl("/in-doubt")["in_doubt"]}
        self.assertEqual(sorted(shown), sorted(drill.APPLIED + drill.NOT_APPLIED))
        there = [record for record in shown if self.look_into_the_target(*record)]
        self.assertEqual(sorted(there), sorted(drill.APPLIED))
        self.assertEqual(self.resolve("applied", "/in-doubt/" + shown["bills", 4, 9007199254740993]), 1)
        self.assertEqual(self.resolve("applied", topic="orders", partition=0, **{"from": 11, "to": 13}, expect_count=3), 3)
        self.assertEqual(self.resolve("not-applied", topic="orders", expect_count=2), 2)
        self.assertEqual(self.curl("/in-doubt")["in_doubt"], [])
        self.check_over()


if __name__ == "__main__":
    drill.harness.main()
