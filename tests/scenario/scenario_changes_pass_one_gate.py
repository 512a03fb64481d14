#!/usr/bin/env python3
"""Reads of the admin port are open; a change needs to come from this machine under a name of this machine, or with the
token, as JSON that is understood to the last member.
"""

import socket

import harness
from harness import PATIENCE

RIGHT = b'{"resolution":"applied","reason":"seen"}'


def outside_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
            address = probe.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") else address


class Test(harness.Scenario):
    def with_doubt(self, **settings):
        self.serve(**settings)
        self.doubt(1)
        self.path = "/in-doubt/%s" % self.proxy.in_doubt()[0]["id"]

    def change(self, body=RIGHT, path=None, host=None, method="POST", address="127.0.0.1", **fields):
        headers = {"Content-Type": "application/json", "Host": host or "127.0.0.1:%d" % self.proxy.admin_port}
        headers.update({name.replace("_", "-"): value for name, value in fields.items()})
        connection = harness.http.client.HTTPConnection(address, self.proxy.admin_port, timeout=PATIENCE)
        try:
            connection.request(method, path or self.path, body, {k: v for k, v in headers.items() if v is not None})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def assert_refused(self, statuses, **arguments):
        status, body = self.change(**arguments)
        self.assertIn(status, statuses if isinstance(statuses, tuple) else (statuses,), body)
        self.assertTrue(harness.sinkonce.json.loads(body)["error"], body)
        self.assertEqual(self.doubts(), ["orders/0/1"])

    def test_a_change_from_this_machine_is_taken(self):
        self.with_doubt()
        self.assertEqual(self.change()[0], 200)
        self.assertEqual(self.doubts(), [])

    def test_what_does_not_exist_is_404(self):
        self.with_doubt()
        self.assert_refused(404, path="/in-doubt/99999")
        self.assert_refused(404, path="/in-doubt/abc")
        self.assert_refused(404, path="/nowhere")
        self.assert_refused(404, path="/conflicts/1", body=b'{"decision":"same","reason":"x"}')

    def test_a_method_that_a_path_does_not_take_is_405(self):
        self.with_doubt()
        self.assert_refused(405, method="DELETE")
        self.assert_refused(405, path="/metrics")

    def test_a_body_that_is_not_understood_is_400(self):
        self.with_doubt()
        for body in (b"", b"nonsense", b"[]", b"{}", b'{"resolution":"applied"}', b'{"resolution":"maybe","reason":"x"}',
                     b'{"resolution":"applied","reason":""}', b'{"resolution":"applied","reason":"x","topc":"orders"}',
                     b'{"resolution":"applied","resolution":"not-applied","reason":"x"}', b'{"resolution":true,"reason":"x"}',
                     b'{"resolution":"applied","reason":"two\\nlines"}', RIGHT + b"{}"):
            with self.subTest(body=body):
                self.assert_refused(400, body=body)
        for body in (b'{"resolution":"applied","reason":"x"}', b'{"resolution":"applied","reason":"x","expect_count":-1}',
                     b'{"resolution":"applied","reason":"x","expect_count":1,"partition":0}',
                     b'{"resolution":"applied","reason":"x","expect_count":1,"topic":"orders","partition":0,"from":1}',
                     b'{"resolution":"applied","reason":"x","expect_count":1,"topic":"bad topic"}'):
            with self.subTest(body=body):
                self.assert_refused(400, path="/in-doubt", body=body)

    def test_a_content_type_that_a_form_can_send_is_refused(self):
        self.with_doubt()
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", None):
            with self.subTest(kind=kind):
                self.assert_refused((403, 415), **{"Content_Type": kind})

    def test_a_foreign_name_or_origin_is_refused(self):
        self.with_doubt()
        self.assert_refused(403, host="evil.example.test")
        self.assert_refused(403, host="127.0.0.1.evil.example.test")
        self.assert_refused(403, Origin="http://evil.example.test")
        self.assert_refused(403, Origin="null")
        self.assertEqual(self.change(host="localhost:%d" % self.proxy.admin_port)[0], 200)

    def test_from_beyond_loopback_a_token_is_needed(self):
        address = outside_address()
        if address is None:
            self.skipTest("this machine has no address beyond loopback")
        self.with_doubt(ADMIN_LISTEN="0.0.0.0:{admin_port}")
        self.assert_refused(403, address=address, host=address)
        self.restart(ADMIN_TOKEN="t0ken-t0ken-t0ken")
        for wrong in (None, "Bearer wrong", "Bearer t0ken-t0ken-t0ke", "Bearer t0ken-t0ken-t0kenn",
                      "Basic t0ken-t0ken-t0ken", "t0ken-t0ken-t0ken"):
            self.assert_refused(401, address=address, host=address, Authorization=wrong)
        self.assertEqual(self.change(address=address, host=address, Authorization="Bearer t0ken-t0ken-t0ken")[0], 200)

    def test_reads_are_open_and_change_nothing(self):
        self.with_doubt()
        for path in ("/livez", "/readyz", "/startupz", "/metrics", "/version", "/status", "/partitions", "/in-doubt",
                     "/conflicts", "/events", "/records?topic=orders&partition=0&offset=1"):
            self.assertEqual(self.proxy.admin("GET", path)[0], 200, path)
        for path in ("/in-doubt?limit=0&limit=1", "/in-doubt?nonsense=1", "/in-doubt?limit=x", "/records?topic=orders",
                     "/partitions?topic=a%20b"):
            self.assertEqual(self.proxy.admin("GET", path)[0], 400, path)
        self.assertEqual(self.doubts(), ["orders/0/1"])

    def test_the_admin_port_speaks_the_same_strict_http(self):
        self.with_doubt()
        for data in (b"GET /livez HTTP/1.1\r\n\r\n", b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
                     b"GET /livez HTTP/1.1\nHost: x\n\n"):
            with harness.Wire(self.proxy.admin_port) as wire:
                wire.send(data)
                self.assertEqual(wire.final().status, 400)
                self.assertTrue(wire.is_ended())

    def test_requests_that_are_never_whole_keep_no_probe_out(self):
        self.serve()
        wires = [harness.Wire(self.proxy.admin_port) for _ in range(100)]
        for wire in wires:
            self.addCleanup(wire.socket.close)
            wire.send(b"GET /liv")
        self.assertEqual(self.proxy.admin("GET", "/livez")[0], 200)

    def test_idle_connections_keep_no_probe_out(self):
        self.with_doubt()
        idle = [harness.Wire(self.proxy.admin_port) for _ in range(200)]
        self.assertEqual([self.proxy.admin("GET", "/livez")[0] for _ in range(5)], [200] * 5)
        for wire in idle:
            wire.socket.close()

    def test_secrets_are_shown_nowhere(self):
        self.with_doubt(ADMIN_TOKEN="t0ken-t0ken-t0ken", AUTHORIZATION="Bearer s3cr3t")
        self.restart(TARGET=self.target.url + "?key=s3cr3t")
        for path in ("/status", "/config", "/events", "/version", "/metrics"):
            text = str(self.proxy.admin("GET", path))
            self.assertNotIn("t0ken", text, path)
            self.assertNotIn("s3cr3t", text, path)
        printed = self.proxy.run("config", "print")
        self.assertNotIn("s3cr3t", printed.stdout + printed.stderr)
        with open(self.proxy.log, errors="replace") as log:
            said = log.read()
        self.assertEqual(said.count('"server.start"'), 2)
        self.assertNotIn("t0ken", said)
        self.assertNotIn("s3cr3t", said)


if __name__ == "__main__":
    harness.main()
