#!/usr/bin/env python3
"""Z-05: a stream of records of several topics and partitions, with gaps, cut into overlapping, repeated and reordered batches
of every shape; a target that refuses, breaks off, applies halves and fails single items; SIGKILL in between, and other shapes
after each restart.  At the end every record took effect once, in the order of its partition where one task alone sent it, or
is listed in doubt; every request was answered; memory is bounded; and the parts of the records' counter add up.

One seed drives a run; it is printed first.  STORM_SEEDS="7 8" gives the seeds, STORM_COUNT their number (5).
"""

import os
import random
import socket
import threading
import time

import batches
from batches import BatchScenario, Reply, checker, harness, key, record, sinkonce, wait_for

STEADY, LOOSE, EVENTS = ("orders", "pay"), "logs", "hec"
PARTITIONS, RECORDS, KILLS = 2, 300, 2
RSS_KIB_MAX = 64 << 10
CUTS = (("answer", "rst"), ("answer", "close"), ("status", "rst"), ("head", "close"), ("answer", "stall"))
AUTO = ["json_array", "ndjson", "concat", "single"]
# settings, shapes of all, shapes of those whose order nobody keeps
PHASES = [
    ({}, AUTO, AUTO + ["bulk"] * 4),
    ({"SPLIT": "record"}, AUTO, AUTO + ["bulk"]),
    ({"SPLIT": "off", **batches.SEPARATED}, ["separated"], ["separated"]),
    ({"SEPARATOR": None, **batches.ENVELOPE}, ["envelope"], ["envelope"]),
    ({"SHAPE": "auto", "ENVELOPE": None}, AUTO, ["bulk"]),
]
BUILD = {name: (build, path) for name, build, path, _ in batches.SHAPES}
BUILD["single"] = (lambda elements: elements[0], "/in")
BUILD["events"] = (batches.events, "/services/collector/event")


def seeds():
    given = os.environ.get("STORM_SEEDS")
    return [int(seed) for seed in given.split()] if given else range(1, int(os.environ.get("STORM_COUNT", "5")) + 1)


def stream(chance, topic):
    """Coordinates of all partitions, mixed, each partition in order and with gaps."""
    at, made = [chance.randrange(5) for _ in range(PARTITIONS)], []
    for _ in range(RECORDS):
        partition = chance.randrange(PARTITIONS)
        made.append((topic, partition, at[partition]))
        at[partition] += chance.choice((1, 1, 1, 1, 2, 3, 7, 1000))
    return made


def element(one):
    topic, partition, offset = one
    return record(offset, topic, partition, s='},{"a,\n', pad="p" * (offset * 37 % 700))


class Faults:
    """What the target does wrong, by chance."""

    def __init__(self, seed):
        self.chance, self.lock, self.is_on = random.Random("faults/%d" % seed), threading.Lock(), True

    def half(self, seen):
        return {one for one in seen.keys if self.chance.random() < 0.5}

    def __call__(self, seen):
        with self.lock:
            return self.choose(seen) if self.is_on and seen.is_write else Reply()

    def choose(self, seen):
        at = self.chance.random()
        if at < 0.04:
            return Reply(status=self.chance.choice((400, 409, 429, 503, 503)))
        if at < 0.055:
            return Reply(status=self.chance.choice((500, 502, 504)), applied=self.chance.choice((True, False, self.half(seen))))
        if at < 0.075:
            cut, end = self.chance.choice(CUTS)
            return Reply(cut=cut, end=end, applied=self.chance.choice((True, False, self.half(seen))))
        if at < 0.09 and not seen.is_bulk and not seen.is_collector:
            return Reply(cut="body", end="rst")
        if at < 0.13:
            return Reply(held=Pause(self.chance.choice((0.005, 0.03, 0.1))))
        if seen.is_bulk and at < 0.4:
            return Reply(items={one: self.chance.choice((400, 409, 429, 429, 503) * 2 + (500,))
                                for one in seen.keys if self.chance.random() < 0.15})
        return Reply()


