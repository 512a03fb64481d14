#!/usr/bin/env python3
"""When the ledger is full, by its own limit or by the disk, new writes get 503 and are not sent; what is in flight is
recorded, duplicates are answered, and everything that was answered is still there after a restart.
"""

import errno
import os
import resource
import subprocess

import harness
from harness import PATIENCE, Wire, key, post_bytes, record, wait_for


class Filled(harness.Scenario):
    settings = {"REPLIES": "0", "WORKERS": "1", "WINDOW": "1000000000000"}

    def assert_told(self, cause, warning, remedy):
        """Which lack it is, and what to do: in /status, as a metric, in the log."""
        warnings = self.proxy.admin("GET", "/status")[1]["warnings"]
        self.assertTrue(any(warning in text for text in warnings), warnings)
        metrics = self.proxy.metrics()
        self.assertEqual((metrics["sinkonce_ledger_full"], metrics["sinkonce_ledger_disk_full"]), (1, cause == "disk"))
        wait_for(lambda: remedy in self.log(), "the remedy in the log", PATIENCE, [self.proxy.log])

    def log(self):
        with open(self.proxy.log) as log:
            return log.read()


class Test(Filled):
    def fill(self):
        """Write scattered records, each a run of its own, over eight connections until each has one refused."""
        self.acked, refused = [], []
        for call in [self.later(self.fill_with, lane) for lane in range(8)]:
            acked, last, reply = call.result()
            self.acked += acked
            refused.append(last)
            self.assertEqual((reply.status, reply.one("sinkonce-outcome")), (503, "refused"), reply)
        self.refused = refused[-1]

    def fill_with(self, lane):
        acked = []
        with Wire(self.proxy.port) as wire:
            for n in range(60000):
                coordinates = (n * 70000, "t" * 200 + str(n % 50), lane)
                wire.send(post_bytes(record(coordinates[1], lane, coordinates[0])))
                reply = wire.final()
                if reply.status != 200:
                    return acked, coordinates, reply
                acked.append(coordinates)
        raise OSError("the ledger never became full")

    def assert_stopped(self, error):
        offset, topic, partition = self.refused
        self.assertEqual(self.send(offset, topic, partition).json()["error"], error)
        self.assertEqual((self.applied(offset, topic, partition), self.target.stats()["duplicates"]), (0, 0))
        for record_of in (self.acked[0], self.acked[-1], self.acked[len(self.acked) // 2]):
            answer = self.send(*record_of)
            self.assertEqual((answer.status, answer.outcome), (200, "duplicate"))

    def test_S1_Z_14_L_04_the_limit_stops_claims_and_answers_duplicates(self):
        self.serve(LEDGER_MAX="1MiB")
        self.fill()
        self.assert_stopped("ledger-full")
        self.assertEqual(self.proxy.admin("GET", "/readyz")[0], 200)
        self.assert_told("limit", "raise SINKONCE_LEDGER_MAX", "raise SINKONCE_LEDGER_MAX")
        self.restart()
        self.assert_stopped("ledger-full")
        self.assertEqual({self.state(*one) for one in self.acked[:20]}, {"applied"})
        self.restart(LEDGER_MAX="4MiB")  # the operator makes room
        self.assertEqual(self.send(*self.refused).status, 200)
        self.assertLessEqual(self.proxy.metric("sinkonce_ledger_used_bytes"), 4 << 20)

    def test_S2_Z_14_what_is_in_flight_when_it_becomes_full_is_recorded(self):
        self.serve(LEDGER_MAX="1MiB", MAX_IN_FLIGHT="512", TARGET_CONNECTIONS="64")
        self.target.set(cut="answer", end="stall", key="inflight")
        running = [self.later(self.send, n, "inflight") for n in range(20)]
        self.held(20)
        self.fill()
        self.target.clear()
        self.target.set(delay=1, key="none")
        self.target.drop()
        self.assertEqual({call.result().outcome for call in running}, {"in-doubt"})
        self.assertEqual(len(self.doubts()), 20)
        status, answer = self.proxy.admin("POST", "/in-doubt", {
            "resolution": "applied", "reason": "seen", "topic": "inflight", "expect_count": 20})
        self.assertEqual(status, 200, answer)
        self.restart()
        self.assertEqual({self.state(n, "inflight") for n in range(20)}, {"applied"})

    def test_S2_Z_14_a_late_success_is_recorded_and_answered_when_the_ledger_is_full(self):
        self.serve(LEDGER_MAX="1MiB", TARGET_TIMEOUT="100s")
        self.target.set(delay=6000, key="inflight")
        running = [self.later(self.send, n, "inflight", timeout=60) for n in range(10)]
        self.held(10)
        self.fill()
        self.assertEqual([call.result().status for call in running], [200] * 10)
        self.restart()
        self.assertEqual({self.state(n, "inflight") for n in range(10)}, {"applied"})


class SmallFiles(Filled):
    """A limit on the size of files is a disk that is full; its signal would end the program in the middle of an exchange."""

    def limit(self, byte_count):
        resource.prlimit(self.proxy.process.pid, resource.RLIMIT_FSIZE, (byte_count, resource.RLIM_INFINITY))

    def stop_by(self, byte_count):
        """Batches until the limit stops them; then what is known is a duplicate, and with the limit gone all goes on."""
        self.limit(byte_count)
        first, answer = self.sent, None
        while answer is None or answer.status == 200:
            self.assertLess(self.sent, first + 100000)
            some = [record("orders", 0, n * 70000) for n in range(self.sent, self.sent + 500)]
            answer = harness.Answer(*self.proxy.post("/in", b"[" + b",".join(some) + b"]"))
            self.sent += 500
        self.assert_own(answer, 503, "refused")
        self.assertIn(answer.json()["error"], ("ledger-full", "ledger-failed"))
        wait_for(lambda: self.send(0).outcome == "duplicate", "duplicates to be answered", PATIENCE, [self.proxy.log])
        self.assert_told("disk", "the limit on the size of the process's files", "make room on that of SINKONCE_DATA_DIR")
        self.limit(resource.RLIM_INFINITY)
        wait_for(lambda: self.send(self.sent * 70000).status == 200, "writes to go on", PATIENCE, [self.proxy.log])
        self.sent += 1
        self.assertEqual((self.doubts(), self.target.stats()["duplicates"]), ([], 0))

    def test_L_05_a_limit_on_the_size_of_files_is_a_full_disk_and_kills_nobody(self):
        self.serve()
        self.assertEqual(self.send(0).status, 200)
        self.sent = 1
        ledger = os.path.join(self.proxy.data_dir, "ledger.mdb")
        self.stop_by(os.path.getsize(ledger) + (6 << 20))  # seen before it is met
        self.stop_by(os.path.getsize(ledger))  # met


class SmallDisk(Filled):
    """A data folder of 2 MiB."""

    def setUp(self):
        super().setUp()
        self.mount = os.path.join(self.target._folder.path, "small")
        os.makedirs(self.mount)
        if not self.make_disk():
            self.skipTest("mounting is not permitted here")

    def make_disk(self):
        """False: it cannot be had here."""
        return self.is_done("mount", "-t", "tmpfs", "-o", "size=2m,mode=0777", "tmpfs", self.mount)

    @staticmethod
    def is_done(*command):
        try:
            return subprocess.run(command, capture_output=True).returncode == 0
        except FileNotFoundError:
            return False

    def tearDown(self):
        if self.proxy is not None and self.proxy.process is not None:
            self.proxy.process.end()
        subprocess.run(["umount", self.mount], check=True)

    def after(self):
        self.check_log()
        self.check_journal()

    def filler(self, leave_bytes=0):
        """Take the room that is left on the disk."""
        stat = os.statvfs(self.mount)
        room = stat.f_bavail * stat.f_bsize - leave_bytes
        path = os.path.join(self.mount, "filler")
        with open(path, "wb", buffering=0) as out:
            try:
                while room > 0:
                    room -= out.write(b"f" * min(room, 4096))
            except OSError as error:  # a part of the room is for the file system's own notes
                self.assertEqual(error.errno, errno.ENOSPC)
        return path


class Ext4(SmallDisk):
    """A real file system with a journal, in a file of 8 MiB."""

    def make_disk(self):
        image = os.path.join(self.target._folder.path, "image")
        with open(image, "wb") as out:
            out.truncate(8 << 20)
        return self.is_done("mkfs.ext4", "-q", "-m", "0", image) and self.is_done("mount", "-o", "loop", image, self.mount)

    def send_many(self, first):
        some = [record("orders", 0, n * 70000) for n in range(first, first + 500)]
        return harness.Answer(*self.proxy.post("/in", b"[" + b",".join(some) + b"]"))

    def test_S1_L_05_a_full_ext4_stops_new_writes_and_keeps_what_was_answered(self):
        self.serve(DATA_DIR=self.mount, LEDGER_MAX="64MiB")
        self.assertEqual(self.send_many(0).status, 200)
        filler, acked, answer = self.filler(), 500, self.send_many(500)
        while answer.status == 200 and acked < 100000:
            acked += 500
            answer = self.send_many(acked)
        self.assert_own(answer, 503, "refused")
        self.assertIn(answer.json()["error"], ("ledger-full", "ledger-failed"))
        wait_for(lambda: self.send_many(0).outcome == "duplicate", "duplicates to be answered", PATIENCE, [self.proxy.log])
        os.unlink(filler)  # the operator makes room
        wait_for(lambda: self.send_many(acked).status == 200, "writes to go on", PATIENCE, [self.proxy.log])
        self.proxy.kill()
        self.proxy.start()
        self.assertEqual({self.state(n * 70000) for n in range(0, acked + 500, 97)}, {"applied"})
        self.assertEqual(self.target.stats()["duplicates"], 0)

    def send_partitions(self, first):
        """More rows than the blocks that are kept ahead can take."""
        some = [record("orders", n, 0) for n in range(first, first + 200)]
        return harness.Answer(*self.proxy.post("/in", b"[" + b",".join(some) + b"]"))

    def test_S1_L_05_a_batch_larger_than_the_reserve_meets_a_full_disk_and_no_failing_one(self):
        self.serve(DATA_DIR=self.mount, LEDGER_MAX="64MiB")
        self.assertEqual(self.send(0).status, 200)
        filler, first, answer = self.filler(), 0, None
        while answer is None or answer.status == 200:
            first += 200
            answer = self.send_partitions(first)
        self.assert_own(answer, 503, "refused")
        self.assert_told("disk", "make room on it", "make room on that of SINKONCE_DATA_DIR")
        self.assertEqual(self.proxy.metrics()["sinkonce_ledger_failing"], 0)
        os.unlink(filler)
        wait_for(lambda: self.send_partitions(first).status == 200, "writes to go on", PATIENCE, [self.proxy.log])
        wait_for(lambda: "ledger.resumed" in self.log(), "the end of it to be logged", PATIENCE, [self.proxy.log])
        self.assertRegex(self.log(), "No space left on device|no room is left for new claims")  # as the blocks happen to lie
        self.assertEqual(self.target.stats()["duplicates"], 0)


class Disk(SmallDisk):
    def test_S1_L_05_a_full_disk_stops_new_writes_and_keeps_what_was_answered(self):
        self.serve(DATA_DIR=self.mount, LEDGER_MAX="64MiB")
        for n in range(50):
            self.assertEqual(self.send(n * 70000).status, 200)
        filler = self.filler()
        refused = None
        for n in range(50, 2000):
            answer = self.send(n * 70000)
            if answer.status != 200:
                refused = n
                break
        self.assertIsNotNone(refused, "the disk never became full")
        self.assert_own(answer, 503, "refused")
        self.assertIn(answer.json()["error"], ("ledger-full", "ledger-failed"))
        wait_for(lambda: self.send(0).outcome == "duplicate", "a duplicate to be answered", PATIENCE, [self.proxy.log])
        self.assert_told("disk", "make room on it", "make room on that of SINKONCE_DATA_DIR")
        self.assertLessEqual(self.applied(refused * 70000), 1)
        self.assertTrue(self.proxy.process.is_running())
        os.unlink(filler)  # the operator makes room
        wait_for(lambda: self.send(9999 * 70000).status == 200, "writes to go on", PATIENCE, [self.proxy.log])
        self.proxy.kill()
        self.proxy.start()
        for n in range(refused):
            self.assertEqual(self.state(n * 70000), "applied", n)
        self.assertEqual(self.target.stats()["duplicates"], 0)

    def flights_that_meet_a_full_disk(self):
        """What fills it, and the answers of ten flights, which began before."""
        self.target.set(delay=1000, key="flight", body="y" * 3000)
        running = [self.later(self.send, n * 70000, "flight%d" % n, timeout=60) for n in range(10)]
        self.held(10)
        filler = self.filler()
        answers = [call.result() for call in running]
        self.target.clear()
        return filler, answers

    def test_S2_a_success_that_meets_a_full_disk_is_never_lost_and_never_repeated(self):
        self.serve(DATA_DIR=self.mount, LEDGER_MAX="64MiB", REPLIES="100", WORKERS="1")
        self.assertEqual(self.send(0).status, 200)
        filler, answers = self.flights_that_meet_a_full_disk()
        for answer in answers:  # told of success, or not; never both sent and free
            self.assertIn(answer.status, (200, 503))
        os.unlink(filler)
        for n in range(10):
            wait_for(lambda: self.send(n * 70000, "flight%d" % n).status == 200, "the answer", PATIENCE, [self.proxy.log])
            self.assertEqual(self.target.count(key("flight%d" % n, 0, n * 70000)), 1)

    def test_S2_a_stop_on_a_full_disk_ends_and_leaves_nothing_undecided(self):
        self.serve(DATA_DIR=self.mount, LEDGER_MAX="64MiB", DRAIN_TIMEOUT="2s")
        filler, answers = self.flights_that_meet_a_full_disk()
        self.assertEqual(self.proxy.stop(), 0)
        os.unlink(filler)
        self.proxy.start()
        for n, answer in enumerate(answers):
            state = self.state(n * 70000, "flight%d" % n)
            self.assertIn(state, ("applied",) if answer.status == 200 else ("applied", "in_doubt"))
        self.assertEqual(self.target.stats()["duplicates"], 0)

    def test_S1_a_start_on_a_full_disk_is_refused_or_answers_duplicates(self):
        self.serve(DATA_DIR=self.mount, LEDGER_MAX="64MiB")
        self.send(0)
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 70000)
        self.held()
        self.proxy.kill()
        running.result()
        filler = self.filler()
        self.proxy.start(is_ready=False)
        wait_for(lambda: not self.proxy.process.is_running() or self.answers(0), "an end or an answer", PATIENCE,
                 [self.proxy.log])
        if self.proxy.process.is_running():
            self.assertEqual((self.state(70000), self.send(0).outcome), ("in_doubt", "duplicate"))
            self.proxy.kill()
        else:
            self.assertEqual(self.proxy.process.wait(), 74)
        os.unlink(filler)
        self.proxy.start()
        self.assertEqual((self.state(0), self.state(70000)), ("applied", "in_doubt"))

    def answers(self, offset):
        try:
            return self.send(offset).status == 200
        except OSError:
            return False


if __name__ == "__main__":
    harness.main()
