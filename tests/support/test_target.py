#!/usr/bin/env python3
"""The counting target and its faults, over real sockets."""

import json
import os
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sinkonce


def answer_bytes(port, data, stop_after=None):
    """Send DATA; all bytes of the answer up to the end of the connection (or STOP_AFTER bytes), and how it ended."""
    got = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(data)
            while stop_after is None or len(got) < stop_after:
                piece = connection.recv(65536)
                if not piece:
                    return got, "close"
                got += piece
    except (ConnectionResetError, BrokenPipeError):  # an early reset may show in the connect or in the send
        return got, "rst"
    return got, "open"


def post(body, path="/x", more=""):
    return ("POST %s HTTP/1.1\r\nHost: t\r\n%sContent-Length: %d\r\n\r\n" % (path, more, len(body))).encode() + body


ONE = sinkonce.record("orders", 0, 7)
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


class TargetTest(unittest.TestCase):
    def setUp(self):
        self.target = sinkonce.Target(binary=os.environ["TARGET_BIN"]).start()
        self.addCleanup(self.target.close)

    def send(self, body=ONE, **more):
        return sinkonce.request(self.target.port, "POST", "/x", body, timeout=10, **more)

    def test_a_write_is_counted_and_in_the_journal_with_its_hash(self):
        self.assertEqual(self.send()[0], 200)
        self.send()
        self.assertEqual(self.target.count("orders/0/7"), 2)
        self.assertEqual(self.target.stats()["duplicates"], 1)
        self.assertEqual([line[:2] for line in self.target.lines()], [("orders/0/7", sinkonce.journal_hash(ONE))] * 2)

    def test_headers_and_paths_give_keys_too(self):
        names = {"X-Kafka-Topic": "orders", "x-kafka-partition": "3", "X-KAFKA-OFFSET": "9"}
        sinkonce.request(self.target.port, "POST", "/x", b"plain", names)
        sinkonce.request(self.target.port, "PUT", "/t/5?a=b", b"plain")
        sinkonce.request(self.target.port, "GET", "/t/6")
        self.assertEqual(self.target.counters()["keys"], {"orders/3/9": 1, "/t/5?a=b": 1})

    def test_each_object_of_an_array_is_a_record(self):
        batch = b"[" + ONE + b', {"a":"}{","n":{"x":1},"__topic":"o","__partition":1,"__offset":2}]'
        self.send(batch)
        self.assertEqual(self.target.counters()["keys"], {"orders/0/7": 1, "o/1/2": 1})

    def test_each_line_is_a_record(self):
        lines = [ONE, sinkonce.record("o", 1, 2)]
        self.send(b"\n".join(lines) + b"\n")
        self.assertEqual([line[:2] for line in self.target.lines()],
                         [(key, sinkonce.journal_hash(line)) for key, line in zip(("orders/0/7", "o/1/2"), lines)])

    def bulk(self, *actions):
        """Send actions (name, id, source or None); the answer and its items as (name, id, result or error, status)."""
        body = b""
        for name, doc_id, source in actions:
            body += json.dumps({name: {"_index": "i", "_id": doc_id}}).encode() + b"\n"
            body += b"" if source is None else source + b"\n"
        status, headers, answer = sinkonce.request(self.target.port, "POST", "/i/_bulk?timeout=1m", body)
        self.assertEqual((status, headers["content-type"]), (200, "application/json"))
        document = json.loads(answer)
        return document["errors"], [(name, item["_id"], item.get("result"), item["status"], "error" in item)
                                    for each in document["items"] for name, item in each.items()]

    def test_each_action_of_a_bulk_request_is_a_record_and_gets_an_item(self):
        errors, items = self.bulk(("index", "or+ders+0+7", b'{"a":1}'), ("create", "orders+0+8", b'{"_id":"o+1+1"}'),
                                  ("delete", "orders+0+9", None), ("update", "k", b'{"doc":' + ONE + b"}"))
        self.assertEqual((errors, items), (False, [
            ("index", "or+ders+0+7", "created", 201, False), ("create", "orders+0+8", "created", 201, False),
            ("delete", "orders+0+9", "deleted", 200, False), ("update", "k", "updated", 200, False)]))
        self.assertEqual(self.target.counters()["keys"],
                         {"or+ders/0/7": 1, "orders/0/8": 1, "orders/0/9": 1, "orders/0/7": 1})
        self.assertEqual(self.target.lines()[0][1], sinkonce.journal_hash(b'{"a":1}'))

    def test_the_last_actions_of_a_bulk_request_can_be_refused(self):
        self.target.set(refuse=2, next=1)
        errors, items = self.bulk(*(("index", "o+0+%d" % offset, b"{}") for offset in range(3)))
        self.assertEqual((errors, [item[2:] for item in items]),
                         (True, [("created", 201, False)] + [(None, 429, True)] * 2))
        self.assertEqual(self.target.counters()["keys"], {"o/0/0": 1})
        self.assertEqual([entry["applied"] for entry in self.target.faulted()], [True, False, False])

    def test_a_rule_with_a_body_or_status_answers_a_bulk_request_as_it_says(self):
        for rule in ({"body": "odd"}, {"status": 503}):
            self.target.set(**rule)
            answer = sinkonce.request(self.target.port, "POST", "/_bulk", b'{"delete":{"_id":"o+0+1"}}\n')
            self.assertEqual((answer[0], answer[2]), (rule.get("status", 200), rule.get("body", "ok\n").encode()))
        self.assertEqual(self.target.counters()["keys"], {"o/0/1": 1})

    def test_chunks_pipelines_and_pieces_are_understood(self):
        half = len(ONE) // 2
        chunked = (b"POST /x HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % half + ONE[:half] +
                   b"\r\n%x\r\n" % (len(ONE) - half) + ONE[half:] + b"\r\n0\r\n\r\n")
        got, _ = answer_bytes(self.target.port, chunked + post(ONE) + post(ONE), 3 * len(WHOLE))
        self.assertEqual(got, WHOLE * 3)
        with socket.create_connection(("127.0.0.1", self.target.port), timeout=10) as connection:
            for byte in chunked:
                connection.send(bytes([byte]))
            self.assertEqual(connection.recv(4096), WHOLE)
        self.assertEqual({line[:2] for line in self.target.lines()}, {("orders/0/7", sinkonce.journal_hash(ONE))})

    def test_expect_is_answered(self):
        with socket.create_connection(("127.0.0.1", self.target.port), timeout=10) as connection:
            whole = post(ONE, more="Expect: 100-continue\r\n")
            connection.sendall(whole[:-len(ONE)])
            self.assertEqual(connection.recv(4096), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(ONE)
            self.assertEqual(connection.recv(4096), WHOLE)

    def test_the_last_write_is_shown_byte_for_byte(self):
        sinkonce.wait_for(lambda: answer_bytes(self.target.port, post(ONE, "/a?b=%20"), 10), "an answer")
        self.assertEqual(self.target.last(), post(ONE, "/a?b=%20"))

    def test_each_cut_and_end(self):
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
        for cut, expected in (("answer", b""), ("status", b"HTTP/1.1 2"), ("head", head[:-6]), ("body", head + b"o")):
            for end in ("close", "rst"):
                with self.subTest(cut=cut, end=end):
                    self.target.set(cut=cut, end=end, next=1)
                    self.assertEqual(answer_bytes(self.target.port, post(ONE)), (expected, end))
                    self.assertEqual(self.send()[0], 200)
        self.assertEqual(self.target.stats()["applied"], 16)
        self.assertEqual(len(self.target.faulted()), 8)

    def test_early_cuts_apply_nothing(self):
        for cut in ("accept", "request"):
            for end in ("close", "rst"):
                with self.subTest(cut=cut, end=end):
                    self.target.set(cut=cut, end=end, next=1)
                    got, how = answer_bytes(self.target.port, post(ONE))
                    self.assertEqual(got, b"")
                    self.assertIn(how, (end, "rst"))
        self.assertEqual(self.target.stats()["applied"], 0)

    def test_apply_no_breaks_off_without_effect(self):
        self.target.set(cut="answer", end="rst", apply="no")
        self.assertEqual(answer_bytes(self.target.port, post(ONE)), (b"", "rst"))
        self.assertEqual(self.target.stats()["applied"], 0)
        self.assertEqual(self.target.faulted(), [{"key": "orders/0/7", "applied": False, "broken_off": True}])

    def test_each_record_of_a_request_that_meets_a_rule_is_remembered(self):
        self.target.set(delay=1)
        self.send(b"[" + ONE + b"," + sinkonce.record("orders", 1, 8) + b"]")
        self.assertEqual(self.target.faulted(), [{"key": key, "applied": True, "broken_off": False}
                                                 for key in ("orders/0/7", "orders/1/8")])
        self.assertEqual(self.target.stats()["faulted"], 1)

    def test_a_stalled_request_is_held_until_its_client_leaves(self):
        self.target.set(cut="answer", end="stall")
        with socket.create_connection(("127.0.0.1", self.target.port), timeout=10) as connection:
            connection.sendall(post(ONE))
            self.assertEqual(sinkonce.wait_for(self.target.held, "a held request"), ["orders/0/7"])
        sinkonce.wait_for(lambda: self.target.held() == [] and self.target.stats()["open"] == 0, "nothing held")
        self.assertEqual(self.target.stats()["applied"], 1)

    def test_a_late_application_happens_after_the_client_left(self):
        self.target.set(delay=300, when="before")
        with socket.create_connection(("127.0.0.1", self.target.port), timeout=10) as connection:
            connection.sendall(post(ONE))
            sinkonce.wait_for(self.target.held, "a held request")
            self.assertEqual(self.target.stats()["applied"], 0)
        sinkonce.wait_for(lambda: self.target.stats()["applied"] == 1, "the late application")

    def test_statuses_bodies_headers_chunks_and_raw_answers(self):
        self.target.set(status=503, next=2, header="Retry-After: 1")
        self.assertEqual([self.send()[0] for _ in range(3)], [503, 503, 200])
        self.assertEqual(self.target.stats()["applied"], 1)
        self.target.set(status=201, body="a&b=c d", chunked=1, pause=20)
        self.assertEqual((self.send()[0], self.send()[2]), (201, b"a&b=c d"))
        raw = "HTTP/1.1 299 Odd\r\nX: \x01\r\nContent-Length: 0\r\n\r\n"
        self.target.set(raw=raw, close=1)
        self.assertEqual(answer_bytes(self.target.port, post(ONE))[0], raw.encode())

    def test_rules_choose_by_number_key_and_chance(self):
        self.target.set(status=500, every=3)
        self.assertEqual([self.send()[0] for _ in range(6)], [200, 200, 500] * 2)
        self.target.set(status=500, key="/8$")
        self.assertEqual([self.send(sinkonce.record("o", 0, n))[0] for n in (7, 8, 88)], [200, 500, 200])
        runs = []
        for _ in range(2):
            self.target.set(status=500, probability=0.5, seed=7)
            runs.append([self.send()[0] for _ in range(40)])
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(set(runs[0]), {200, 500})

    def test_a_refusing_target_listens_again_on_its_port(self):
        self.target.refuse()
        with self.assertRaises(ConnectionRefusedError):
            self.send()
        self.target.listen()
        self.assertEqual(self.send()[0], 200)

    def test_a_probe_is_answered_from_the_counts(self):
        self.send()
        asked = [sinkonce.request(self.target.port, "GET", "/applied/orders/0/%d" % n)[0] for n in (7, 8)]
        self.assertEqual(asked, [200, 404])

    def test_the_journal_goes_on_over_a_kill(self):
        self.send()
        self.target.kill()
        self.target.start()
        self.send()
        self.assertEqual(len(self.target.lines()), 2)

    def test_a_unix_socket_is_served(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            target = sinkonce.Target(binary=os.environ["TARGET_BIN"], options=["--unix", path]).start()
            self.addCleanup(target.close)
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(post(ONE))
                self.assertEqual(connection.recv(4096), WHOLE)
            self.assertEqual(target.stats()["applied"], 1)

    def test_what_is_not_http_is_refused(self):
        self.assertIn(b" 400 ", answer_bytes(self.target.port, b"nonsense\r\n\r\n")[0])

    def test_an_order_that_is_not_understood_is_refused(self):
        with self.assertRaises(RuntimeError):
            self.target.set(cut="sideways")


if __name__ == "__main__":
    unittest.main()
