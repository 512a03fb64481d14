#!/usr/bin/env python3
"""Targets that answer early, late, slowly, too much, or close what they should keep; each write reaches them once."""

import socket
import threading

import harness
from harness import PATIENCE, Wire, post_bytes, record, wait_for

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Scripted:
    """A target in this process: SERVE(connection) for each connection, in a thread of its own."""

    def __init__(self, serve):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.serve, self.requests, self.connections = serve, 0, 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        with connection:
            try:
                self.serve(self, connection)
            except (OSError, EOFError):
                pass

    def request(self, connection):
        """The next whole request of CONNECTION."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.some(connection)
        head, _, body = data.partition(b"\r\n\r\n")
        length = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        while length and len(body) < length[0]:
            body += self.some(connection)
        self.requests += 1
        return head, body

    @staticmethod
    def some(connection):
        piece = connection.recv(1 << 16)
        if not piece:
            raise EOFError
        return piece

    def close(self):
        self.listener.close()


class Test(harness.Scenario):
    def before(self, serve, **settings):
        self.odd = Scripted(serve)
        self.addCleanup(self.odd.close)
        self.serve(TARGET=self.odd.url, **settings)

    def test_C_10_22_an_early_413_while_the_body_is_sent_is_a_refusal(self):
        def early(odd, connection):
            odd.some(connection)
            connection.sendall(b"HTTP/1.1 413 No\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
            while odd.some(connection):
                pass
        self.before(early)
        answer = self.send(1, pad="x" * 10000000)
        self.assertEqual((answer.status, answer.body), (413, b"big"))
        self.assertEqual((self.state(1), self.doubts()), ("absent", []))

    def test_an_answer_of_ten_megabytes_reaches_a_slow_reader_whole(self):
        body = bytes(range(256)) * 40000

        def large(odd, connection):
            odd.request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.before(large)
        with Wire(self.proxy.port, receive_bytes=4096) as wire:
            wire.send(post_bytes(record("orders", 0, 1)))
            wait_for(lambda: self.state(1) == "applied", "the record to be applied", PATIENCE)
            self.assertEqual(wire.final().body, body)

    def test_an_answer_that_comes_byte_by_byte_is_understood(self):
        def drip(odd, connection):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                odd.request(connection)
                for byte in OK:
                    connection.sendall(bytes([byte]))
        self.before(drip)
        for offset in range(3):
            self.assertEqual(self.send(offset).body, b"ok")

    def test_a_target_that_closes_after_each_answer_is_met_anew_each_time(self):
        def close(odd, connection):
            odd.request(connection)
            connection.sendall(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        self.before(close)
        for offset in range(30):
            self.assertEqual(self.send(offset).status, 200)
        self.assertEqual((self.odd.requests, self.odd.connections, self.doubts()), (30, 30, []))

    def test_with_no_reuse_a_target_that_closes_without_a_word_leaves_no_doubt(self):
        def close(odd, connection):
            odd.request(connection)
            connection.sendall(OK)
        self.before(close, TARGET_IDLE="0")
        for offset in range(30):
            self.assertEqual(self.send(offset).status, 200)
        self.assertEqual((self.odd.requests, self.doubts()), (30, []))

    def test_an_idle_connection_is_not_used_after_the_targets_own_time(self):
        def short(odd, connection):
            while True:
                odd.request(connection)
                connection.sendall(OK.replace(b"\r\n\r\n", b"\r\nKeep-Alive: timeout=0\r\n\r\n"))
        self.before(short, WORKERS="1")
        for offset in range(5):
            self.assertEqual(self.send(offset).status, 200)
        self.assertEqual(self.odd.connections, 5)

    def test_a_used_connection_serves_many_writes(self):
        def keep(odd, connection):
            while True:
                odd.request(connection)
                connection.sendall(OK)
        self.before(keep, WORKERS="1", TARGET_IDLE="60s")
        with Wire(self.proxy.port) as wire:
            for offset in range(50):
                wire.send(post_bytes(record("orders", 0, offset)))
                self.assertEqual(wire.final().status, 200)
        self.assertEqual((self.odd.requests, self.odd.connections), (50, 1))

    def test_an_answer_to_nothing_does_not_become_the_answer_of_the_next(self):
        def twice(odd, connection):
            while True:
                odd.request(connection)
                connection.sendall(OK + b"HTTP/1.1 500 Odd\r\nContent-Length: 3\r\n\r\nodd")
        self.before(twice, WORKERS="1")
        for offset in range(6):
            answer = self.send(offset)
            self.assertIn((answer.status, answer.body), ((200, b"ok"),))
        self.assertEqual(self.doubts(), [])

    def test_a_head_that_never_ends_is_in_doubt_and_bounded(self):
        def endless(odd, connection):
            odd.request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while True:
                connection.sendall(b"X: " + b"a" * 60000 + b"\r\n")
        self.before(endless)
        self.assert_own(self.send(1), 503, "in-doubt", "in-doubt")

    def test_many_fields_pass_and_too_many_are_in_doubt(self):
        def many(odd, connection):
            while True:
                head, _ = odd.request(connection)
                count = int(head.split(b" ")[1].rpartition(b"/")[2])
                fields = b"".join(b"X-%d: a\r\n" % n for n in range(count - 1))
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + fields + b"Content-Length: 0\r\n\r\n")
        self.before(many)
        for count, status in ((95, 200), (101, 503)):
            got, _, _ = self.proxy.post("/%d" % count, record("orders", 0, count))
            self.assertEqual(got, status)

    def test_a_body_behind_a_head_that_allows_none_reaches_nobody(self):
        def wrong(odd, connection):
            while True:
                odd.request(connection)
                connection.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello")
        self.before(wrong, WORKERS="1")
        for offset in range(4):
            with Wire(self.proxy.port) as wire:
                wire.send(post_bytes(record("orders", 0, offset), "Connection: close\r\n"))
                reply = wire.final()
                self.assertIn(reply.status, (204, 503))
                self.assertEqual(wire.rest(), b"")

    def test_R_22_an_answer_without_records_that_is_cut_is_503_and_never_looks_whole(self):
        def cut(odd, connection):
            odd.request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        self.before(cut)
        status, _, body = self.proxy.send("GET", "/in")
        self.assertEqual(status, 503)
        self.assertNotIn(b"hello", body)

    def test_a_target_that_accepts_and_says_nothing_times_out_and_others_go_on(self):
        def silent(odd, connection):
            odd.request(connection)
            while odd.some(connection):
                pass
        self.before(silent, TARGET_TIMEOUT="1s", WORKERS="1")
        calls = [self.later(self.send, offset) for offset in range(20)]
        self.assertEqual({call.result().outcome for call in calls}, {"in-doubt"})
        self.assertEqual((self.odd.requests, len(self.doubts())), (20, 20))


if __name__ == "__main__":
    harness.main()
