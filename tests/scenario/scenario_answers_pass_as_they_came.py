#!/usr/bin/env python3
"""The target's answer goes back to the connector as it is, in a framing of our own that is always right; an answer
that contradicts itself never does.
"""

import harness
from harness import Wire, post_bytes, record


class Test(harness.Scenario):
    def setUp(self):
        super().setUp()
        self.offset = 0

    def ask(self, method="POST", version="1.1", **rule):
        """One write under RULE: the reply."""
        self.offset += 1
        if rule:
            self.target.set(next=1, **rule)
        with Wire(self.proxy.port) as wire:
            if method in ("POST", "DELETE"):
                wire.send(post_bytes(record("orders", 0, self.offset), version=version, method=method))
            else:
                wire.send(("%s /in HTTP/1.1\r\nHost: x\r\n\r\n" % method).encode())
            reply = wire.final(method)
            if reply.one("connection") == "close":
                self.assertTrue(wire.is_ended())
            else:  # the connection is where it should be: the next answer is understood
                wire.send(b"GET /probe HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(wire.final("GET").status, 200)
            return reply

    def test_status_fields_and_body_are_those_of_the_target(self):
        self.serve()
        reply = self.ask(status=201, body='{"id": 7}', header="Location: /x/7\r\nX-A: 1\r\nx-a: 2\r\n"
                                                              "Set-Cookie: a=b\r\nSet-Cookie: c=d")
        self.assertEqual((reply.status, reply.body), (201, b'{"id": 7}'))
        self.assertEqual([value for name, value in reply.fields if name.lower() == "x-a"], ["1", "2"])
        self.assertEqual(reply.all("set-cookie"), ["a=b", "c=d"])
        self.assertEqual(reply.one("location"), "/x/7")

    def test_R_04_fields_of_the_targets_connection_end_here(self):
        self.serve()
        reply = self.ask(header="Connection: X-Secret, keep-alive\r\nX-Secret: 1\r\nKeep-Alive: timeout=9\r\nTrailer: T\r\nX-Kept: 1")
        names = {name.lower() for name, _ in reply.fields}
        self.assertFalse(names & {"x-secret", "keep-alive", "trailer", "connection"}, reply)
        self.assertIn("x-kept", names)

    def test_the_target_cannot_speak_in_our_name(self):
        self.serve()
        reply = self.ask(header="Sinkonce-Outcome: duplicate\r\nIdempotency-Replayed: true")
        self.assertEqual((reply.all("sinkonce-outcome"), reply.all("idempotency-replayed")), ([], []))

    def test_R_13_C_51_interim_answers_are_dropped(self):
        self.serve()
        reply = self.ask(raw="HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\nSet-Cookie: a=b\r\n\r\n"
                             "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        self.assertEqual((reply.status, reply.body), (200, b"ok"))
        self.assertEqual(reply.all("link") + reply.all("set-cookie"), [])
        self.assertEqual(self.state(1), "applied")

    def test_R_14_a_change_of_protocols_is_in_doubt(self):
        self.serve()
        reply = self.ask(raw="HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", close=1)
        self.assertEqual(reply.status, 503)
        self.assertEqual(self.state(1), "in_doubt")

    def test_R_16_C_50_trailers_of_the_target_are_dropped(self):
        self.serve()
        reply = self.ask(raw="HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Set-Cookie\r\n\r\n"
                             "2\r\nok\r\n0\r\nSet-Cookie: a=b\r\n\r\n")
        self.assertEqual((reply.status, reply.body, reply.all("set-cookie")), (200, b"ok", []))
        self.assertEqual(reply.one("content-length"), "2")

    def test_R_19_C_53_contradicting_lengths_are_in_doubt_and_nothing_of_them_is_passed_on(self):
        self.serve()
        for raw in ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nhello",
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                    "HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\n\r\nhello"):
            reply = self.ask(raw=raw, close=1)
            self.assertEqual((reply.status, reply.one("sinkonce-outcome")), (503, "in-doubt"))
            self.assertNotIn(b"hello", reply.body)
        self.assertEqual(len(self.doubts()), 3)

    def test_R_20_what_has_no_body_gets_none(self):
        self.serve()
        reply = self.ask(raw="HTTP/1.1 204 No Content\r\nX: y\r\n\r\n")
        self.assertEqual((reply.status, reply.body, reply.all("content-length")), (204, b"", []))
        reply = self.ask(method="GET", raw="HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n")
        self.assertEqual((reply.status, reply.one("etag")), (304, '"a"'))
        reply = self.ask(method="HEAD", raw="HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
        self.assertEqual((reply.status, reply.one("content-length")), (200, "1234"))

    def test_R_22_A6_an_answer_cut_in_its_body_is_applied_and_never_looks_whole(self):
        self.serve()
        for rule in ({"cut": "body", "end": "close"}, {"cut": "body", "end": "rst"}, {"cut": "body", "end": "close", "chunked": 1}):
            reply = self.ask(body="x" * 1000, **rule)
            self.assertEqual((reply.status, reply.body, reply.one("sinkonce-outcome")), (200, b"", "applied"), rule)
        self.assertEqual(self.doubts(), [])
        self.assertEqual([self.state(n) for n in (1, 2, 3)], ["applied"] * 3)
        self.target.clear()
        again = self.send(1)
        self.assertEqual((again.status, again.outcome, again.body, again.is_replayed), (200, "duplicate", b"", True))

    def test_H_51_words_of_the_target_never_become_lines_of_ours(self):
        self.serve()
        reply = self.ask(raw="HTTP/1.1 200 Some: words\r\nX-Odd: a\tb\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(reply.line, "HTTP/1.1 200 OK")
        for raw in ("HTTP/1.1 200 OK\r\nBad Name: 1\r\nContent-Length: 0\r\n\r\n",
                    "HTTP/1.1 200 OK\r\nX: a\rInjected: 1\r\nContent-Length: 0\r\n\r\n",
                    "HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 0\r\n\r\n"):
            reply = self.ask(raw=raw, close=1)
            self.assertEqual(reply.status, 503, reply)
            self.assertEqual(reply.all("injected"), [])

    def test_H_52_http_1_0_gets_a_complete_answer_and_a_close(self):
        self.serve()
        reply = self.ask(version="1.0", body="hello")
        self.assertEqual((reply.body, reply.one("content-length"), reply.one("connection")), (b"hello", "5", "close"))

    def test_C_55_bytes_behind_an_answer_are_given_to_nobody(self):
        self.serve(WORKERS="1")
        self.ask(raw="HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 299 Odd\r\nContent-Length: 3\r\n\r\nodd")
        reply = self.ask()
        self.assertEqual((reply.status, reply.body), (200, b"ok\n"))

    def test_C_57_a_coded_body_passes_untouched(self):
        self.serve()
        reply = self.ask(header="Content-Encoding: gzip", body="\x1f\x8bnot really")
        self.assertEqual((reply.one("content-encoding"), reply.body), ("gzip", "\x1f\x8bnot really".encode()))

    def test_C_58_an_answer_above_the_limit_is_applied_and_left_out(self):
        self.serve(MAX_RESPONSE="2KiB")
        reply = self.ask(body="x" * 5000)
        self.assertEqual((reply.status, reply.body, reply.one("sinkonce-outcome")), (200, b"", "applied"))
        self.assertEqual(self.state(1), "applied")
        reply = self.ask(method="GET", body="x" * 5000)
        self.assertEqual(reply.status, 502)

    def test_an_answer_that_ends_with_its_connection_is_passed_on(self):
        self.serve()
        reply = self.ask(raw="HTTP/1.0 200 OK\r\nX: y\r\n\r\nuntil the end", close=1)
        self.assertEqual((reply.status, reply.body, reply.one("content-length")), (200, b"until the end", "13"))


if __name__ == "__main__":
    harness.main()
