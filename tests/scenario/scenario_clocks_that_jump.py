#!/usr/bin/env python3
"""Nothing is forgotten, and nothing happens by itself, because a clock of the machine jumps ten years."""

import glob
import os
import unittest

import harness

FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")


@unittest.skipUnless(FAKETIME, "libfaketime is not installed")
@unittest.skipIf(harness.is_sanitized(), "a sanitizer must be the first library")
class Test(harness.Scenario):
    def at(self, moment):
        """Start again at MOMENT, in the words of faketime; only the time of day jumps."""
        self.proxy.kill()
        self.proxy.settings.update({"LD_PRELOAD": FAKETIME[0], "FAKETIME": moment, "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                                    "DONT_FAKE_MONOTONIC": "1"})
        self.proxy.start()

    def test_Z_10_records_answers_and_doubts_stay_as_they_are(self):
        self.serve()
        self.target.set(status=201, body="created")
        self.send(1)
        self.doubt(2)
        for moment in ("+3650d", "-3650d", "+0d"):
            with self.subTest(moment):
                self.at(moment)
                again = self.send(1)
                self.assertEqual((again.status, again.body, again.is_replayed), (201, b"created", True))
                self.assert_own(self.send(2), 503, "in-doubt", "in-doubt")
                self.assertEqual(self.doubts(), ["orders/0/2"])
                self.assertEqual(self.send(10 + len(moment)).status // 100, 2)
        self.assertEqual((self.applied(1), self.applied(2)), (1, 1))

    def test_Z_10_the_fake_is_believed(self):
        self.serve()
        self.at("+3650d")
        year = int(self.proxy.admin("GET", "/status")[1]["started"][:4])
        self.assertGreater(year, int(os.popen("date +%Y").read()) + 8)


if __name__ == "__main__":
    harness.main()
