#!/usr/bin/env python3
"""F-00: connectors that retry, repeat and start again from old offsets, a target that breaks off in every way, and
SIGKILL of sinkonce in between.  At the end the checker finds no record applied twice, none lost, each whole, and in doubt
exactly what the target broke off or the kills left open.

One seed drives a run; it is printed first.  STORM_SEEDS="7 8" gives the seeds, STORM_COUNT their number (5).
"""

import os
import random
import threading
import time

import harness
from harness import checker, key, record, sinkonce, wait_for

PARTITIONS, RECORDS, KILLS = 4, 60, 4
FAULTS = ("cut=answer&end=rst", "cut=answer&end=close", "cut=status&end=close", "cut=head&end=rst", "cut=request&end=rst",
          "cut=body&end=rst", "status=500", "status=503", "status=429", "status=502", "delay=30", "cut=answer&end=stall")


def seeds():
    given = os.environ.get("STORM_SEEDS")
    return [int(seed) for seed in given.split()] if given else range(1, int(os.environ.get("STORM_COUNT", "5")) + 1)


class Worker:
    """A task of the connector: one partition, in order, at least once."""

    def __init__(self, test, seed, partition):
        self.test, self.partition = test, partition
        self.chance = random.Random("%d/%d" % (seed, partition))
        self.acked, self.doubtful, self.unanswered, self.error = set(), set(), set(), None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def body(self, offset):
        return record("orders", self.partition, offset, pad="p" * (offset * 37 % 3000))

    def deliver(self, offset):
        """True: the connector may go on."""
        record_key = key("orders", self.partition, offset)
        try:
            status, fields, _ = self.test.proxy.post("/in", self.body(offset), timeout=self.chance.choice((0.2, 2, 10)))
        except (OSError, harness.http.client.HTTPException):
            self.unanswered.add(record_key)
            return False
        if status // 100 == 2:
            self.acked.add(record_key)
        if fields.get("sinkonce-outcome") == "in-doubt":
            self.doubtful.add(record_key)
        return status // 100 == 2

    def run(self):
        try:
            self.run_all()
        except Exception as error:  # shown by the test, in its own thread
            self.error = error

    def run_all(self):
        offset = 0
        while offset < RECORDS:
            if self.chance.random() < 0.1:  # the same record twice at once
                twin = threading.Thread(target=self.deliver, args=(offset,), daemon=True)
                twin.start()
                done = self.deliver(offset)
                twin.join()
            else:
                done = self.deliver(offset)
            if done or self.is_given_up(offset):
                offset += 1
            if self.chance.random() < 0.03:  # a rebalance: again from the last commit
                offset = max(0, offset - self.chance.randrange(1, 15))

    def is_given_up(self, offset):
        """A record in doubt may be held for ever: a connector with a dead letter queue goes on."""
        if self.chance.random() < 0.7:
            time.sleep(0.01)
            return False
        try:
            return self.test.proxy.record_state(key("orders", self.partition, offset)) == "in_doubt"
        except (OSError, RuntimeError, ValueError, harness.http.client.HTTPException):
            return False


class Test(harness.Scenario):
    def storm(self, seed, policy="hold"):
        print("seed %d" % seed, flush=True)
        chance = random.Random(seed)
        self.serve(TARGET_TIMEOUT="500ms", WAIT="20ms", TARGET_IDLE="500ms", IN_DOUBT=policy)
        for fault in FAULTS:
            self.target.ask("/add?%s&probability=%s&seed=%d" % (fault, 0.012, chance.randrange(1 << 30)))
        workers = [Worker(self, seed, partition) for partition in range(PARTITIONS)]
        self.nemesis(chance, workers)
        for worker in workers:
            worker.thread.join(120)
            self.assertFalse(worker.thread.is_alive(), "a worker hangs")
            self.assertIsNone(worker.error)
        self.target.clear()
        self.target.drop()
        wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 0, "nothing in flight", 60)
        if policy == "retry":  # twice at most where the outcome was open, and nowhere else
            self.allowed_twice = set().union(*[worker.doubtful | worker.unanswered for worker in workers])
            self.check(workers)
        else:
            self.check(workers, in_order=True)
            self.check_doubts(workers)
        self.settle_all(workers)

    def nemesis(self, chance, workers):
        for _ in range(KILLS):
            applied = self.target.stats()["applied"] + chance.randrange(5, 40)
            wait_for(lambda: self.target.stats()["applied"] >= applied or not any(w.thread.is_alive() for w in workers),
                     "progress", 120)
            self.restart()

    def check_doubts(self, workers):
        """What a connector was told is in doubt is listed, and nothing else but what was never answered."""
        listed = set(self.doubts())
        doubtful = set().union(*[worker.doubtful for worker in workers])
        unanswered = set().union(*[worker.unanswered for worker in workers])
        self.assertEqual(doubtful - listed, set(), "told, and not listed")
        self.assertEqual(listed - doubtful - unanswered, set(), "listed, and known")

    def check(self, workers, exact=None, in_order=False):
        produced = {key("orders", w.partition, n): sinkonce.journal_hash(w.body(n)) for w in workers for n in range(RECORDS)}
        acked = [one for worker in workers for one in worker.acked]
        journal = [line[:2] for line in self.target.lines()]
        report = checker.check(journal, produced, acked, self.doubts(), exact, self.allowed_twice, in_order)
        print("\n".join(report.lines()), flush=True)
        self.assertTrue(report.is_good, "seed: see the first line\n" + "\n".join(report.lines()))

    def settle_all(self, workers):
        """The person compares the list with the target's journal; then every record can be delivered."""
        for doubt in self.doubts():
            self.assertEqual(self.proxy.resolve(doubt, self.target.count(doubt) > 0)[0], 200)
        for worker in workers:
            for offset in range(RECORDS):
                status, _, answer = self.proxy.post("/in", worker.body(offset))
                self.assertEqual(status, 200, answer)
                worker.acked.add(key("orders", worker.partition, offset))
        self.check(workers, [])


def one_seed(seed, policy):
    return lambda self: self.storm(seed, policy)


for seed_ in seeds():
    policy_ = "retry" if seed_ % 5 == 0 else "hold"
    setattr(Test, "test_F_00_D2_C6_a_storm_with_policy_%s_and_seed_%d" % (policy_, seed_), one_seed(seed_, policy_))


if __name__ == "__main__":
    harness.main()
