#!/usr/bin/env python3
"""What is as large as a limit passes, one byte more is refused; nothing in between hangs."""

import os

import harness
from harness import PATIENCE, Later, Wire, chunked, post_bytes, record, sinkonce


class Test(harness.Scenario):
    def status_of(self, data, pieces=1, patience=PATIENCE):
        with Wire(self.proxy.port) as wire:
            wire.socket.settimeout(patience)
            size = -(-len(data) // pieces)
            for at in range(0, len(data), size):
                if not wire.send(data[at:at + size]):
                    break
            return wire.final().status

    @staticmethod
    def head_of(byte_count):
        """A request head of exactly so many bytes, in lines of a few thousand."""
        start, end = b"GET /in HTTP/1.1\r\nHost: x\r\n", b"\r\n"
        left = byte_count - len(start) - len(end)
        lines = []
        while left:
            size = left if left < 4000 else 2000
            lines.append(b"X: " + b"a" * (size - 5) + b"\r\n")
            left -= size
        return start + b"".join(lines) + end

    def test_H_40_a_head_of_just_the_limit_passes_and_one_byte_more_does_not(self):
        for limit, name in ((65536, None), (65535, "65535B"), (1024, "1KiB"), (4096, "4KiB"), (100000, "100000B")):
            with self.subTest(limit):
                if self.proxy is None:
                    self.serve()
                else:
                    self.restart(MAX_HEAD=name)
                for pieces in (1, 7):
                    self.assertEqual(self.status_of(self.head_of(limit), pieces), 200)
                    self.assertEqual(self.status_of(self.head_of(limit + 1), pieces), 431)
                    self.assertEqual(self.status_of(self.head_of(limit + 3000), pieces), 431)

    def test_H_40_R_26_a_target_of_8_kib_passes_and_one_byte_more_does_not(self):
        self.serve()
        for size, status in ((8192, 200), (8193, 414), (60000, 414)):
            self.assertEqual(self.status_of(b"GET /" + b"a" * (size - 1) + b" HTTP/1.1\r\nHost: x\r\n\r\n"), status)

    def test_H_43_a_hundred_fields_pass_and_one_more_does_not(self):
        self.serve()
        for count, status in ((100, 200), (101, 431)):
            fields = b"".join(b"X-%d: a\r\n" % n for n in range(count - 1))
            self.assertEqual(self.status_of(b"GET / HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n"), status)

    def test_R_26_a_body_of_just_the_limit_passes_and_one_byte_more_does_not(self):
        self.serve(MAX_BODY="100000B")
        for size, status in ((100000, 200), (100001, 413), (0, 200), (1, 200)):
            self.assertEqual(self.status_of(post_bytes(b"x" * size)), status)
            head = b"POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            pieces = [b"x" * min(7000, size - at) for at in range(0, size, 7000)]
            self.assertEqual(self.status_of(head + chunked(*pieces)), status)

    def test_a_body_of_sixteen_megabytes_goes_through_and_leaves_no_memory_behind(self):
        self.serve()
        body = b"x" * (16 << 20)
        self.assertEqual(self.status_of(post_bytes(body)), 200)
        self.assertEqual(self.target.lines()[-1][1], sinkonce.journal_hash(body))
        if not harness.is_sanitized():
            self.assertLess(harness.rss_kib(self.proxy.process.pid), 40 * 1024)

    def test_many_large_bodies_at_once_leave_no_memory_behind(self):
        self.serve()
        body = b"x" * (5 << 20)
        calls = [Later(self.status_of, post_bytes(body), patience=3 * PATIENCE) for _ in range(40)]  # they share one target
        self.assertEqual({call.result() for call in calls}, {200})
        if not harness.is_sanitized():
            harness.wait_for(lambda: harness.rss_kib(self.proxy.process.pid) < 40 * 1024, "a small process", PATIENCE)

    def test_a_large_body_is_never_left_lying_however_it_arrives(self):
        self.serve()
        for size in (1 << 20, (1 << 20) + 1, 3 << 20, 10000000):
            for pieces in (1, 2, 3, 11):
                self.assertEqual(self.status_of(post_bytes(b"x" * size), pieces), 200, (size, pieces))

    def test_new_partitions_stop_at_the_limit_and_those_that_are_known_go_on(self):
        self.serve(MAX_PARTITIONS="3")
        for partition in range(3):
            self.assertEqual(self.send(0, partition=partition).status, 200)
        self.assert_crowded(self.send(0, partition=3))
        self.assert_crowded(self.send(0, "parcels"))
        self.assertEqual(self.applied(0, "parcels"), 0)
        self.assertEqual((self.send(1, partition=2).status, self.send(0).outcome), (200, "duplicate"))
        self.assert_metric('http_refused_total{reason="partitions"}', 2)
        self.assert_metric("partitions", 3)
        self.assertTrue(any("SINKONCE_MAX_PARTITIONS is 3" in text for text in self.proxy.admin("GET", "/status")[1]["warnings"]))
        self.assert_logged({"event": "limit.hit", "topic": "orders", "partition": 3, "offset": 0, "total": 1})
        self.restart(MAX_PARTITIONS="1")  # a ledger that holds more opens and goes on
        self.assertEqual([self.send(2, partition=partition).status for partition in range(3)], [200] * 3)
        self.assert_crowded(self.send(0, "parcels"))
        forget = {"topic": "orders", "expect_count": 7, "reason": "the topic is gone"}
        self.assertEqual(self.proxy.admin("POST", "/forget", forget)[0], 200)
        self.assertEqual(self.send(0, "parcels").status, 200)
        self.assert_crowded(self.send(3))
        self.restart()  # what was forgotten has left the disk as well
        self.assert_metric("partitions", 1)

    def test_the_records_whose_partition_is_new_are_named_when_there_is_no_room_for_it(self):
        self.serve(MAX_PARTITIONS="2")
        known, new = (("orders", 0), ("orders", 1)), [("parcels", partition) for partition in range(12)]
        for topic, partition in known:
            self.assertEqual(self.send(0, topic, partition).status, 200)
        batch = b"[" + b",".join(record(topic, partition, 1) for topic, partition in (*known, *new, ("orders", 0))) + b"]"
        answer = harness.Answer(*self.proxy.post("/in", batch))
        self.assert_crowded(answer)
        named = [{"topic": topic, "partition": partition, "offset": 1} for topic, partition in new]
        self.assertEqual((answer.json()["records"], answer.json()["total"]), (named[:10], 12))
        self.assert_logged({"event": "limit.hit", "limit": "SINKONCE_MAX_PARTITIONS", **named[0], "total": 12})

    def assert_crowded(self, answer):
        self.assert_own(answer, 503, "refused", "too-many-partitions")

    def test_D2_a_hundred_deliveries_of_one_record_over_all_loops_take_effect_once(self):
        self.serve(WORKERS="4", WAIT="20s")
        for offset in range(3):
            calls = [Later(self.send, offset, timeout=60) for _ in range(100)]
            answers = [call.result() for call in calls]
            self.assertEqual({answer.status for answer in answers}, {200})
            self.assertEqual([answer.is_replayed for answer in answers].count(False), 1)
            self.assertEqual(self.applied(offset), 1)

    def test_closed_standard_descriptors_are_not_given_to_the_ledger(self):
        self.serve()
        self.proxy.stop()
        for closed in ("0<&- 1>&- 2>&-", "2>&-", "1>&- 2>&-"):
            with self.subTest(closed=closed):
                self.proxy.wrapper = ["sh", "-c", 'exec "$0" ' + closed]
                self.proxy.start()
                folder = "/proc/%d/fd/" % self.proxy.process.pid
                for number in "012":
                    self.assertNotIn(self.proxy.data_dir, os.readlink(folder + number))
                self.assertEqual(self.send(1).status, 200)
                self.proxy.stop()
        self.proxy.wrapper = []
        self.proxy.start()

    def test_a_unix_socket_that_somebody_serves_is_left_to_him(self):
        self.serve()
        path = os.path.join(os.path.dirname(self.proxy.data_dir), "socket")
        self.restart(LISTEN="unix:" + path)
        other = sinkonce.Sinkonce(self.target.url, env={"SINKONCE_LISTEN": "unix:" + path})
        self.addCleanup(other.close)
        other.start(is_ready=False)
        self.assertEqual(other.process.wait(PATIENCE), 69)
        with harness.socket.socket(harness.socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(post_bytes(record("orders", 0, 1)))
            self.assertIn(b" 200 ", connection.recv(4096))
        self.assertEqual(self.state(1), "applied")

    def test_a_unix_socket_serves_connectors_and_is_taken_over_after_a_kill(self):
        path = os.path.join(self.target._folder.path, "s")
        self.serve(LISTEN="unix:" + path)
        for _ in range(2):
            with harness.socket.socket(harness.socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(post_bytes(record("orders", 0, 1)))
                self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 200 "))
            self.restart()
        self.assertEqual(self.applied(1), 1)
        self.proxy.stop()
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    harness.main()
