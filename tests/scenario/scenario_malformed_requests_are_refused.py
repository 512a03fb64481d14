#!/usr/bin/env python3
"""Whatever two readers of HTTP could understand in two ways is refused, the connection is closed, and the target sees
nothing of it.  What is odd but clear is forwarded, and the connection stays open.

Each row: id, what it is, the bytes, the statuses that are right, and whether the connection is closed after it.
"""

import harness
from harness import Wire, chunked, post_bytes, record

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b"hello"


def head(*lines, start="POST /in HTTP/1.1", host=True):
    """A request head of whole lines, each ended by CRLF."""
    lines = ([start] if start else []) + (["Host: x"] if host else []) + list(lines)
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def length(value):
    return head("Content-Length: " + value) + BODY


def coding(value, start="POST /in HTTP/1.1"):
    return head("Transfer-Encoding: " + value, start=start) + chunked(BODY)


def chunks(raw):
    return head("Transfer-Encoding: chunked") + raw


def get(target, version="HTTP/1.1"):
    return b"GET " + target.encode("latin-1") + b" " + version.encode("latin-1") + b"\r\nHost: x\r\n\r\n"


REFUSED = [
    ("H-01", "the same Content-Length twice", head("Content-Length: 5", "Content-Length: 5") + BODY, {400}),
    ("H-02", "two Content-Lengths that differ", head("Content-Length: 0", "Content-Length: 35") + SMUGGLED, {400}),
    ("H-03", "a space before the colon of Content-Length", head("Content-Length : 35") + SMUGGLED, {400}),
    ("H-04", "a space before the colon of Transfer-Encoding", head("Transfer-Encoding : chunked") + chunked(BODY), {400}),
    *[("H-05", "Content-Length %r" % value, length(value), {400}) for value in ("+5", "-0", "05", "\v5", "5\0 9")],
    *[("H-06", "Content-Length %r" % value, length(value), {400}) for value in ("5, 5", "-5", "0x5", "", "5 5", "1e1")],
    *[("H-07", "Content-Length %s" % value, head("Content-Length: " + value) + BODY, {413})
      for value in ("18446744073709551621", "9223372036854775808", "99999999999999999999999999999999", "16777217")],
    ("H-08", "Content-Length and Transfer-Encoding", head("Content-Length: 5", "Transfer-Encoding: chunked") + chunked(BODY), {400}),
    ("H-08", "Transfer-Encoding and Content-Length", head("Transfer-Encoding: chunked", "Content-Length: 5") + chunked(BODY), {400}),
    *[("H-09", "Transfer-Encoding %r" % value, coding(value), {400}) for value in ("gzip", "identity", "", "chunked, gzip")],
    *[("H-10", "Transfer-Encoding %r" % value, coding(value), {400})
      for value in ("xchunked", '"chunked"', "\vchunked", "chunked, chunked", "chunked;a=b", "chu nked")],
    ("H-10", "Transfer-Encoding twice", head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + chunked(BODY), {400}),
    ("H-11", "Transfer-Encoding gzip, chunked", coding("gzip, chunked"), {501}),
    ("H-12", "chunked on HTTP/1.0", coding("chunked", "POST /in HTTP/1.0"), {400}),
    ("H-13", "an endless chunk extension", chunks(b"5;" + b"a" * 100000), {400}),
    *[("H-14", "chunk size %r" % size, chunks(size + b"\r\nhello\r\n0\r\n\r\n"), {400})
      for size in (b"0x5", b"+5", b"-0", b"5 xyz", b"5\0zz", b" 5", b"", b"g", b"5;", b"10000000000000005")],
    ("H-15", "chunk data not followed by CRLF", chunks(b"5\r\nhelloX\r\n0\r\n\r\n"), {400}),
    ("H-15", "chunk data longer than its size", chunks(b"3\r\nhello\r\n0\r\n\r\n"), {400}),
    ("H-16", "an empty line before a chunk size", chunks(b"\r\n5\r\nhello\r\n0\r\n\r\n"), {400}),
    ("H-16", "bare LF in chunks", chunks(b"5\nhello\n0\n\n"), {400}),
    ("H-16", "bare LF after the last chunk", chunks(b"5\r\nhello\r\n0\r\n\n"), {400}),
    ("H-17", "a trailer without a name", chunks(b"0\r\n: x\r\n\r\n"), {400}),
    ("H-18", "bare LF everywhere", b"POST /in HTTP/1.1\nHost: x\nContent-Length: 5\n\nhello", {400}),
    ("H-18", "one bare LF", b"POST /in HTTP/1.1\r\nHost: x\nContent-Length: 5\r\n\r\nhello", {400}),
    ("H-19", "a bare CR in a value", head("X: a\rb", "Content-Length: 5") + BODY, {400}),
    ("H-19", "CR CR LF", b"POST /in HTTP/1.1\r\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", {400}),
    ("H-20", "a folded field", head("X: a", " b", "Content-Length: 5") + BODY, {400}),
    ("H-20", "a folded Content-Length", head("Content-Length:", " 5") + BODY, {400}),
    ("H-20", "a folded Transfer-Encoding", head("Transfer-Encoding:", "\tchunked") + chunked(BODY), {400}),
    ("H-20", "a folded first line", b"POST /in HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n", {400}),
    ("H-21", "a line that starts with NUL", head("\0X: a", "Content-Length: 5") + BODY, {400}),
    ("H-22", "NUL in a value", head("X: a\0b", "Content-Length: 5") + BODY, {400}),
    ("H-22", "NUL in the request line", b"POST /i\0n HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", {400}),
    *[("H-23", "the line %r" % line, head(line, "Content-Length: 5") + BODY, {400})
      for line in (": x", "Fo(o: x", "no colon", "N\xe4me: x", "a b: c")],
    ("H-24", "1.1 without Host", head("Content-Length: 5", host=False) + BODY, {400}),
    ("H-24", "two Hosts", head("Host: y", "Content-Length: 5") + BODY, {400}),
    *[("H-24", "Host %r" % value, head("Host: " + value, "Content-Length: 5", host=False) + BODY, {400})
      for value in ("a b", "x/y", "user@x", "x:port", "[::1", "", "x,y", "x:99999999")],
    ("H-25", "HEAD with Content-Length", head("Content-Length: 35", start="HEAD /in HTTP/1.1") + SMUGGLED, {400}),
    ("H-25", "HEAD with chunks", head("Transfer-Encoding: chunked", start="HEAD /in HTTP/1.1") + chunked(BODY), {400}),
    *[("H-26", "method %s" % name, head(start=name + " /in HTTP/1.1"), {501}) for name in ("FOO", "get", "Post", "PROPFIND")],
    ("H-26", "an endless method", b"A" * 70000, {501}),
    ("H-26", "TRACE", head(start="TRACE /in HTTP/1.1"), {405}),
    ("H-26", "CONNECT", head(start="CONNECT x:443 HTTP/1.1"), {405, 400}),
    *[("H-29", "target %r" % target, get(target), {400})
      for target in ("/a b", "/a\x01", "/a\x80", "/\xc3\xa4", "/a\tb", "/a#b", "a", "*")],
    *[("H-30", "version %s" % version, get("/", version), {400})
      for version in ("HTTP/-5.1", "HTTP/1.01", "http/1.1", "HTTP/1.1 ", "HTTP/1", "XTTP/1.1")],
    *[("H-30", "version %s" % version, get("/", version), {505}) for version in ("HTTP/1.9", "HTTP/0.9", "HTTP/2.0", "HTTP/3.0")],
    ("H-30", "no version", b"GET /\r\n\r\n", {400}),
    ("H-31", "two empty lines before the request line", b"\r\n\r\n" + get("/"), {400}),
    ("H-31", "a bare LF before the request line", b"\n" + get("/"), {400}),
    ("H-35", "another Expect", head("Expect: 200-ok", "Content-Length: 5") + BODY, {417}),
    ("H-35", "Expect 100-continue and another", head("Expect: 100-continue, x", "Content-Length: 5") + BODY, {417}),
    ("H-36", "an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400}),
    ("H-36", "a TLS hello", bytes.fromhex("16030100b7010000b30303") + b"\xaa" * 100 + b"\r\n\r\n", {400}),
    ("H-40", "a head that is too large", head(*["X-%d: %s" % (n, "a" * 2000) for n in range(40)]), {431}),
    ("H-43", "101 fields", head(*["X-%d: a" % n for n in range(100)]), {431}),
    ("R-03", "Connection lists Content-Length", head("Connection: Content-Length", "Content-Length: 5") + BODY, {400}),
    ("R-03", "Connection lists Host", head("Connection: close, host", "Content-Length: 5") + BODY, {400}),
    ("R-26", "a target above 8 KiB", get("/" + "a" * 8300), {414}),
    ("R-26", "a body above the cap, in chunks", chunks(b"1000001\r\n"), {413}),
    ("SMUG", "Content_Length", head("Content_Length: 5", "Content-Length: 5") + BODY, {400}),
    ("SMUG", "Transfer_Encoding", head("Transfer_Encoding: chunked", "Content-Length: 5") + BODY, {400}),
]

# id, what, bytes, is the connection closed after it, what follows "POST " or "GET " at the target
ACCEPTED = [
    ("H-05", "a tab before a length", length("\t5"), False),
    ("H-13", "a chunk extension", chunks(b"5;a=b\r\nhello\r\n0;c\r\n\r\n"), False),
    ("H-14", "a size with leading zeros and letters", chunks(b"000000A\r\nhellohello\r\n0\r\n\r\n"), False),
    ("H-17", "trailers", chunks(b"5\r\nhello\r\n0\r\nContent-Length: 99\r\nX: y\r\n\r\n"), False),
    ("H-24", "HTTP/1.0 without Host", head("Content-Length: 5", start="POST /in HTTP/1.0", host=False) + BODY, True),
    ("H-27", "GET with a body", head("Content-Length: 5", start="GET /in HTTP/1.1") + BODY, False),
    ("H-28", "an absolute form", get("http://evil:81/p?q"), False),
    ("H-28", "a path of two slashes", get("//evil/p"), False),
    ("H-31", "an empty line before the request line", b"\r\n" + get("/"), False),
    ("H-32", "Connection: close, TE", head("Connection: close, TE", "Content-Length: 5") + BODY, True),
    ("H-32", "two Connection fields", head("Connection: TE", "Connection: close", "Content-Length: 5") + BODY, True),
    ("H-36", "Upgrade: h2c", head("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMA",
                                  start="GET /in HTTP/1.1"), False),
    ("R-29", "HTTP/1.0", b"GET / HTTP/1.0\r\n\r\n", True),
    ("R-29", "HTTP/1.0 that asks to be kept", b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", None),
    ("R-23", "a Host with a port", b"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", False),
]


class Test(harness.Scenario):
    settings = {"HEAD_TIMEOUT": "60s"}

    def shot(self, data):
        """Send DATA: the reply, and whether the connection ended after it."""
        with Wire(self.proxy.port) as wire:
            wire.send(data)
            reply = wire.final()
            if reply.one("connection") == "close":
                return reply, wire.is_ended()
            wire.send(get("/probe"))
            self.assertEqual(wire.final().status, 200, "the next request on the connection")
            return reply, False

    def test_H_what_is_refused_is_answered_closed_and_never_seen_by_the_target(self):
        self.serve()
        for row, words, data, statuses in REFUSED:
            with self.subTest(row, words=words):
                seen = self.target.stats()
                reply, is_ended = self.shot(data)
                self.assertIn(reply.status, statuses, reply)
                self.assertTrue(is_ended, "the connection is closed")
                self.assertEqual(reply.line.split(" ")[0], "HTTP/1.1")
                self.assertEqual(reply.one("content-length"), str(len(reply.body)))
                self.assertTrue(harness.sinkonce.json.loads(reply.body)["error"])
                if reply.status == 405:
                    self.assertIn("POST", reply.one("allow"))
                now = self.target.stats()
                self.assertEqual((now["requests"], now["connections"]), (seen["requests"], seen["connections"]))
        metrics = self.proxy.metrics()
        refused = sum(metrics['sinkonce_http_refused_total{reason="%s"}' % reason] for reason in ("malformed", "too_large"))
        self.assertEqual(refused, len(REFUSED))

    def test_H_what_is_odd_but_clear_is_forwarded_once(self):
        self.serve()
        for row, words, data, is_closed in ACCEPTED:
            with self.subTest(row, words=words):
                seen = self.target.stats()["requests"]
                reply, is_ended = self.shot(data)
                self.assertEqual(reply.status, 200, reply)
                if is_closed is not None:
                    self.assertEqual(is_ended, is_closed)
                probes = 0 if is_ended else 1
                self.assertEqual(self.target.stats()["requests"] - seen, 1 + probes)

    def test_H_28_an_absolute_target_never_chooses_the_way(self):
        self.serve()
        body = record("orders", 0, 1)
        self.shot(post_bytes(body, path="http://evil:81/a/../b?q=%20"))
        self.assertTrue(self.target.last().startswith(b"POST /a/../b?q=%20 HTTP/1.1\r\n"), self.target.last())
        self.shot(post_bytes(record("orders", 0, 2), path="//evil/p"))
        self.assertTrue(self.target.last().startswith(b"POST //evil/p HTTP/1.1\r\n"), self.target.last())
        self.assertIn(b"\r\nHost: 127.0.0.1:%d\r\n" % self.target.port, self.target.last())

    def test_R_21_a_body_shorter_than_its_length_is_refused_and_nothing_is_sent(self):
        self.serve()
        for data in (post_bytes(record("orders", 0, 1))[:-3], head("Transfer-Encoding: chunked") + b"5\r\nhel"):
            with Wire(self.proxy.port) as wire:
                wire.send(data)
                wire.end_output()
                self.assertEqual(wire.final().status, 400)
                self.assertTrue(wire.is_ended())
        self.assertEqual(self.target.stats()["requests"], 0)
        self.assertEqual(self.state(1), "absent")

    def test_H_smuggled_bytes_behind_a_refused_request_are_not_served(self):
        self.serve()
        for data in (head("Content-Length: 0", "Content-Length: 35"), head("Content-Length : 35"), coding("xchunked")):
            with Wire(self.proxy.port) as wire:
                wire.send(data + SMUGGLED + SMUGGLED)
                self.assertEqual(wire.final().status, 400)
                self.assertEqual(wire.rest(), b"")
        self.assertEqual(self.target.stats()["requests"], 0)

    def test_H_a_request_cut_anywhere_means_the_same(self):
        self.serve()
        data = head("Transfer-Encoding: chunked", "X: y") + b"5;a=b\r\nhello\r\n0\r\nT: u\r\n\r\n"
        for cut in range(1, len(data), 7):
            with Wire(self.proxy.port) as wire:
                wire.send(data[:cut])
                wire.send(data[cut:])
                self.assertEqual(wire.final().status, 200, cut)
        with Wire(self.proxy.port) as wire:
            for byte in data:
                wire.send(bytes([byte]))
            self.assertEqual(wire.final().status, 200)
        self.assertTrue(self.target.last().endswith(b"\r\n\r\nhello"), self.target.last())


if __name__ == "__main__":
    harness.main()
