#!/usr/bin/env python3
"""An operator replays, forgets, drains, changes the mode and makes a backup while all goes on; each change is an event
with who and why, and what is wrong is refused with a sentence.
"""

import json
import os
import shutil
import subprocess
import tempfile

import harness
from harness import PATIENCE, straight_and_killed, wait_for


class Test(harness.Scenario):
    def call(self, method, path, document=None, status=200):
        found, answer = self.proxy.admin(method, path, document)
        self.assertEqual(found, status, answer)
        return answer

    def admin_raw(self, method, path, body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return harness.sinkonce.request(self.proxy.admin_port, method, path, body, headers)

    def fill(self, *offsets, topic="orders"):
        for offset in offsets:
            self.assertEqual(self.send(offset, topic).status, 200)

    # replay

    @straight_and_killed
    def test_Z_11_a_replay_window_sends_each_record_again_once(self):
        self.allowed_twice = ["orders/0/1", "orders/0/2"]
        self.serve()
        self.fill(1, 2, 3)
        window = self.call("POST", "/replays", {"topic": "orders", "partition": 0, "from": 1, "to": 2, "for": "10m",
                                                "reason": "the target lost them"})
        self.between()
        self.assertEqual([(self.send(n).is_replayed, self.applied(n)) for n in (1, 1, 3)], [(False, 2), (True, 2), (True, 1)])
        (row,) = self.call("GET", "/replays")["replays"]
        self.assertEqual((row["id"], row["topic"], row["from"], row["to"]), (window["id"], "orders", 1, 2))
        self.assertIn("1 replay window is open", str(self.call("GET", "/status")["warnings"]))
        self.assert_metric('replayed_records_total{topic="orders"}', 1)
        self.between()
        self.assertTrue(self.send(1).is_replayed)
        self.assertEqual(self.call("DELETE", "/replays/%s" % window["id"])["replayed"], 1)
        self.assertTrue(self.send(2).is_replayed)
        self.assertEqual((self.applied(1), self.applied(2), self.call("GET", "/replays")["replays"]), (2, 1, []))
        self.assertIn("the target lost them", self.events("replay.opened")[0]["detail"])
        self.assertEqual(len(self.events("replay.closed")), 1)

    def test_a_replay_window_needs_a_partition_that_was_met_and_room(self):
        self.serve()
        self.fill(1)
        right = {"topic": "orders", "partition": 0, "from": 1, "to": 2, "for": "10m"}
        self.call("POST", "/replays", {**right, "partition": 9}, 404)
        self.call("POST", "/replays", right)
        self.call("POST", "/replays", {**right, "to": 9}, 409)
        self.call("DELETE", "/replays/99999", None, 404)
        for wrong in ({"for": 10}, {"for": "10"}, {"for": "0s"}, {"for": "90d"}, {"from": 3}, {"to": -1}, {"partition": None},
                      {"topic": "a b"}, {"untill": "x"}, {"reason": ""}):
            with self.subTest(wrong=wrong):
                self.call("POST", "/replays", {**right, **wrong}, 400)
        for missing in right:
            self.call("POST", "/replays", {name: value for name, value in right.items() if name != missing}, 400)

    # forget

    @straight_and_killed
    def test_forgetting_needs_the_right_count_and_then_the_records_are_unknown(self):
        self.allowed_twice = ["orders/0/1", "orders/0/2"]
        self.serve()
        self.fill(1, 2, 3)
        wrong = {"topic": "orders", "partition": 0, "from": 1, "to": 2, "expect_count": 3, "reason": "a new table"}
        answer = self.call("POST", "/forget", wrong, 409)
        self.assertEqual((answer["error"], answer["expect_count"], answer["count"]), ("count-mismatch", 3, 2))
        self.assertEqual(self.state(1), "applied")
        self.assertEqual(self.call("POST", "/forget", {**wrong, "expect_count": 2})["records"], 2)
        self.between()
        self.assertEqual([self.state(n) for n in (1, 2, 3)], ["absent", "absent", "applied"])
        self.fill(1)
        self.assertEqual(self.applied(1), 2)
        self.assertIn("a new table", self.events("partition.forgotten")[0]["detail"])
        self.call("POST", "/forget", {**wrong, "topic": "unknown", "expect_count": 0}, 404)
        for wrong_part in ({"reason": ""}, {"expect_count": "x"}, {"from": 3}, {"cuont": 1}):
            self.call("POST", "/forget", {**wrong, **wrong_part}, 400)

    # doubts

    def test_a_resolution_of_what_is_settled_already_is_409_with_its_state(self):
        self.serve()
        self.doubt(1)
        path = "/in-doubt/%s" % self.proxy.in_doubt()[0]["id"]
        self.call("POST", path, {"resolution": "applied", "reason": "seen"})
        answer = self.call("POST", path, {"resolution": "not-applied", "reason": "not seen"}, 409)
        self.assertEqual((answer["error"], answer["state"]), ("settled", "applied"))

    # mode, level, drain

    def test_Z_16_the_mode_changes_for_the_requests_that_follow(self):
        self.allowed_twice = ["orders/0/1"]
        self.serve()
        self.fill(1)
        self.assertEqual(self.call("PUT", "/mode", {"mode": "observe", "reason": "trial"}), {"mode": "observe", "noted": True})
        self.assertEqual(self.call("GET", "/status")["mode"], "observe")
        self.send(1)
        self.assertEqual(self.applied(1), 2)
        self.assert_metric('would_drop_records_total{topic="orders"}', 1)
        self.assertEqual(self.proxy.metrics()['sinkonce_mode{mode="observe"}'], 1)
        self.call("PUT", "/mode", {"mode": "enforce"})
        self.assertTrue(self.send(1).is_replayed)
        events = [row["detail"] for row in self.events("admin.action")]
        self.assertIn("mode observe by 127.0.0.1", events[0])
        self.assertIn("trial", events[0])
        self.assertIn("mode enforce by 127.0.0.1", events[1])
        for wrong in ({}, {"mode": "on"}, {"mode": 1}, {"mode": "off", "x": 1}):
            self.call("PUT", "/mode", wrong, 400)

    def test_the_log_level_changes(self):
        self.serve(LOG_LEVEL="error")
        self.call("PUT", "/log-level", {"level": "info"})
        self.call("PUT", "/log-level", {"level": "loud"}, 400)
        self.proxy.post("/in", b"no coordinates")
        def logged():
            with open(self.proxy.log) as log:
                return '"record.unkeyed"' in log.read()
        wait_for(logged, "a line of level info", PATIENCE)
        self.assertEqual(len(self.events("admin.action")), 1)

    def test_a_drain_refuses_connections_until_it_is_resumed_and_what_runs_ends_well(self):
        self.serve()
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 1)
        self.held()
        self.assertEqual(self.call("POST", "/drain", {"reason": "node goes"}), {"draining": True, "noted": True})
        self.call("POST", "/drain", {})
        self.assertEqual((self.proxy.admin("GET", "/readyz")[0], self.proxy.admin("GET", "/livez")[0]), (503, 200))
        self.assertEqual(self.call("GET", "/status")["state"], "draining")
        with self.assertRaises(ConnectionRefusedError):
            self.send(2)
        self.target.drop()
        self.assertEqual(running.result().outcome, "in-doubt")
        self.assertEqual(self.call("DELETE", "/drain"), {"draining": False, "noted": True})
        self.assertEqual(self.proxy.admin("GET", "/readyz")[0], 200)
        self.fill(2)
        with harness.Wire(self.proxy.port) as wire:
            for _ in range(2):  # kept open again
                wire.send(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertNotEqual(wire.final("GET").one("connection"), "close")
        self.assertEqual(["node goes" in row["detail"] for row in self.events("admin.action")], [True, False, False])

    def test_a_drained_program_stops_on_sigterm(self):
        self.serve()
        self.call("POST", "/drain", {})

    # backup

    def test_a_backup_is_written_beside_the_ledger_and_nowhere_else(self):
        self.serve()
        self.fill(*range(20))
        data = self.proxy.settings.get("SINKONCE_DATA_DIR") or self.proxy.data_dir
        answer = self.call("POST", "/backup", {"path": "copy.mdb", "reason": "before the upgrade"})
        self.assertEqual(answer["path"], os.path.join(os.path.realpath(data), "copy.mdb"))
        self.assertEqual(answer["bytes"], os.path.getsize(answer["path"]))
        beside = self.call("POST", "/backup", {"path": os.path.join(os.path.dirname(data), "beside.mdb")})
        self.addCleanup(os.unlink, beside["path"])
        self.call("POST", "/backup", {"path": "copy.mdb"}, 409)
        other = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, other)
        os.symlink(other, os.path.join(data, "link"))
        for wrong in (os.path.join(other, "x"), "link/x", "../../x", "sub/x", "..", ".", "", "x/", "/etc/x", 7, None, "a\0b"):
            with self.subTest(wrong=wrong):
                self.call("POST", "/backup", {"path": wrong}, 400)
        self.assertEqual(os.listdir(other), [])
        self.assertTrue(any("before the upgrade" in row["detail"] for row in self.events("admin.action")))

    def test_a_backup_that_is_put_back_knows_what_it_knew_and_doubts_what_was_on_its_way(self):
        self.allowed_twice = ("orders/0/5",)  # what came after the backup is forgotten
        self.serve()
        self.fill(0, 1)
        self.doubt(2)
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 3)
        self.held()
        self.call("POST", "/backup", {"path": "copy.mdb"})
        self.target.drop()
        running.result()
        for offset in (2, 3):
            self.proxy.resolve("orders/0/%d" % offset, True)
        self.fill(5)
        self.check_sum()
        self.proxy.stop()
        with tempfile.TemporaryDirectory() as away:
            for name in os.listdir(self.proxy.data_dir):
                shutil.move(os.path.join(self.proxy.data_dir, name), away)
            shutil.copy(os.path.join(away, "copy.mdb"), os.path.join(self.proxy.data_dir, "ledger.mdb"))
        self.assertEqual(self.proxy.run("ledger", "verify").stdout, "sound\n")
        self.proxy.start()
        self.assertEqual([self.state(offset) for offset in range(6)],
                         ["applied", "applied", "in_doubt", "in_doubt", "absent", "absent"])
        self.assertEqual(self.proxy.admin("GET", "/partitions")[1]["partitions"][0]["highest"], 1)
        self.assertEqual((self.send(1).outcome, self.send(5).status), ("duplicate", 200))

    # explain

    def test_a_sample_request_is_explained_and_neither_stored_nor_sent(self):
        self.serve()
        body = [{"__topic": "orders", "__partition": 1, "__offset": n, "v": n} for n in (5, 6)]
        found = self.call("POST", "/explain", {"method": "POST", "path": "/in?x=1", "body": body,
                                               "headers": {"Content-Type": "application/json"}})
        self.assertEqual([(row["topic"], row["partition"], row["offset"]) for row in found["records"]],
                         [("orders", 1, 5), ("orders", 1, 6)])
        self.assertEqual((found["shape"], found["sent"]["target"]), ("json-array", "/in?x=1"))
        raw = (b"POST /in HTTP/1.1\r\nHost: x\r\nx-kafka-topic: orders\r\nx-kafka-partition: 0\r\nx-kafka-offset: 9\r\n"
               b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        status, _, answer = self.admin_raw("POST", "/explain", raw, Content_Type="application/http")
        found = json.loads(answer)
        self.assertEqual((status, found["records"][0]["offset"], found["sent"]["body"]), (200, 9, "abc"), found)
        self.assertEqual((self.state(5, "orders", 1), self.state(9), self.target.stats()["requests"]), ("absent", "absent", 0))
        for wrong in (b"", b"POST /in HTTP/1.1\r\n", raw[:-2], raw + b"x", raw.replace(b"Host: x\r\n", b""),
                      b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nabc", b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n"):
            with self.subTest(wrong=wrong):
                self.assertEqual(self.admin_raw("POST", "/explain", wrong, Content_Type="application/http")[0], 400)
        for wrong in ({"method": 1}, {"path": "no slash"}, {"headers": []}, {"headers": {"a": 1}}, {"headers": {"a": "b\r\nc"}},
                      {"headers": {"a:b": "c"}}, {"bdy": ""}, {"method": "GET / HTTP/1.1\r\nX: y\r\n\r\nGET"}):
            with self.subTest(wrong=wrong):
                self.call("POST", "/explain", wrong, 400)
        self.assertEqual(self.admin_raw("POST", "/explain", b"{}", Content_Type="text/plain")[0], 415)

    # listings

    def test_the_intervals_of_a_partition_are_listed_page_by_page(self):
        self.serve()
        self.fill(1, 2, 5, 9)
        self.doubt(7)
        path = "/partitions/orders/0/intervals"
        rows = [(row["first"], row["last"], row["state"]) for row in self.call("GET", path)["intervals"]]
        self.assertEqual(rows, [(1, 2, "applied"), (5, 5, "applied"), (7, 7, "in_doubt"), (9, 9, "applied")])
        paged, start = [], "0"
        while start is not None:
            page = self.call("GET", "%s?limit=1&from=%s" % (path, start))
            paged += [(row["first"], row["last"], row["state"]) for row in page["intervals"]]
            start = page["next"]
        self.assertEqual(paged, rows)
        for wrong in ("/partitions/orders/7/intervals", "/partitions/orders/x/intervals", "/partitions/orders/0",
                      "/partitions/a%20b/0/intervals", "/partitions/orders/0/intervals/x", "/partitions/", "/partitions//0/intervals"):
            self.call("GET", wrong, None, 404)
        self.call("GET", path + "?after=1", None, 400)

    def test_bad_input_is_refused_everywhere(self):
        self.serve()
        changes = [("POST", "/replays"), ("POST", "/forget"), ("PUT", "/mode"), ("PUT", "/log-level"), ("POST", "/drain"),
                   ("POST", "/backup"), ("POST", "/in-doubt"), ("POST", "/in-doubt/1"), ("POST", "/conflicts/1")]
        host = "127.0.0.1:%d" % self.proxy.admin_port
        for method, path in changes:
            with self.subTest(path=path):
                for body in (b"nonsense", b"[]", b'{"no_such_field":1}', b'{"a":'):
                    status, _, answer = self.admin_raw(method, path, body, Content_Type="application/json")
                    self.assertEqual(status, 400, answer)
                self.assertIn(b"line 1, column", self.admin_raw(method, path, b"{]", Content_Type="application/json")[2])
                self.assertIn(b"no_such_field", self.admin_raw(method, path, b'{"no_such_field":1}', Content_Type="application/json")[2])
                self.assertEqual(self.admin_raw(method, path, b"a=b", Content_Type="application/x-www-form-urlencoded")[0], 415)
                self.assertEqual(self.admin_raw(method, path, b"{}", Content_Type="application/json", Host="evil.example.test")[0], 403)
                self.assertEqual(self.admin_raw(method, path, b"{}", Content_Type="application/json", Host=host, Origin="http://evil.example.test")[0], 403)
                self.assertEqual(self.admin_raw("PATCH", path, b"{}", Content_Type="application/json")[0], 405)
        for path in ("/replays/1", "/drain"):
            self.assertEqual(self.admin_raw("DELETE", path, None, Host="evil.example.test")[0], 403)
            self.assertEqual(self.admin_raw("DELETE", path, b"x", Content_Type="text/plain")[0], 415)
        status, headers, _ = self.admin_raw("GET", "/mode")
        self.assertEqual((status, headers["allow"]), (405, "PUT"))
        self.assertEqual(self.admin_raw("GET", "/drain")[1]["allow"], "POST, DELETE")
        self.assertEqual(self.call("GET", "/status")["mode"], "enforce")

    # metrics

    def test_metrics_are_told_by_topic_by_partition_as_openmetrics_and_as_json(self):
        self.serve(METRICS_PARTITIONS="on")
        self.fill(1, 2)
        self.fill(1, topic="other")
        self.send(1)
        self.assert_metric('applied_records_total{topic="orders"}', 2)
        self.assert_metric('duplicate_records_total{topic="orders"}', 1)
        self.assert_metric('partition_applied_records{topic="orders",partition="0"}', 2)
        self.assert_metric('partition_next_offset{topic="other",partition="0"}', 2)
        status, headers, text = self.admin_raw("GET", "/metrics", None, Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
        self.assertTrue(headers["content-type"].startswith("application/openmetrics-text"), headers)
        self.assertTrue(text.endswith(b"\n# EOF\n"))
        stats = self.call("GET", "/stats")
        self.assertEqual(stats["counters"]["applied_records_total"], {"all": 3, "topics": {"orders": 2, "other": 1}})
        self.assertEqual(stats["histograms"]["batch_records"]["count"], 4)
        self.assertGreater(stats["histograms"]["target_duration_seconds"]["p99"], 0)
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed")
        text = self.admin_raw("GET", "/metrics")[2]
        found = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=PATIENCE)
        self.assertEqual((found.returncode, found.stdout + found.stderr), (0, b""))

    def test_an_operator_is_warned_when_everything_is_a_duplicate_or_has_no_coordinates(self):
        self.serve()
        body = b"[" + b",".join(harness.record("orders", 0, n) for n in range(120)) + b"]"
        self.proxy.post("/in", body)
        self.proxy.post("/in", body)
        self.assert_metric("duplicate_records_total", 120)
        self.assertNotIn("Everything is a duplicate", str(self.call("GET", "/status")["warnings"]))
        self.restart()
        self.proxy.post("/in", body)
        self.proxy.post("/in", b"no coordinates")
        self.assert_metric("unkeyed_records_total", 1)
        warnings = str(self.call("GET", "/status")["warnings"])
        self.assertIn("Everything is a duplicate", warnings)
        self.assertIn("had no coordinates", warnings)


if __name__ == "__main__":
    harness.main()
