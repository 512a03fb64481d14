#!/usr/bin/env python3
"""F-60: the oracle's connectors at a fixed rate, with a nemesis, for as long as you like.

    SINKONCE_BIN=… soak.py [--seconds N | --minutes M] [--seed N]

Beside all that checks.py demands: nothing grows.  The run is cut into stretches; at the end of each the connectors hold
their breath, and memory, descriptors and the ledger are measured.  The first stretch is for warming up.  Between the
stretches the program is not restarted; SIGKILL comes after the last measure.  --red: succeed when something grows.
"""

import argparse
import os
import random
import sys
import tempfile

import checks
import history
import world
from nemesis import Nemesis
from plan import AUTO, DEFAULTS, Topic
from world import harness

STRETCHES = 3
RECORDS_PER_SECOND = 30  # of each topic
RSS_BYTES_PER_REQUEST = 64
RSS_SLACK_KIB = 2048  # the allocator's own ways
DESCRIPTORS = 24  # connections of the moment, on both sides
LEDGER_SLACK_BYTES = 256 << 10  # the rings of events and answers, and pages that are free again


class SoakTopic(Topic):
    """Without gaps: they would be kept for ever, and what is applied in order takes no room."""

    def _stream(self, chance, record_count):
        at, made = [0] * self.partitions, []
        for _ in range(record_count):
            partition = chance.randrange(self.partitions)
            made.append((self.name, partition, at[partition]))
            at[partition] += 1
        return made

    def element(self, one):
        topic, partition, offset = one
        return world.batches.record(offset, topic, partition, pad="p" * 8000)


class SoakPlan:
    """No kill: it would wash a leak away."""

    def __init__(self, seed, seconds):
        self.chance = random.Random(seed)
        self.seed, self.policy, self.pause, self.fault_rate = seed, "hold", 0.015, 0.02
        self.sizes, self.is_endless = (1, 1, 2), True  # a stream that is over comes again from its beginning
        self.seconds = seconds / STRETCHES
        count = int(seconds * RECORDS_PER_SECOND)
        self.topics = [SoakTopic(self.chance, name, "json", name != "logs", count) for name in ("orders", "pay", "logs")]
        self.nemeses = ["cut", "idle", "refuse", "stop", "slow_disk", "rebalance", "rewind", "clock"]
        self.settings = {"WORKERS": "2", "WAIT": "20ms", "IN_DOUBT": "hold", "TARGET_TIMEOUT": "800ms", "TARGET_IDLE": "500ms",
                         "CONNECT_TIMEOUT": "500ms", "MARKS": "256", "REPLIES": "50", "LEDGER_MAX": "64MiB", "UNKEYED": "reject",
                         "LOG_FORMAT": "json"}

    @staticmethod
    def life(_):
        return DEFAULTS, AUTO

    def produced(self):
        return {world.key(*one): topic.hash(one) for topic in self.topics for one in topic.records}


class Soak(world.World):
    """The measures are (requests, RSS in KiB, descriptors, bytes of the ledger)."""

    def work(self):
        self.measures = []
        for _ in range(STRETCHES):
            Nemesis(self).run()
            if self.is_over:
                return
            self.gate.close()
            self.measures.append(self.measure())
            self.gate.open(AUTO)

    def measure(self):
        pid = self.proxy.process.pid
        world.wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 0, "nothing in flight", 30)
        found = (int(self.proxy.metric("sinkonce_http_requests_total")), harness.rss_kib(pid), len(os.listdir("/proc/%d/fd" % pid)),
                 int(self.proxy.metric("sinkonce_ledger_used_bytes")))
        print("%d requests, %d KiB, %d descriptors, ledger %d bytes" % found, flush=True)
        return found


def growth(measures):
    """What grew, in words."""
    (requests, rss, descriptors, used), (requests_last, rss_last, descriptors_last, used_last) = measures[0], measures[-1]
    rss_max = rss + RSS_SLACK_KIB + (requests_last - requests) * RSS_BYTES_PER_REQUEST // 1024
    if rss_last > rss_max and not harness.is_sanitized():
        yield "memory grew from %d to %d KiB in %d requests" % (rss, rss_last, requests_last - requests)
    if descriptors_last > descriptors + DESCRIPTORS:
        yield "descriptors grew from %d to %d" % (descriptors, descriptors_last)
    if used_last > used + LEDGER_SLACK_BYTES:
        yield "the ledger grew from %d to %d bytes" % (used, used_last)


def soak(seed, seconds, folder):
    one = Soak(SoakPlan(seed, seconds), folder)
    try:
        one.run()
    finally:
        one.close()
    done = checks.check(history.read(one.history.path))
    print("\n".join(done.lines()), flush=True)
    wrong = list(growth(one.measures))
    print("\n".join(wrong or ["nothing grew; %d doubts that nothing explains" % done.figures["unexplained"]]), flush=True)
    return wrong, done.breaches


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--red", action="store_true")
    given = parser.parse_args(arguments)
    print("seed %d" % given.seed, flush=True)
    with tempfile.TemporaryDirectory(prefix="sinkonce-soak-") as folder:
        wrong, breaches = soak(given.seed, given.minutes * 60 if given.minutes else given.seconds, folder)
    sys.stdout.flush()
    is_good = bool(wrong) if given.red else not wrong and not breaches
    os._exit(0 if is_good else 1)  # threads of the target may still wait


if __name__ == "__main__":
    main(sys.argv[1:])
