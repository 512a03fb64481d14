#!/usr/bin/env python3
"""What an operator learns without asking the right question: warnings in sentences, events, log lines and exit codes."""

import glob
import json
import os
import tempfile
import time
import unittest

import harness
from harness import PATIENCE, wait_for

FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Test(harness.Scenario):
    def warnings(self):
        return self.proxy.admin("GET", "/status")[1]["warnings"]

    # warnings

    def assert_warned(self, *words):
        """One sentence for each of WORDS, beside that of a new ledger and of the file system that the tests are given, and no
        other."""
        found = [text for text in self.warnings() if "less than a day old" not in text and "SINKONCE_DATA_DIR=/" not in text]
        self.assertEqual(len(found), len(words), found)
        for part in words:
            self.assertEqual(len([text for text in found if part in text]), 1, found)

    def test_a_new_ledger_is_told_as_such_and_nothing_else_is_wrong(self):
        self.serve()
        self.assertIn("less than a day old", self.warnings()[-1])
        self.assert_warned()
        self.send(1)
        self.assert_warned()

    def test_each_setting_that_asks_for_trouble_has_its_sentence(self):
        self.serve()
        by_tls = self.target.url.replace("http", "https")
        sound = {"TARGET": self.target.url, "TARGET_WAS": by_tls, "ADMIN_TOKEN": None,
                 "ADMIN_LISTEN": "127.0.0.1:%d" % self.proxy.admin_port,
                 "TARGET_VERIFY": None, "IN_DOUBT": None, "KEY_HEADER": None, "MODE": None}
        everywhere = "0.0.0.0:%d" % self.proxy.admin_port
        for settings, words in (
                ({"TARGET": by_tls, "TARGET_WAS": self.target.url, "TARGET_VERIFY": "off"}, ("SINKONCE_TARGET_VERIFY is off",)),
                ({"ADMIN_LISTEN": everywhere}, ("SINKONCE_ADMIN_TOKEN is not set",)),
                ({"ADMIN_LISTEN": everywhere, "ADMIN_TOKEN": "t0ken-t0ken"}, ()),
                ({"IN_DOUBT": "retry"}, ("retry without SINKONCE_KEY_HEADER",)),
                ({"IN_DOUBT": "retry", "KEY_HEADER": "Idempotency-Key"}, ()),
                ({"IN_DOUBT": "assume-applied"}, ("may be a lost record",)),
                ({"MODE": "observe"}, ("SINKONCE_MODE is observe",)), ({"MODE": "off"}, ("SINKONCE_MODE is off",))):
            with self.subTest(settings):
                self.restart(**{**sound, **settings})
                self.assert_warned(*words)

    def test_writes_without_coordinates_and_open_windows_and_conflicts_have_theirs(self):
        self.serve(IDENTITY="body")
        self.proxy.post("/in", b"no coordinates")
        self.assert_metric("unkeyed_records_total", 1)
        self.assert_warned("1 write of the last minutes had no coordinates and is")
        self.send(0)
        self.proxy.admin("POST", "/replays", {"topic": "orders", "partition": 0, "from": 0, "to": 0, "for": "1h"})
        self.assert_warned("had no coordinates", "1 replay window is open")
        self.send(0, "again")
        self.send(0, "again", life=2)
        self.assert_warned("had no coordinates", "1 replay window is open", "1 conflict waits")

    @unittest.skipUnless(FAKETIME, "libfaketime is not installed")
    @unittest.skipIf(harness.is_sanitized(), "a sanitizer must be the first library")
    def test_doubts_warn_once_they_are_old_and_a_ledger_is_not_new_for_ever(self):
        self.serve()
        self.doubt(1)
        self.assert_warned()
        self.proxy.settings.update({"LD_PRELOAD": FAKETIME[0], "FAKETIME": "+2d", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                                    "DONT_FAKE_MONOTONIC": "1"})
        self.restart()
        self.assertNotIn("less than a day old", str(self.warnings()))
        self.assert_warned("1 record is in doubt, the oldest for 17")  # 172,800 seconds and a few

    @unittest.skipUnless(os.path.ismount("/dev/shm"), "no file system in memory here")
    def test_a_ledger_in_memory_is_told_by_log_and_status_and_check(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            told = "SINKONCE_DATA_DIR=%s lies in memory (tmpfs)" % folder
            self.serve(DATA_DIR=folder)
            self.assertIn(told, str(self.warnings()))
            self.assert_logged({"event": "config.risky", "SINKONCE_DATA_DIR": folder})
            self.proxy.stop()
            self.assertIn("note: " + told, self.proxy.run("check").stderr)

    def test_a_target_that_is_down_and_a_wrong_token_are_told_while_they_are_so(self):
        self.serve(CLIENT_TOKEN="sesame", CONNECT_RETRIES="0")
        right = {"Authorization": "Bearer sesame"}
        self.send(1, headers=right)
        self.assert_warned()
        self.send(2)
        self.assert_warned("1 request of the last minutes came without")
        self.restart()
        self.target.stop()
        for _ in range(3):
            self.assertEqual(self.send(2, headers=right).json()["error"], "target-unreachable")
        self.assert_warned("3 attempts failed, most often so: no connection (connect)")
        self.target.start()
        self.assertEqual(self.send(2, headers=right).status, 200)
        self.assert_warned()

    # events and metrics of leaps

    def test_Z_07_leaps_of_an_offset_are_events_and_counted_and_the_window_says_how_far_one_is(self):
        self.serve()
        for offset in (200000, 200000 + 10000001, 100):
            self.assertEqual(self.send(offset).status, 200)
        for name, event, first, last in (("first_sight_total", "partition.first_sight", 200000, 200000),
                                         ("offset_jumps_total", "partition.jump", 200000, 10200001),
                                         ("offset_rewinds_total", "partition.rewind", 100, 200000)):
            self.assert_metric(name, 1)
            found = self.events(event)
            self.assertEqual([(row["topic"], row["first"], row["last"]) for row in found], [("orders", first, last)])
        self.restart(WINDOW="20000000")
        self.assertEqual(self.send(10200001 + 10000001).status, 200)
        self.assert_metric("applied_records_total", 1)
        self.assert_metric("offset_jumps_total", 0)

    def test_Z_01_an_old_generation_is_kept_until_its_topic_is_forgotten(self):
        self.is_journal_checked = False  # the new topic's records are others under the same keys
        self.serve(IDENTITY="body")
        for offset in range(5):
            self.send(offset)
        self.send(0, life=2)
        self.proxy.decide(self.proxy.conflicts()[0]["id"], "new-topic")
        self.assertEqual(self.send(0, life=2).status, 200)
        row = self.proxy.admin("GET", "/partitions")[1]["partitions"][0]
        self.assertEqual((row["generation"], row["applied"], row["highest"]), (1, 1, 0))

        def kept():
            self.check_sum()
            self.proxy.stop()
            figures = json.loads(self.proxy.run("ledger", "stat", "--json").stdout)
            self.assertEqual(self.proxy.run("ledger", "verify").stdout, "sound\n")
            self.proxy.start()
            return figures["rows_past"]
        self.assertEqual(kept(), 1)
        forget = {"topic": "orders", "expect_count": 1, "reason": "a new life"}
        self.assertEqual(self.proxy.admin("POST", "/forget", forget)[0], 200)
        self.assertEqual(kept(), 0)

    # the log

    def test_what_happens_again_and_again_is_one_line_in_ten_seconds(self):
        self.serve(LOG_LEVEL="info")
        begin = time.monotonic()
        for _ in range(50):
            self.proxy.post("/in", b"no coordinates")
        self.assert_metric("unkeyed_records_total", 50)
        lines = self.logged("record.unkeyed")
        self.assertGreaterEqual(len(lines), 1)
        self.assertIn("sinkonce explain says why", lines[0]["msg"])
        self.assertLessEqual(len(lines), 1 + (time.monotonic() - begin) // 10)

    def test_a_doubt_says_what_the_target_answered_and_one_that_is_held_does_not_hide_it(self):
        self.serve(LOG_LEVEL="warn")
        self.target.set(status=500, next=1)
        self.send(1)
        self.assertEqual(self.send(1).outcome, "in-doubt")
        why = "the target answered 500"
        self.assertEqual([row["detail"] for row in self.proxy.in_doubt() + self.events("record.in_doubt")], [why] * 2)
        self.assert_logged({"event": "record.in_doubt", "topic": "orders", "offset": 1, "detail": why})
        self.assert_logged({"event": "record.held", "topic": "orders", "offset": 1, "detail": "it was in doubt before"})
        self.target.set(status=302, next=1)
        self.assert_own(self.send(2), 503, "refused", "redirected")
        self.assert_logged({"event": "target.error", "cause": "none", "detail": "the target answered 302"})

    def test_traces_pass_through_and_stand_in_the_access_log_and_secrets_do_not(self):
        self.serve(ACCESS_LOG="all")
        ids = {"traceparent": TRACE, "tracestate": "congo=t61rcWkgMzE", "X-Request-Id": "7f9c-41"}
        answer = harness.Answer(*self.proxy.post("/in?key=s3cr3t", harness.record("orders", 0, 1, card="card-4711"),
                                                 {**ids, "Authorization": "Bearer t0ken"}))
        self.assertEqual(answer.status, 200)
        arrived = self.target.last().decode()
        for name, value in ids.items():
            self.assertIn("%s: %s\r\n" % (name, value), arrived)
        self.send(2)
        lines = wait_for(lambda: len(self.logged("http.access")) == 2 and self.logged("http.access"), "two lines", PATIENCE)
        first, second = sorted(lines, key=lambda line: line["traceparent"], reverse=True)
        self.assertEqual((first["traceparent"], first["x_request_id"], first["path"]), (TRACE, "7f9c-41", "/in"))
        self.assertEqual((first["status"], first["outcome"], first["records"]), (200, "applied", 1))
        self.assertEqual((second["traceparent"], second["x_request_id"]), ("", ""))
        with open(self.proxy.log) as log:
            text = log.read()
        for secret in ("s3cr3t", "t0ken", "card-4711"):
            self.assertNotIn(secret, text)

    def test_a_drain_tells_its_begin_and_that_its_time_was_not_enough(self):
        self.serve(DRAIN_TIMEOUT="200ms")
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 1)
        self.held()
        self.assertEqual(self.proxy.stop(), 0)
        running.result()
        self.assertEqual(len(self.logged("drain.start")), 1)
        told = self.logged("drain.timeout")
        self.assertEqual([line["level"] for line in told], ["warn"])
        self.proxy.start()
        self.assertEqual(self.doubts(), ["orders/0/1"])

    # exit codes

    def test_the_exit_code_says_what_kind_of_trouble_it_is(self):
        self.serve()
        run = self.proxy.run
        self.assertEqual(run("serve").returncode, 75)
        self.assertEqual(run("ledger", "stat").returncode, 75)
        self.check_sum()
        self.proxy.stop()
        self.assertEqual(run("ledger", "stat").returncode, 0)
        self.assertEqual(run("status").returncode, 69)
        self.target.stop()
        self.assertEqual(run("check", "--connect").returncode, 69)
        self.assertEqual(run("check").returncode, 0)
        self.proxy.settings["SINKONCE_WAIT"] = "2"
        self.proxy.settings["SINKONCE_WAITT"] = "2s"
        wrong = run("serve")
        self.assertEqual((wrong.returncode, len(wrong.stderr.splitlines())), (78, 2), wrong.stderr)
        self.assertEqual(run("check").returncode, 78)
        self.proxy.settings["SINKONCE_WAIT"] = self.proxy.settings["SINKONCE_WAITT"] = None
        with open(os.path.join(self.proxy.data_dir, "ledger.mdb"), "r+b") as file:
            file.write(b"no ledger" * 1000)
        self.assertEqual(run("serve").returncode, 74)
        self.assertEqual(run("ledger", "verify").returncode, 74)
        unknown = run("statsu")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("did you mean", unknown.stderr)


if __name__ == "__main__":
    harness.main()
