#!/usr/bin/env python3
"""With SINKONCE_IN_DOUBT=probe the target is asked about each record in doubt: a clear yes drops it, a clear no sends it
again, and everything else keeps holding it.
"""

import http.server
import threading

import harness
from harness import PATIENCE, straight_and_killed, wait_for


class Probed:
    """Where the probes go: ANSWER(path) gives (status, body), None hangs up, "silence" never answers."""

    def __init__(self, answer):
        self.answer, self.seen, self.heads = answer, [], []
        self.is_over = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.seen.append((self.command, self.path))
                outer.heads.append(dict(self.headers.items()))
                answer = outer.answer(self.path)
                if answer == "silence":
                    outer.is_over.wait(PATIENCE)
                if answer is None or answer == "silence":
                    self.close_connection = True
                    return
                status, body = answer
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server.server_port

    def close(self):
        self.is_over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Test(harness.Scenario):
    def probed(self, answer, path="/orders/{topic}/{partition}/{offset}", **settings):
        self.probe = Probed(answer)
        self.addCleanup(self.probe.close)
        self.serve(**{"IN_DOUBT": "probe", "PROBE_URL": self.probe.url + path, "PROBE_DELAY": "100ms", **settings})

    def none_left(self):
        wait_for(lambda: self.doubts() == [], "no doubt", PATIENCE, [self.proxy.log])

    def asked(self, count=1):
        wait_for(lambda: len(self.probe.seen) >= count, "%d probes" % count, PATIENCE, [self.proxy.log])

    @straight_and_killed
    def test_a_yes_drops_the_record(self):
        self.probed(lambda path: (200, b"{}"))
        self.doubt(7)
        self.between()
        self.none_left()
        self.assertEqual(self.probe.seen[0], ("GET", "/orders/orders/0/7"))
        answer = self.send(7)
        self.assertEqual((answer.status, answer.outcome, self.applied(7)), (200, "duplicate", 1))
        (event,) = self.events("record.resolved")
        self.assertIn("probe: 200", event["detail"])
        if not self.is_killed_between:
            self.assert_metric('probes_total{result="applied"}', 1)

    @straight_and_killed
    def test_a_no_sends_it_again(self):
        self.probed(lambda path: (404, b""))
        self.doubt(7, apply="no")
        self.between()
        self.none_left()
        self.assertEqual((self.state(7), self.applied(7)), ("absent", 0))
        answer = self.send(7)
        self.assertEqual((answer.status, answer.is_replayed, self.applied(7)), (200, False, 1))
        self.assertIn("probe: 404", self.events("record.resolved")[0]["detail"])

    def test_a_request_that_waits_goes_on_as_soon_as_the_probe_has_resolved_it(self):
        self.probed(lambda path: (200, b""), WAIT="20s")
        self.doubt(1)
        self.assertTrue(self.later(self.send, 1).result().is_replayed)

    def test_values_of_the_record_are_kept_with_its_intent_and_cannot_leave_their_place(self):
        self.probed(lambda path: (200, b""), path="/o/{json:/order/no}?t={topic}&s={scope}&n={json:/big}", SCOPE="a.b")
        self.doubt(7, order={"no": "../x/é?a=1&b#c"}, big=9007199254740993)
        self.none_left()
        self.assertEqual(self.probe.seen, [("GET", "/o/..%2Fx%2F%C3%A9%3Fa%3D1%26b%23c?t=orders&s=a.b&n=9007199254740993")])

    def test_values_survive_a_kill(self):
        self.probed(lambda path: (200, b""), path="/o/{json:/no}")
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 1, no="x1")
        self.held()
        self.proxy.kill()
        running.result()
        self.target.clear()
        self.proxy.start()
        self.none_left()
        self.assertEqual(self.probe.seen, [("GET", "/o/x1")])

    def test_a_record_without_the_value_is_never_asked_for_and_stays(self):
        self.probed(lambda path: (200, b""), path="/o/{json:/no}")
        self.doubt(1)
        self.doubt(2, no="")
        self.doubt(3, no="..")
        self.doubt(4, no={"a": 1})
        wait_for(lambda: self.proxy.metrics()['sinkonce_probes_total{result="no_value"}'] >= 4, "probes", PATIENCE)
        self.assertEqual((len(self.doubts()), self.probe.seen), (4, []))

    def test_values_kept_for_another_template_are_not_used(self):
        self.probed(lambda path: (200, b""), path="/o/{json:/no}")
        self.probe.answer = lambda path: None
        self.doubt(1, no="x1", id2="x2")
        self.restart(PROBE_URL=self.probe.url + "/o/{json:/id2}")
        before = len(self.probe.seen)
        wait_for(lambda: self.proxy.metrics()['sinkonce_probes_total{result="no_value"}'] >= 1, "probes", PATIENCE)
        self.assertEqual((self.doubts(), len(self.probe.seen)), (["orders/0/1"], before))

    def test_all_else_keeps_holding_and_is_counted(self):
        answers = iter([(500, b""), (302, b""), None, (503, b"{}"), (429, b"")])
        self.probed(lambda path: next(answers, (500, b"")))
        self.doubt(1)
        self.asked(3)
        self.assert_own(self.send(1), 503, "in-doubt", "in-doubt")
        wait_for(lambda: self.proxy.metric("sinkonce_probes_total") >= 3, "three probes", PATIENCE)
        now = self.proxy.metrics()
        self.assertGreaterEqual(now['sinkonce_probes_total{result="unclear"}'], 2)
        self.assertGreaterEqual(now['sinkonce_probes_total{result="failed"}'], 1)
        self.assertEqual(now["sinkonce_probes_failing"], 1)
        self.assertIn("Probes get no clear answer", str(self.proxy.admin("GET", "/status")[1]["warnings"]))
        self.assertEqual((self.applied(1), self.doubts()), (1, ["orders/0/1"]))
        self.probe.answer = lambda path: (200, b"")
        self.none_left()
        self.assertEqual(self.proxy.metrics()["sinkonce_probes_failing"], 0)

    def test_a_probe_that_is_refused_keeps_holding(self):
        self.probed(lambda path: (200, b""))
        self.probe.close()
        self.probe.close = lambda: None
        self.doubt(1)
        wait_for(lambda: self.proxy.metrics()['sinkonce_probes_total{result="failed"}'] >= 1, "a probe", PATIENCE)
        self.assertEqual(self.doubts(), ["orders/0/1"])

    def test_a_probe_that_is_slow_is_given_up_and_keeps_holding(self):
        self.probed(lambda path: "silence", PROBE_TIMEOUT="100ms")
        self.doubt(1)
        wait_for(lambda: self.proxy.metrics()['sinkonce_probes_total{result="failed"}'] >= 1, "a probe", PATIENCE)
        self.assertEqual(self.doubts(), ["orders/0/1"])
        self.probe.is_over.set()

    def test_rules_look_into_json_of_a_2xx_only(self):
        self.probed(lambda path: (500, b'{"error":"x"}'), PROBE_APPLIED="json:/hits/0", PROBE_ABSENT="no-json:/hits/0")
        self.doubt(1)
        for nonsense in (b"<html>", b'{"hits":[1]} x', b'{"hits":[1]', b'{"hits":[1],"hits":[]}'):
            self.probe.answer = lambda path, nonsense=nonsense: (200, nonsense)
            self.asked(len(self.probe.seen) + 1)
        self.assertEqual(self.doubts(), ["orders/0/1"])
        self.probe.answer = lambda path: (200, b'{"hits":[{"id":1}]}')
        self.none_left()
        self.assertEqual(self.state(1), "applied")
        self.probe.answer = lambda path: (200, b'{"hits":[]}')
        self.doubt(2, apply="no")
        self.none_left()
        self.assertEqual(self.state(2), "absent")

    def test_the_connectors_credentials_stay_with_the_connector(self):
        self.probed(lambda path: (200, b""), PROBE_METHOD="HEAD", AUTHORIZATION="Bearer of-the-target")
        self.doubt(1, headers={"Authorization": "Bearer of-the-connector", "Cookie": "a=b"})
        self.none_left()
        head = {name.lower(): value for name, value in self.probe.heads[0].items()}
        self.assertNotIn("authorization", head)
        self.assertNotIn("cookie", head)
        self.assertTrue(head["user-agent"].startswith("sinkonce/"), head)
        self.assertEqual(self.probe.seen[0][0], "HEAD")
        self.restart(PROBE_AUTHORIZATION="Bearer of-the-probe")
        self.doubt(2)
        self.none_left()
        self.assertEqual(self.probe.heads[-1]["Authorization"], "Bearer of-the-probe")

    def test_a_person_may_be_faster_and_a_later_doubt_is_not_resolved_by_an_earlier_answer(self):
        gate = threading.Event()

        def answer(path):
            gate.wait(PATIENCE)
            return 404, b""
        self.probed(answer, PROBE_TIMEOUT="60s", PROBE_DELAY="0")
        self.doubt(1, apply="no")
        self.asked()
        (row,) = self.proxy.in_doubt()
        self.proxy.admin("POST", "/in-doubt/%s" % row["id"], {"resolution": "not-applied", "reason": "looked"})
        self.doubt(1)  # sent anew, applied, and in doubt anew, while the old answer is on its way
        self.probe.answer = lambda path: (500, b"")
        gate.set()
        self.asked(2)
        self.assertEqual((self.doubts(), self.applied(1)), (["orders/0/1"], 1))

    def test_many_doubts_of_many_records_are_all_resolved_a_few_at_a_time(self):
        self.target.set(apply="no")
        self.probed(lambda path: (404 if int(path.rsplit("/", 1)[1]) % 2 else 200, b""), IN_DOUBT_MAX="100000")
        body = b"[" + b",".join(harness.record("orders", 0, n) for n in range(1500)) + b"]"
        self.target.set(cut="answer", end="rst", next=1)
        self.proxy.post("/in", body)
        self.target.clear()
        wait_for(lambda: self.proxy.metric("sinkonce_in_doubt_records") == 0, "no doubt", 60, [self.proxy.log])
        self.assertEqual([self.state(n) for n in (0, 1, 2, 1499)], ["applied", "absent", "applied", "absent"])
        self.assertEqual(len(set(self.probe.seen)), 1500)


if __name__ == "__main__":
    harness.main()