class Pause:
    def __init__(self, seconds):
        self.seconds = seconds

    def wait(self, _):
        time.sleep(self.seconds)


class Task:
    """A task of a connector: its records in order, at least once, in batches that are cut anew at every attempt."""

    def __init__(self, test, name, records, shapes):
        self.test, self.records, self.shapes = test, records, shapes
        self.chance = random.Random("%d/%s" % (test.seed, name))
        self.error = self.last = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            self.run_all()
        except Exception as error:  # shown by the test, in its own thread
            self.error = error

    def run_all(self):
        at = 0
        while at < len(self.records) and not self.test.unexpected:
            shape = self.chance.choice(self.shapes)
            size = 1 if shape == "single" else self.chance.choice((1, 2, 5, 10, 25))
            batch = [one for one in self.records[at:at + size] if one not in self.test.given_up]
            if not batch or self.deliver(shape, batch):
                at += size
            if self.chance.random() < 0.05:  # a rebalance: again from the last commit
                at = max(0, at - self.chance.randrange(1, 40))

    def deliver(self, shape, batch):
        """True: the connector may go on."""
        build, path = BUILD[shape]
        elements = [element(one) for one in batch]
        if self.chance.random() < 0.1 and len(elements) > 1:  # a buffer that holds one twice
            elements.append(self.chance.choice(elements))
        body, headers = build(elements), {}
        coding = self.chance.choice((None, None, "gzip", "zstd"))
        if coding:
            body, headers = batches.packed(body, coding), {"Content-Encoding": coding}
        answer = self.post(path, body, headers)
        if answer is None:
            return False
        self.last = shape, batch, answer
        self.test.answered(shape, batch, answer)
        if answer.outcome == "in-doubt":
            self.give_up(batch)
        if answer.status // 100 != 2 or (shape == "bulk" and answer.json()["errors"]):
            time.sleep(0.005)
            return False
        return True

    def post(self, path, body, headers):
        seconds, lives = self.chance.choice((0.3, 20, 20, 20)), self.test.lives
        try:
            return self.test.deliver(body, path, headers, seconds)
        except (OSError, harness.http.client.HTTPException) as error:
            if isinstance(error, socket.timeout) and seconds == 20 and lives == self.test.lives:
                raise AssertionError("a request was never answered: %r" % body[:300])
            time.sleep(0.01)
            return None

    def give_up(self, batch):
        """A record in doubt may be held for ever: a connector with a dead letter queue goes on without it."""
        for one in batch:
            try:
                if self.chance.random() < 0.5 and self.test.proxy.record_state(key(*one)) == "in_doubt":
                    self.test.given_up.add(one)
            except (OSError, RuntimeError, ValueError, harness.http.client.HTTPException):
                return


