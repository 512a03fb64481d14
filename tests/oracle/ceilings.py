#!/usr/bin/env python3
"""F-50: whatever a peer, the disk or a name server does, memory stays below a ceiling and the loops go on turning.

The loops are asked for their own lag, once before and once after the strain.  The bounds are those of the README: a loop that
waits for what is slow here loses all its time, and its ticks are later than any bound.
"""

import os
import resource
import shutil
import signal
import socket
import threading
import time
import unittest

import world
from world import harness
from harness import PATIENCE, Wire, record, rss_kib, wait_for

RSS_MIB, RSS_MIB_FLOODED = 64, 160  # the latter with 64 MiB of bodies
LATE = 'sinkonce_event_loop_lag_seconds_bucket{le="0.25"}'
SYNC_MS = 600  # the strain must be longer than what counts as late
SILENT_SERVER = "127.0.53.53"
WORKERS = 2
TICKS = 16  # fewer say nothing


class Ceilings(harness.Scenario):
    settings = {"WORKERS": str(WORKERS)}

    def lag(self):
        found = self.proxy.metrics()
        count, total = (found["sinkonce_event_loop_lag_seconds_" + name] for name in ("count", "sum"))
        return count, count - found[LATE], total

    def strain(self):
        """From here on the lag counts; the first tick of a loop has none."""
        wait_for(lambda: self.lag()[0] >= 2 * WORKERS, "ticks", PATIENCE)
        self.began, self.before = time.monotonic(), self.lag()

    def under_strain(self, work):
        """Do WORK again and again until the loops have ticked."""
        rounds = 0
        while rounds == 0 or self.lag()[0] - self.before[0] < TICKS:
            work(rounds)
            rounds += 1

    def assert_free(self, rss_mib=RSS_MIB):
        """At most 1 % of the ticks late (two may always be), and less than half of the loops' time lost; memory as said."""
        count, late, total = (now - before for now, before in zip(self.lag(), self.before))
        seconds = (time.monotonic() - self.began) * WORKERS
        rss = rss_kib(self.proxy.process.pid, "VmHWM")
        print("%d ticks, %d late, %.2f of %.1f s lost, %d KiB" % (count, late, total, seconds, rss), flush=True)
        if harness.is_sanitized():
            return
        self.assertLessEqual(late, 2 + count / 100)
        self.assertLess(total, seconds / 2)
        self.assertLess(rss, rss_mib << 10)

    def is_served(self, offset):
        try:
            return self.send(offset).status == 200
        except (OSError, harness.http.client.HTTPException):
            return False

    def deliver(self, offsets, status=200):
        for offset in offsets:
            self.assertEqual(self.send(offset).status, status)

    @unittest.skipIf(harness.is_sanitized(), "nothing is measured")
    def test_a_program_that_stands_still_is_seen(self):
        self.serve()
        self.strain()
        self.proxy.process.signal(signal.SIGSTOP)
        time.sleep(1.5)
        self.proxy.process.signal(signal.SIGCONT)
        wait_for(lambda: self.lag()[1] > self.before[1], "a late tick", PATIENCE)
        self.assertRaises(AssertionError, self.assert_free)

    def test_F_50_500_connections_that_drip(self):
        self.serve(HEAD_TIMEOUT="3s")
        self.strain()
        wires = [Wire(self.proxy.port) for _ in range(500)]
        head = b"POST /in HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 90

        def drip(turn):
            for wire in wires:
                wire.send(head[turn:turn + 1])
            self.deliver([turn])
        self.under_strain(drip)
        self.assert_free()
        for wire in wires:
            wire.until(b" 408 ")
            wire.socket.close()
        self.deliver([900])

    def test_F_50_300_megabytes(self):
        self.serve(MAX_BODIES="64MiB")
        self.is_journal_checked = False  # it keeps no records of these
        body = b"x" * ((1 if harness.is_sanitized() else 15) << 20)
        self.strain()
        running = [self.later(self.flood, body, 7) for _ in range(3)]  # and one that is not quite gone: below the limit
        self.deliver(range(20))
        for one in running:
            one.result()
        self.assert_free(RSS_MIB_FLOODED)

    def flood(self, body, count):
        for _ in range(count):
            self.proxy.post("/raw", body, {"Content-Type": "application/octet-stream"})

    def test_F_50_64_descriptors(self):
        self.serve()
        resource.prlimit(self.proxy.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        with Wire(self.proxy.port) as kept, Wire(self.proxy.admin_port) as admin:
            self.strain()
            wires = [Wire(self.proxy.port) for _ in range(200)]
            ends_at = time.monotonic() + 2
            for offset in range(1000):
                kept.send(harness.post_bytes(record("orders", 0, offset)))
                self.assertIn(kept.final().status, (200, 503))
                if time.monotonic() > ends_at:
                    break
            for wire in wires:
                wire.socket.close()
            admin.send(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(admin.final("GET").status, 200)
        # Those that still wait to be accepted may take the last descriptors once more, and who comes then is sent away;
        # they are served in their order, so that an answer says that all of them are through.
        wait_for(lambda: self.is_served(1000), "an answer", PATIENCE)
        wait_for(lambda: self.proxy.metric("sinkonce_http_connections") == 0, "no connection", PATIENCE)
        self.deliver(range(1001, 1020))
        self.assert_free()

    @unittest.skipUnless(os.environ.get("DISK_FAULT_LIB"), "DISK_FAULT_LIB is not set")
    @unittest.skipIf(harness.is_sanitized(), "a sanitizer must be the first library")
    def test_F_50_syncs_that_take_200_ms_and_more(self):
        self.serve()
        disk = world.Disk(os.path.dirname(self.proxy.log))
        self.proxy.settings.update({"LD_PRELOAD": os.environ["DISK_FAULT_LIB"], "DISK_FAULT": disk.path})
        self.restart()
        self.deliver([0])
        disk.order(SYNC_MS, 0)
        self.strain()
        running = [self.later(self.send, offset) for offset in range(1, 20)]
        self.under_strain(lambda _: self.assertTrue(self.send(0).is_replayed))  # what the ledger knows needs no sync
        self.assertEqual({one.result().status for one in running}, {200})
        self.assertGreater(time.monotonic() - self.began, SYNC_MS / 1000)
        self.assert_free()
        disk.order(0, 0)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_F_50_C_25_a_name_server_that_is_silent(self):
        self.serve(CONNECT_TIMEOUT="1s", CONNECT_RETRIES="0", WORKERS="1")
        self.deliver([0])
        server = self.name_server()
        self.restart_behind(SILENT_SERVER)
        self.strain()
        running = [self.later(self.send, offset) for offset in range(1, 9)]
        self.assertTrue(server.recv(512))
        self.under_strain(lambda _: self.assertTrue(self.send(0).is_replayed))
        for one in running:
            self.assertEqual(one.result().status, 503)
        self.assert_free()
        for count in (1, 2, 3):  # it is asked for again and again, and may be out when the program ends
            for offset in range(10, 10 + count):
                self.assertEqual(self.send(offset).status, 503)
            self.assertEqual(self.proxy.stop(), 0)
            self.proxy.start()
        self.assertEqual(self.doubts(), [])
        threading.Thread(target=answer_names, args=(server,), daemon=True).start()
        wait_for(lambda: self.send(20).status == 200, "the name, once the server speaks", PATIENCE)

    def name_server(self):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(server.close)
        try:
            server.bind((SILENT_SERVER, 53))
        except OSError as error:
            self.skipTest("no port for a name server: %s" % error)
        server.settimeout(PATIENCE)
        return server

    def restart_behind(self, name_server):
        """In a mount namespace of its own, in which /etc/resolv.conf names NAME_SERVER."""
        path = os.path.join(os.path.dirname(self.proxy.log), "resolv.conf")
        with open(path, "w") as file:
            file.write("nameserver %s\noptions timeout:1 attempts:5\n" % name_server)
        self.proxy.kill()
        self.proxy.wrapper = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                              'mount --bind "$0" /etc/resolv.conf && exec "$@"', path]
        try:
            self.proxy.start(SINKONCE_TARGET="http://silent.example:%d" % self.target.port,
                             SINKONCE_TARGET_WAS=self.target.url)
        except RuntimeError as error:
            if "mount" in str(error) or "unshare" in str(error):
                self.skipTest("no mount namespace here")
            raise


def answer_names(server):
    """Every name is 127.0.0.1, and has no address of the newer kind."""
    server.settimeout(0.1)
    while server.fileno() >= 0:
        try:
            query, peer = server.recvfrom(512)
        except OSError:
            continue
        end = query.index(b"\0", 12) + 5
        is_v4 = query[end - 4:end - 2] == b"\0\1"
        head = query[:2] + b"\x81\x80" + b"\0\1" + (b"\0\1" if is_v4 else b"\0\0") + b"\0\0" * 2
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton("127.0.0.1")
        server.sendto(head + query[12:end] + (answer if is_v4 else b""), peer)


if __name__ == "__main__":
    harness.main()
