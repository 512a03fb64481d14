#!/usr/bin/env python3
"""What goes on to the target is byte for byte what the connector sent, less what ends here: the framing, the fields of
the connection, and names that only sinkonce may use.
"""

import glob
import os

import harness
from harness import Wire, chunked, post_bytes, record

WIRE = os.path.join(os.path.dirname(harness.HERE), "wire")
HOP_BY_HOP = ("Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "TE: trailers", "Upgrade: websocket",
              "Proxy-Authorization: Basic Og==", "Trailer: X-T", "HTTP2-Settings: AAMA")


class Test(harness.Scenario):
    settings = {"VIA": "off"}

    def one_shot(self, data, status=200):
        with Wire(self.proxy.port) as wire:
            wire.send(data)
            reply = wire.final()
            self.assertEqual(reply.status, status, reply)
            return reply

    def seen(self):
        """What the target got: request line, fields as (name, value), body."""
        head, _, body = self.target.last().partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        return lines[0], [tuple(line.split(": ", 1)) for line in lines[1:]], body

    def test_C_33_a_request_arrives_byte_for_byte_and_nothing_is_added(self):
        self.serve()
        body = record("orders", 0, 1)
        self.one_shot(post_bytes(body, "X-b: 1\r\nx-A:  two  words \r\nX-Empty:\r\nx_under: 3\r\n", path="/a?b=c"))
        expected = ("POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-b: 1\r\nx-A: two  words\r\nX-Empty:\r\nx_under: 3\r\n"
                    "Content-Length: %d\r\n\r\n" % (self.target.port, len(body)))
        self.assertEqual(self.comparable(self.target.last()), self.comparable(expected.encode() + body))

    @staticmethod
    def comparable(data):
        """Content-Length may stand anywhere; the rest keeps its order."""
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        framing = [line for line in lines if line.lower().startswith(b"content-length:")]
        return [line.rstrip() for line in lines if line not in framing], framing, body

    def test_C_33_P6_the_recorded_requests_of_connectors_arrive_with_their_own_bodies(self):
        self.serve(IDENTITY="off")
        self.is_journal_checked = False  # the same coordinates stand in several files
        for number, path in enumerate(sorted(glob.glob(os.path.join(WIRE, "*.http")))):
            with self.subTest(os.path.basename(path)):
                self.restart(DATA_DIR="%s-%d" % (self.proxy.data_dir, number))
                with open(path, "rb") as stored:
                    data = stored.read()
                seen = self.target.stats()["requests"]
                with Wire(self.proxy.port) as wire:
                    wire.send(data)
                    method = data.split(b" ")[0].decode()
                    reply = wire.final(method)
                if os.path.basename(path) == "edge-array-repeated-record.http":
                    continue  # the same record thrice in one request: cut, as scenario_batch_raw shows
                if os.path.basename(path) != "dapr-bulk.http":  # "ok" names no entry: it proves nothing there
                    self.assertEqual(reply.status, 200, reply)
                self.assertEqual(self.target.stats()["requests"], seen + 1)
                if method in ("POST", "PUT", "DELETE", "PATCH"):
                    head, _, body = data.partition(b"\r\n\r\n")
                    if b"transfer-encoding: chunked" in head.lower():
                        body = harness.unchunked(body)
                    self.assertEqual(self.seen()[2], body)
                    self.assertEqual(self.seen()[0], head.split(b"\r\n")[0].decode("latin-1"))

    def test_R_01_R_02_fields_of_the_connection_end_here(self):
        self.serve()
        lines = "".join(line + "\r\n" for line in HOP_BY_HOP)
        self.one_shot(post_bytes(record("orders", 0, 1), lines + "Connection: X-Secret, close\r\nX-Secret: 1\r\nX-Kept: 2\r\n"))
        names = {name.lower() for name, _ in self.seen()[1]}
        self.assertEqual(names, {"host", "x-kept", "content-length"})

    def test_R_05_R_06_via_is_added_and_a_loop_is_refused(self):
        self.serve(VIA="on")
        self.one_shot(post_bytes(record("orders", 0, 1), "Via: 1.0 other\r\n"))
        vias = [value for name, value in self.seen()[1] if name.lower() == "via"]
        self.assertEqual(vias[0], "1.0 other")
        self.assertRegex(vias[1], r"^1\.1 sinkonce-[0-9a-f]{8}$")
        seen = self.target.stats()["requests"]
        self.one_shot(post_bytes(record("orders", 0, 2), "Via: 1.0 other, %s, 1.1 last\r\n" % vias[1]), 508)
        self.assertEqual(self.target.stats()["requests"], seen)
        self.assertEqual(self.state(2), "absent")

    def test_R_05_via_can_be_switched_off(self):
        self.serve()
        self.one_shot(post_bytes(record("orders", 0, 1)))
        self.assertNotIn("via", {name.lower() for name, _ in self.seen()[1]})

    def test_R_07_options_counts_its_forwards_and_ends_here_at_zero(self):
        self.serve()
        options = "OPTIONS %s HTTP/1.1\r\nHost: x\r\nMax-Forwards: %s\r\n\r\n"
        self.one_shot((options % ("/in", "0")).encode())
        self.one_shot((options % ("*", "0")).encode())
        self.assertEqual(self.target.stats()["requests"], 0)
        self.one_shot((options % ("/in", "3")).encode())
        self.one_shot((options % ("*", "1")).encode())
        self.assertEqual(self.target.stats()["requests"], 2)
        self.one_shot(post_bytes(record("orders", 0, 1), "Max-Forwards: 3\r\n"))
        self.assertIn(("Max-Forwards", "3"), self.seen()[1])

    def test_R_08_R_09_order_case_and_repetition_of_fields_are_kept(self):
        self.serve()
        lines = ["x-z: 1", "X-A: 2", "x-a: 3", "X-Z: \x80\xff", "Cookie: a=b", "cookie: c=d", "X-A: 2"]
        self.one_shot(post_bytes(record("orders", 0, 1), "".join(line + "\r\n" for line in lines)))
        got = ["%s: %s" % field for field in self.seen()[1] if field[0].lower() not in ("host", "content-length")]
        self.assertEqual(got, lines)

    def test_R_10_authorization_passes_and_is_never_logged(self):
        self.serve(ACCESS_LOG="all", LOG_LEVEL="debug")
        self.target.set(status=401, header="WWW-Authenticate: Basic realm=x", next=1)
        reply = self.one_shot(post_bytes(record("orders", 0, 1), "Authorization: Bearer s3cr3t\r\n"), 401)
        self.assertEqual(reply.one("www-authenticate"), "Basic realm=x")
        self.assertIn(("Authorization", "Bearer s3cr3t"), self.seen()[1])
        self.proxy.stop()
        with open(self.proxy.log) as log:
            self.assertNotIn("s3cr3t", log.read())

    def test_R_10_authorization_of_ours_replaces_the_connectors(self):
        self.serve(AUTHORIZATION="Bearer ours")
        self.one_shot(post_bytes(record("orders", 0, 1), "Authorization: Bearer theirs\r\n"))
        self.assertEqual([value for name, value in self.seen()[1] if name.lower() == "authorization"], ["Bearer ours"])

    def test_R_15_R_17_chunks_become_an_exact_length_and_trailers_are_dropped(self):
        self.serve()
        body = record("orders", 0, 1)
        data = (b"POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n" +
                chunked(body[:7], body[7:])[:-2] + b"X-T: 1\r\nContent-Length: 3\r\n\r\n")
        self.one_shot(data)
        _, fields, got = self.seen()
        self.assertEqual(got, body)
        self.assertIn(("Content-Length", str(len(body))), fields)
        self.assertFalse({name.lower() for name, _ in fields} & {"transfer-encoding", "trailer", "x-t"})

    def test_R_25_the_target_is_forwarded_unchanged(self):
        self.serve()
        for offset, path in enumerate(("/a/../b", "/%2e%2E/x", "//x//y", "/a%00b", "/a?", "/?a=b?c&d=%20", "/;p=1", "/~'()!$&*+,=:@")):
            self.one_shot(post_bytes(record("orders", 0, offset), path=path))
            self.assertEqual(self.seen()[0], "POST %s HTTP/1.1" % path)

    def test_C_31_C_37_a_body_of_two_megabytes_arrives_whole_without_expect(self):
        self.serve()
        body = record("orders", 0, 1, pad="x" * 2000000)
        self.one_shot(post_bytes(body))
        self.assertEqual(self.target.lines()[0][1], harness.sinkonce.journal_hash(body))

    def test_C_38_proxies_of_the_environment_are_not_obeyed(self):
        trap = harness.sinkonce.Target().start()
        self.addCleanup(trap.close)
        for name in ("http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            os.environ[name] = trap.url
            self.addCleanup(os.environ.pop, name)
        self.serve()
        self.one_shot(post_bytes(record("orders", 0, 1)))
        self.assertEqual((self.target.stats()["applied"], trap.stats()["connections"]), (1, 0))

    def test_Z_15_a_connector_cannot_speak_in_our_name_or_choose_the_target(self):
        self.serve(KEY_HEADER="Idempotency-Key", SCOPE="payments")
        self.one_shot(post_bytes(record("orders", 0, 1), "Sinkonce-Outcome: applied\r\nsinkonce-x: 1\r\nIdempotency-Key: forged\r\n"
                                 "X-Forwarded-Host: evil\r\n"))
        _, fields, _ = self.seen()
        self.assertEqual([value for name, value in fields if name.lower() == "idempotency-key"], ["payments/orders/0/1"])
        self.assertFalse([name for name, _ in fields if name.lower().startswith("sinkonce-")])
        self.assertEqual([value for name, value in fields if name == "Host"], ["127.0.0.1:%d" % self.target.port])

    def test_the_hosts_field_can_be_kept_or_given(self):
        self.serve(HOST_HEADER="preserve")
        for offset, expected in enumerate(("sinkonce", "api.example.test")):
            self.one_shot(post_bytes(record("orders", 0, offset)))
            self.assertEqual([value for name, value in self.seen()[1] if name == "Host"], [expected])
            self.restart(HOST_HEADER="api.example.test")

    def test_coordinates_can_be_cut_out_before_sending(self):
        self.serve(STRIP="on")
        self.one_shot(post_bytes(b'{"a":1,"__topic":"orders","__partition":0,"__offset":1,"b":1.10}'))
        self.assertEqual(self.seen()[2], b'{"a":1,"b":1.10}')
        fields = "x-kafka-topic: orders\r\nx-kafka-partition: 0\r\nx-kafka-offset: 2\r\nX-Kept: 1\r\n"
        self.one_shot(post_bytes(b"plain", fields))
        self.assertEqual({name.lower() for name, _ in self.seen()[1]}, {"host", "x-kept", "content-length"})


if __name__ == "__main__":
    harness.main()