class Test(BatchScenario):
    def storm(self, seed):
        print("seed %d" % seed, flush=True)
        self.seed, self.lives, self.chance = seed, 0, random.Random(seed)
        self.given_up, self.acked, self.unexpected = set(), set(), []
        self.streams = {topic: stream(self.chance, topic) for topic in (*STEADY, LOOSE, EVENTS)}
        self.target.choose = faults = Faults(seed)
        self.serve(TARGET_TIMEOUT="500ms", WAIT="20ms", TARGET_IDLE="500ms")
        phases = self.chance.sample(PHASES, len(PHASES))
        for number, phase in enumerate(phases):
            self.run_phase(number, phase, len(phases))
        faults.is_on = False
        self.target.drop()
        self.wait_calm()
        self.check(self.doubts())
        self.check_order()
        self.settle_all()

    def wait_calm(self):
        wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 0, "nothing in flight", 60)

    def part(self, topic, number, count):
        """The records of a phase, some of the one before among them."""
        share = RECORDS // count
        return self.streams[topic][max(0, number * share - 10):(number + 1) * share]

    def run_phase(self, number, phase, count):
        settings, steady, loose = phase
        self.lives += 1
        self.restart(**{"SHAPE": "auto", "SPLIT": "off", "SEPARATOR": None, "ENVELOPE": None, **settings})
        tasks = [Task(self, "%s/%d" % (topic, number), self.part(topic, number, count), steady) for topic in STEADY]
        for twin in "ab":  # one stuck task and the one that took over
            tasks.append(Task(self, "loose/%s/%d" % (twin, number), self.part(LOOSE, number, count), loose))
        if steady is AUTO:
            tasks.append(Task(self, "events/%d" % number, self.streams[EVENTS], ["events"]))
        self.nemesis(tasks)
        for task in tasks:
            task.thread.join(120)
            self.assertFalse(task.thread.is_alive(), "a task hangs at %r" % (task.last,))
            if task.error:
                raise task.error
        self.assertEqual(self.unexpected, [])
        self.wait_calm()
        self.check_sum()
        if not harness.is_sanitized():
            self.assertLess(harness.rss_kib(self.proxy.process.pid, "VmHWM"), RSS_KIB_MAX)

    def nemesis(self, tasks):
        def is_over():
            return not any(task.thread.is_alive() for task in tasks)
        for _ in range(KILLS):
            goal = len(self.target.lines()) + self.chance.randrange(10, 40)
            wait_for(lambda: len(self.target.lines()) >= goal or is_over(), "progress", 120)
            if is_over():
                return
            self.lives += 1
            self.proxy.kill()
            self.proxy.start()

    def answered(self, shape, batch, answer):
        """What the connector believes now."""
        if answer.outcome == "conflict" or (answer.status >= 500 and answer.status != 503):
            self.unexpected.append((shape, batch, answer))
        if shape == "bulk" and answer.status == 200:
            statuses = {identity: status for _, identity, status in batches.items_of(answer)}
            self.acked.update(key(*one) for one in batch if statuses["%s+%d+%d" % one] // 100 == 2)
        elif answer.status // 100 == 2:
            self.acked.update(key(*one) for one in batch)

    # at the end

    def produced(self):
        known = {}
        for topic, records in self.streams.items():
            for one in records:
                data = element(one) if topic != EVENTS else batches.events([element(one)]).rstrip(b"\n")
                known[key(*one)] = sinkonce.journal_hash(data)
        return known

    def check(self, doubts):
        report = checker.check([line[:2] for line in self.target.lines()], self.produced(), self.acked, doubts, may_lack=True)
        print("\n".join(report.lines()), flush=True)
        self.assertTrue(report.is_good, "seed: see the first line\n" + "\n".join(report.lines()))
        pending = set(self.produced()) - {line[0] for line in self.target.lines()}
        self.assertEqual(pending - set(doubts), set(), "neither applied nor in doubt")

    def check_order(self):
        """One task after the other sent these, and no single item of them was refused."""
        steady = [line[0] for line in self.target.lines() if line[0].split("/")[0] in STEADY]
        self.assertEqual(checker.out_of_order(steady), [])

    def settle_all(self):
        """A person compares the list with the target; then every record can be delivered."""
        self.restart(SHAPE="auto", SPLIT="off", SEPARATOR=None, ENVELOPE=None)
        for doubt in self.doubts():
            self.assertEqual(self.proxy.resolve(doubt, self.target.count(doubt) > 0)[0], 200)
        for topic, records in self.streams.items():
            build, path = BUILD["events" if topic == EVENTS else self.chance.choice(("json_array", "bulk", "ndjson"))]
            for at in range(0, len(records), 50):
                answer = self.deliver(build([element(one) for one in records[at:at + 50]]), path)
                self.assertEqual(answer.status, 200, answer)
        counts = [self.target.count(one) for one in self.produced()]
        self.assertEqual((len(counts), set(counts), self.doubts()), (4 * RECORDS, {1}, []))


def one_seed(seed):
    return lambda self: self.storm(seed)


for seed_ in seeds():
    setattr(Test, "test_Z_05_F_00_a_storm_of_batches_with_seed_%d" % seed_, one_seed(seed_))


if __name__ == "__main__":
    harness.main()
