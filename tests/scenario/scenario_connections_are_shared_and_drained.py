#!/usr/bin/env python3
"""Connections are shared out evenly among the loops, and a stop lets every request end that has begun."""

import os

import harness
from harness import PATIENCE, Wire, post_bytes, record, wait_for


class Test(harness.Scenario):
    def running_times(self):
        """Nanoseconds that each thread has run.  Not how often it was woken: one that always finds work is never."""
        times = {}
        for thread in os.listdir("/proc/%d/task" % self.proxy.process.pid):
            with open("/proc/%d/task/%s/schedstat" % (self.proxy.process.pid, thread)) as stat:
                times[thread] = int(stat.read().split()[0])
        return times

    def busiest(self, wire):
        """The thread that works when this connection speaks."""
        before = self.running_times()
        for _ in range(100):
            wire.send(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n")  # answered here
            wire.final()
        after = self.running_times()
        return max(after, key=lambda thread: after[thread] - before.get(thread, 0))

    def test_H_55_four_connections_over_two_loops_are_two_and_two(self):
        self.serve(WORKERS="2")
        wires = [Wire(self.proxy.port) for _ in range(4)]
        wait_for(lambda: self.proxy.metric("sinkonce_http_connections") == 4, "four connections", PATIENCE)
        threads = [self.busiest(wire) for wire in wires]
        self.assertEqual(sorted(threads.count(thread) for thread in set(threads)), [2, 2], threads)
        for wire in wires:
            wire.socket.close()

    def test_all_loops_together_have_no_more_connections_to_the_target_than_allowed(self):
        self.serve(CONNECT_TIMEOUT="60s")
        self.target.set(delay=300)
        for connections, workers in ((3, 4), (3, 2), (1, 8)):
            self.restart(WORKERS=str(workers), TARGET_CONNECTIONS=str(connections))
            calls = [self.later(self.send, offset, topic="t%d" % workers) for offset in range(9)]
            most = 0
            while any(call.is_running() for call in calls):
                most = max(most, len(self.target.held()))
            self.assertEqual({call.result().status for call in calls}, {200})
            self.assertEqual(most, connections, workers)

    def test_H_56_a_stop_resets_no_connection_that_was_accepted_by_the_kernel(self):
        self.serve()
        self.proxy.process.signal(harness.sinkonce.signal.SIGSTOP)
        wires = [Wire(self.proxy.port) for _ in range(20)]  # in the kernel's queue
        for n, wire in enumerate(wires):
            wire.send(post_bytes(record("orders", 0, n)))
        self.proxy.process.signal(harness.sinkonce.signal.SIGTERM)
        self.proxy.process.signal(harness.sinkonce.signal.SIGCONT)
        for wire in wires:
            reply = wire.final()
            self.assertIn(reply.status, (200, 503))
            self.assertEqual(reply.one("connection"), "close")
            self.assertTrue(wire.is_ended())
        self.assertEqual(self.proxy.process.wait(), 0)

    def test_sigterm_lets_what_is_in_flight_end_and_takes_nothing_new(self):
        self.serve(DRAIN_TIMEOUT="20s")
        self.target.set(delay=1000, next=1)
        idle = Wire(self.proxy.port)
        running = self.later(self.send, 1)
        self.held()
        self.proxy.process.signal(harness.sinkonce.signal.SIGTERM)
        self.assertTrue(idle.is_ended(), "an idle connection is closed")
        wait_for(lambda: not self.listens(), "the listener to close", PATIENCE)
        answer = running.result()
        self.assertEqual((answer.status, answer.headers.get("connection")), (200, "close"))
        self.assertEqual(self.proxy.process.wait(), 0)
        self.proxy.start()
        self.assertEqual((self.state(1), self.doubts()), ("applied", []))

    def listens(self):
        try:
            Wire(self.proxy.port).socket.close()
        except OSError:
            return False
        return True

    def test_sigterm_is_not_ready_during_its_delay_and_still_takes_writes(self):
        self.serve(DRAIN_DELAY="60s")
        self.proxy.process.signal(harness.sinkonce.signal.SIGTERM)
        wait_for(lambda: self.proxy.admin("GET", "/readyz")[0] == 503, "not ready", PATIENCE)
        self.assertEqual(self.proxy.admin("GET", "/livez")[0], 200)
        self.assertEqual(self.send(1).status, 200)
        self.proxy.process.signal(harness.sinkonce.signal.SIGTERM)  # a second one ends it at once
        self.assertEqual(self.proxy.process.wait(), 0)

    def test_what_does_not_end_before_the_time_out_is_in_doubt_at_the_next_start(self):
        self.serve(DRAIN_TIMEOUT="300ms")
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 1)
        self.held()
        self.assertEqual(self.proxy.stop(), 0)
        running.result()
        self.proxy.start()
        self.assertEqual(self.doubts(), ["orders/0/1"])

    def test_a_second_sigterm_stops_at_once(self):
        self.serve(DRAIN_TIMEOUT="60s")
        self.target.set(cut="answer", end="stall", next=1)
        running = self.later(self.send, 1)
        self.held()
        self.proxy.process.signal(harness.sinkonce.signal.SIGTERM)
        wait_for(lambda: not self.listens(), "the drain to begin", PATIENCE)
        self.proxy.process.signal(harness.sinkonce.signal.SIGTERM)
        self.assertEqual(self.proxy.process.wait(), 0)
        running.result()
        self.proxy.start()
        self.assertEqual(self.doubts(), ["orders/0/1"])


if __name__ == "__main__":
    harness.main()
