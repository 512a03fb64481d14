#!/usr/bin/env python3
"""Whatever a peer can grow has a limit: bytes, fields, connections, requests, descriptors and time."""

import gzip
import resource
import socket
import threading
import time
import unittest

import harness
from harness import PATIENCE, Wire, post_bytes, record, rss_kib, wait_for

RSS_LIMIT_KIB = 64 * 1024


class Talker:
    """A target that gives each request without a body the same ANSWER."""

    def __init__(self, answer):
        self.answer, self.request_count = answer, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                peer = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        with peer:
            got = b""
            while True:
                while b"\r\n\r\n" not in got:
                    piece = peer.recv(65536)
                    if not piece:
                        return
                    got += piece
                got = got.partition(b"\r\n\r\n")[2]
                self.request_count += 1
                peer.sendall(self.answer)


class Test(harness.Scenario):
    def alive(self, offset=900):
        self.assertEqual(self.send(offset).status, 200)

    def assert_small(self):
        if not harness.is_sanitized():
            self.assertLess(rss_kib(self.proxy.process.pid, "VmHWM"), RSS_LIMIT_KIB)

    def flood(self, start, piece, megabytes):
        """Send START and then PIECE again and again, as far as the peer takes it; how many bytes went."""
        sent = 0
        with Wire(self.proxy.port) as wire:
            wire.send(start)
            wire.socket.settimeout(1)
            try:
                while sent < megabytes << 20:
                    sent += wire.socket.send(piece)
            except OSError:
                pass
        return sent

    def test_H_41_H_42_endless_lines_and_bodies_take_no_memory(self):
        self.serve()
        block = b"a" * (1 << 20)
        for start in (b"GET /", b"GET / HTTP/1.1\r\nX: ", b"POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                      b"POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;",
                      b"POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: ",
                      b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n"):
            with self.subTest(start=start[-20:]):
                self.flood(start, block, 20)
        self.alive()
        self.assert_small()

    def test_H_42_300_megabytes_behind_a_request_that_waits_are_not_read(self):
        self.serve()
        self.target.set(cut="answer", end="stall", next=1)
        sent = self.flood(post_bytes(record("orders", 0, 1)), b"b" * (1 << 20), 300)
        self.assertLess(sent, 40 << 20, "the kernel's buffers at most")
        self.alive()
        self.assert_small()
        self.target.drop()
        wait_for(lambda: self.doubts() == ["orders/0/1"], "the doubt", PATIENCE)

    def test_H_43_two_hundred_connections_of_tiny_fields_take_no_memory(self):
        self.serve()
        wires = [Wire(self.proxy.port) for _ in range(200)]
        for wire in wires:
            wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * 2500)
        for wire in wires:  # ten thousand bytes that are no whole head yet
            wire.send(b"\r\n")
            self.assertEqual(wire.final().status, 431)
            wire.socket.close()
        self.assert_small()

    def test_H_44_a_head_that_drips_is_ended_at_an_absolute_time(self):
        self.serve(HEAD_TIMEOUT="1s")
        with Wire(self.proxy.port) as wire:
            self.drip(wire, b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 10000)
            self.assertEqual(wire.final().status, 408)
            self.assertTrue(wire.is_ended())
        self.alive()

    def test_H_44_a_body_that_drips_is_ended_at_an_absolute_time(self):
        self.serve(BODY_TIMEOUT="1s")
        with Wire(self.proxy.port) as wire:
            self.drip(wire, post_bytes(b"x" * 10000))
            self.assertEqual(wire.final().status, 408)
            self.assertTrue(wire.is_ended())
        self.assertEqual(self.target.stats()["requests"], 0)
        self.assert_metric('http_refused_total{reason="timeout"}', 1)

    def drip(self, wire, data):
        """A byte every tenth of a second until the peer says something."""
        wire.socket.setblocking(False)
        for byte in data:
            try:
                wire.socket.send(bytes([byte]))
                wire.input += wire.socket.recv(4096)
                break
            except BlockingIOError:
                time.sleep(0.1)
            except OSError:
                break
        wire.socket.settimeout(PATIENCE)

    def test_H_44_an_idle_connection_is_closed(self):
        self.serve(IDLE_TIMEOUT="500ms")
        with Wire(self.proxy.port) as wire:
            self.assertTrue(wire.is_ended())
        with Wire(self.proxy.port) as wire:
            wire.send(post_bytes(record("orders", 0, 1)))
            self.assertEqual(wire.final().status, 200)
            self.assertTrue(wire.is_ended())

    @unittest.skipIf(harness.sinkonce.IS_TLS, "with TLS nothing can be said before a handshake")
    def test_H_45_connections_above_the_cap_get_503_and_those_below_go_on(self):
        self.serve(MAX_CONNECTIONS="10")
        wires = [Wire(self.proxy.port) for _ in range(10)]
        wait_for(lambda: self.proxy.metric("sinkonce_http_connections") == 10, "ten connections", PATIENCE)
        with Wire(self.proxy.port) as wire:
            reply = wire.final()
            self.assertEqual((reply.status, reply.one("connection"), reply.one("retry-after")), (503, "close", "1"))
            self.assertTrue(wire.is_ended())
        for n, wire in enumerate(wires):
            wire.send(post_bytes(record("orders", 0, n)))
            self.assertEqual(wire.final().status, 200)
            wire.socket.close()
        wait_for(lambda: self.proxy.metric("sinkonce_http_connections") == 0, "no connection", PATIENCE)
        self.alive()
        self.assert_metric('http_refused_total{reason="connections"}', 1)

    def test_requests_in_flight_above_the_limit_get_503_at_once(self):
        self.serve(MAX_IN_FLIGHT="4", WAIT="20s")
        self.target.set(cut="answer", end="stall", next=4)
        running = [self.later(self.send, n) for n in range(4)]
        self.held(4)
        answer = self.send(5)
        self.assert_own(answer, 503, "busy", "busy")
        self.assertEqual(self.state(5), "absent")
        self.target.drop()
        self.assertEqual([call.result().status for call in running], [503] * 4)
        self.alive()

    def test_a_HEAD_that_meets_the_limit_is_refused_without_a_body_and_its_connection_stays_in_step(self):
        self.serve(MAX_IN_FLIGHT="1", WAIT="20s")
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 0)
        self.held(1)
        with Wire(self.proxy.port) as wire:
            for _ in range(2):
                wire.send(b"HEAD /in HTTP/1.1\r\nHost: x\r\n\r\n")
                reply = wire.reply("HEAD")  # the second one would begin with what the first one had left behind
                self.assertEqual((reply.status, reply.one("sinkonce-outcome")), (503, "busy"))
        self.target.drop()
        self.assertEqual(running.result().status, 503)

    def upload(self, size, sent, fields=b""):
        """A connection whose body of SIZE bytes, or of chunks, has come as far as SENT bytes."""
        wire = Wire(self.proxy.port)
        self.addCleanup(wire.socket.close)
        framing = b"Content-Length: %d" % size if size is not None else b"Transfer-Encoding: chunked"
        self.assertTrue(wire.send(b"POST /in HTTP/1.1\r\nHost: x\r\n%s\r\n%s\r\n" % (framing, fields)))
        self.assertTrue(wire.send(b"x" * sent if size is not None else b"%x\r\n%s\r\n" % (sent, b"x" * sent)))
        return wire

    def body_room(self, byte_count):
        self.assert_metric("http_body_bytes", byte_count)

    def answer_to(self, data):
        with Wire(self.proxy.port) as wire:
            wire.send(data)
            return wire.final()

    def test_H_41_bodies_that_are_too_large_together_get_503_before_they_are_read(self):
        self.serve(MAX_BODY="512KiB", MAX_BODIES="1MiB", RETRY_AFTER="3s")
        size = 512 << 10
        for second in (size, None):  # a length, then chunks
            wires = [self.upload(size, size - 1), self.upload(second, size - 1)]
            self.body_room(2 * size)
            reply = self.answer_to(post_bytes(record("orders", 0, 7)))
            self.assertEqual(reply.status, 503)
            self.assertEqual((reply.one("retry-after"), reply.one("sinkonce-outcome"), reply.one("connection")),
                             ("3", "busy", "close"))
            self.assertIn(b"SINKONCE_MAX_BODIES", reply.body)
            self.assertEqual(self.state(7), "absent" if second else "applied")
            for wire, end in zip(wires, (b"x", b"x" if second else b"0\r\n\r\n")):
                wire.send(end)
                self.assertEqual(wire.final().status, 200)
                wire.socket.close()
            self.assertEqual(self.answer_to(post_bytes(record("orders", 0, 7))).status, 200)
            self.body_room(0)
        for _ in range(5):  # what those that left had taken is free again
            wires = [self.upload(size, size - 1), self.upload(size, size - 1)]
            self.body_room(2 * size)
            for wire in wires:
                wire.socket.close()
            self.body_room(0)
        self.alive()

    def test_Z_05_an_opened_body_counts_beside_the_compressed_one(self):
        self.serve(MAX_BODY="512KiB", MAX_BODIES="1MiB")
        body = gzip.compress(record("orders", 0, 1, pad="p" * ((512 << 10) - 120)))
        data = post_bytes(body, "Content-Encoding: gzip\r\n")
        other = self.upload(512 << 10, (512 << 10) - 1)
        self.body_room(512 << 10)
        reply = self.answer_to(data)
        self.assertEqual((reply.status, reply.one("sinkonce-outcome")), (503, "busy"))
        self.assertEqual((self.state(1), self.target.stats()["requests"]), ("absent", 0))
        self.body_room(512 << 10)
        other.socket.close()
        self.body_room(0)
        self.assertEqual((self.answer_to(data).status, self.state(1)), (200, "applied"))
        self.body_room(0)

    def test_H_41_the_lists_of_short_records_count_beside_their_bodies(self):
        self.serve(MAX_BODY="512KiB", MAX_BODIES="1MiB")
        body = b"[" + b",".join(record("orders", 0, n) for n in range(5000)) + b"]"
        self.assertLess(len(body), 512 << 10)
        self.target.set(cut="answer", end="stall", next=1)
        with Wire(self.proxy.port) as wire:
            wire.send(post_bytes(body))  # alone it gets all that it needs
            self.held()
            self.assertGreater(self.proxy.metric("sinkonce_http_body_bytes"), len(body) + 5000 * 64)
            batch = b"[" + b",".join(record("others", 0, n) for n in range(4500)) + b"]"
            reply = self.answer_to(post_bytes(batch))
            self.assertEqual((reply.status, reply.one("sinkonce-outcome")), (503, "busy"))
            self.assertEqual(self.state(0, "others"), "absent")
            self.target.drop()
            self.assertEqual(wire.final().status, 503)
        self.body_room(0)
        self.assertEqual(self.answer_to(post_bytes(batch)).status, 200)
        self.body_room(0)

    def test_H_41_answers_that_nobody_reads_keep_out_what_comes_next(self):
        size, head = 14 << 20, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
        get = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
        with Talker(head % size + b"x" * size) as target:
            self.serve(TARGET=target.url, MAX_BODY="512KiB", MAX_BODIES="1MiB")
            with Wire(self.proxy.port, receive_bytes=4096) as wire:
                wire.send(get)
                wait_for(lambda: self.proxy.metric("sinkonce_http_body_bytes") > 1 << 20, "an answer that is held", PATIENCE)
                for data in (get, post_bytes(record("orders", 0, 7))):
                    reply = self.answer_to(data)
                    self.assertEqual((reply.status, reply.one("sinkonce-outcome")), (503, "busy"))
                self.assertEqual((self.state(7), target.request_count), ("absent", 1))
                self.assertEqual(len(wire.final().body), size)
                self.body_room(0)
            self.assertEqual(self.answer_to(get).status, 200)
            with Wire(self.proxy.port, receive_bytes=4096) as wire:  # and one that leaves holds nothing any more
                wire.send(get)
                wait_for(lambda: self.proxy.metric("sinkonce_http_body_bytes") > 1 << 20, "an answer that is held", PATIENCE)
            self.body_room(0)

    def test_H_41_two_hundred_large_bodies_that_do_not_end_take_no_more_than_the_limit(self):
        self.serve(MAX_BODY="8MiB", MAX_BODIES="16MiB")
        wires = []
        for _ in range(200):
            wire = Wire(self.proxy.port)
            self.addCleanup(wire.socket.close)
            wires.append(wire)
            wire.socket.settimeout(1)
            try:
                wire.socket.sendall(b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n" + b"x" * 4900000)
            except OSError:
                pass  # refused
        self.assert_small()
        for wire in wires:
            wire.socket.close()
        wait_for(self.works, "room again", PATIENCE, [self.proxy.log])

    def test_connections_to_the_target_are_bounded_and_the_queue_has_an_end(self):
        self.serve(TARGET_CONNECTIONS="2", WORKERS="1", CONNECT_TIMEOUT="500ms", CONNECT_RETRIES="0")
        self.target.set(cut="answer", end="stall", next=2)
        running = [self.later(self.send, n) for n in range(2)]
        self.held(2)
        self.assert_own(self.send(5), 503, "busy", "target-busy")
        self.assertEqual((self.state(5), self.applied(5)), ("absent", 0))
        self.assertEqual(self.target.stats()["connections"], 2)
        self.target.drop()
        for call in running:
            call.result()
        self.alive()

    @unittest.skipIf(harness.is_sanitized(), "a sanitizer needs descriptors of its own")
    def test_H_46_running_out_of_descriptors_is_survived_without_spinning(self):
        self.serve()
        resource.prlimit(self.proxy.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        sockets = []
        for _ in range(100):
            one = socket.socket()
            one.settimeout(PATIENCE)
            one.connect(("127.0.0.1", self.proxy.port))
            sockets.append(one)
        wait_for(lambda: "descriptors" in open(self.proxy.log).read(), "the line about descriptors", PATIENCE)
        ticks = self.cpu_ticks()
        time.sleep(1)  # a spinning acceptor would use all of it
        self.assertLess(self.cpu_ticks() - ticks, 50)
        lines = [line for line in open(self.proxy.log) if "descriptors" in line]
        self.assertLess(len(lines), 5)
        for one in sockets:
            one.close()
        wait_for(lambda: self.works(), "a free descriptor", PATIENCE)
        self.alive()

    def works(self):
        try:
            return self.send(1).status == 200
        except (OSError, harness.http.client.HTTPException):
            return False

    def cpu_ticks(self):
        with open("/proc/%d/stat" % self.proxy.process.pid) as stat:
            fields = stat.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    harness.main()
