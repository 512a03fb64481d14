"""One sink connector from Kafka to the counting target, with or without sinkonce in between, and what it must hold."""

import os
import time
from collections import Counter

import kafka  # noqa: F401  (puts tests/support into the path)
import sinkonce
from sinkonce import wait_for

import checker

PARTITIONS = 4
BATCH_FORMS = ("array", "lines", "bulk")
BATCH_SIZE = 59  # so that one of the two leaves a batch of one record behind
KMETA = {
    "transforms": "kmeta",
    "transforms.kmeta.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.kmeta.topic.field": "__topic",
    "transforms.kmeta.partition.field": "__partition",
    "transforms.kmeta.offset.field": "__offset",
}
RECORD_PARTS = ("applied", "duplicate", "rejected", "not_sent", "busy", "conflict", "unkeyed", "entered_in_doubt")


class Broken(Exception):
    """A demand that did not hold."""


def demand(holds, what, *more):
    if not holds:
        raise Broken(what % more)


def runs_of(keys, applied):
    """(first key, last key, whether they are APPLIED) of each run of neighbours that are alike."""
    runs = []
    for key in sorted(keys, key=lambda key: (key.rpartition("/")[0], int(key.rpartition("/")[2]))):
        partition, _, offset = key.rpartition("/")
        before = "%s/%d" % (partition, int(offset) - 1)
        if runs and runs[-1][1] == before and runs[-1][2] == (key in applied):
            runs[-1][1] = key
        else:
            runs.append([key, key, key in applied])
    return runs


def read_lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as lines:
        return [line.rstrip("\n") for line in lines]


class Flow:
    """One connector, from one topic to one target, with or without sinkonce between them.

    CONFIG is of the connector, above what its form asks for; it may name other topics.
    """

    def __init__(self, cluster, worker, name, is_guarded, timeout_ms=30000, form="body", env=None, config=None):
        self.cluster, self.worker = cluster, worker
        self.name = "%s-%s" % (name, "with" if is_guarded else "without")
        self.topic = "e2e-" + self.name
        self.folder = cluster.log(self.name)
        os.makedirs(self.folder)
        self.produced_file = os.path.join(self.folder, "produced")
        self.acked_file = os.path.join(self.folder, "acked")
        self.sent_file = os.path.join(self.folder, "sent")
        self.target = sinkonce.Target(self.folder)
        self.proxy = None
        self.is_guarded = is_guarded
        self.timeout_ms, self.form, self.env, self.config = timeout_ms, form, env, config or {}
        self.doubts_seen = []

    def __enter__(self):
        self.target.start()
        if self.is_guarded:
            self.proxy = sinkonce.Sinkonce(self.target_url(), self.folder, env=self.env).start()
        return self

    def __exit__(self, *_):
        if self.worker.is_running():
            self.worker.delete_connector(self.name)
        if self.proxy:
            self.proxy.close()
        self.target.close()

    def target_url(self):
        return self.target.url

    def produce(self, count, mark="first"):
        wait_for(lambda: self.cluster.try_feed("create", self.topic, PARTITIONS), "the topic to be created", 60)
        self.feed(count, mark)

    def feed(self, count, mark="first"):
        self.cluster.feed("produce", self.topic, PARTITIONS, count, mark, self.produced_file)

    def connect(self):
        path = "/_bulk?timeout=1m" if self.form == "bulk" else "/ingest"
        config = {"connector.class": "sinkonce.e2e.HttpSinkConnector", "tasks.max": str(PARTITIONS),
                  "topics": self.topic, "http.url": (self.proxy.url if self.proxy else self.target_url()) + path,
                  "http.timeout.ms": str(self.timeout_ms), "retry.backoff.ms": "200", "form": self.form,
                  "ack.log": self.acked_file, "sent.log": self.sent_file}
        if self.form not in ("headers", "bulk"):
            config.update(KMETA)
        if self.form in BATCH_FORMS:  # two partitions a task, and fetches that are smaller than a poll: they mix
            config.update({"tasks.max": str(PARTITIONS // 2), "batch.max.size": str(BATCH_SIZE),
                           "consumer.override.max.partition.fetch.bytes": "16384"})
        self.worker.create_connector(self.name, {**config, **self.config})

    def produced(self):
        """{key: hash of its body, once the connector has sent it}"""
        acked = self.acked()
        return {key: acked.get(key) for key in read_lines(self.produced_file)}

    def acked(self):
        """{key: hash of the body as the connector sent it}"""
        return dict(line.split("\t") for line in read_lines(self.acked_file) if "\t" in line)

    def sent(self):
        """Each request as the connector sent it: {partition: (first, last)}"""
        requests = []
        for line in read_lines(self.sent_file):
            ranges = (word.split(":") for word in line.split())
            requests.append({int(partition): tuple(map(int, span.split("-"))) for partition, span in ranges})
        return requests

    def applied(self):
        return self.target.stats()["applied"]

    def first_unacked(self):
        """The one record of each partition that can be on the wire: the connector sends them in order, one by one."""
        acked = self.acked()
        firsts = {}
        for key in self.produced():
            partition, _, offset = key.rpartition("/")
            if key not in acked:
                firsts[partition] = min(firsts.get(partition, int(offset)), int(offset))
        return {"%s/%d" % pair for pair in firsts.items()}

    def wait_applied(self, count):
        self.wait(lambda: self.applied() >= count, "%d records at the target" % count)

    def wait(self, condition, what, seconds=120, every=0.01):
        def ask():
            failures = self.worker.failures(self.name) if time.monotonic() > self.next_look else []
            if failures:
                raise Broken("a task failed: " + failures[0].splitlines()[0])
            if time.monotonic() > self.next_look:
                self.next_look = time.monotonic() + 2
            return condition()
        self.next_look = time.monotonic() + 2
        logs = [self.proxy.log] if self.proxy else []
        return wait_for(ask, "%s (%s)" % (what, self.name), seconds, logs + [self.worker.log], every)

    def finish(self, also=lambda: None):
        """Wait until the connector has committed all that was produced; ALSO is called in between."""
        wanted = {}
        for key in self.produced():
            partition, _, offset = key.rpartition("/")
            wanted[partition] = max(wanted.get(partition, 0), int(offset) + 1)

        def is_done():
            also()
            return self.worker.committed(self.name) == wanted and self.acked().keys() >= self.produced().keys()
        self.wait(is_done, "the connector to finish", every=0.1)

    def journal(self):
        return [line[:2] for line in self.target.lines()]

    def resolve_by_journal(self, keys):
        """Resolve each doubt as the target's journal tells, and keep it in mind."""
        applied = {key for key, _ in self.journal()}
        for first, last, is_applied in runs_of(keys, applied):
            topic, partition, _ = first.split("/")
            offsets = [int(key.rpartition("/")[2]) for key in (first, last)]
            status, answer = self.proxy.resolve_run(topic, int(partition), *offsets, is_applied)
            demand(status == 200 and answer["records"] == offsets[1] - offsets[0] + 1, "resolving %s to %s: %s %s",
                   first, last, status, answer)
        self.doubts_seen += keys

    def report(self):
        doubts = self.proxy.doubt_keys() if self.proxy else []
        return checker.check(self.journal(), self.produced(), self.acked(), doubts,
                             exact_doubts=[], in_order=self.is_guarded)

    def demand_clean(self):
        report = self.report()
        demand(report.is_good, "%s: %s", self.name, "; ".join(report.lines()))
        parts = {name: self.proxy.metric("sinkonce_%s_records_total" % name) for name in RECORD_PARTS}
        total = self.proxy.metric("sinkonce_records_total")
        demand(sum(parts.values()) == total, "%s: %d records were taken in, the parts are %s", self.name, total, parts)

    def demand_redelivered(self):
        """The scenario proves something only when the connector sent records again."""
        if self.proxy:
            demand(self.proxy.metric("sinkonce_duplicate_records_total") > 0, "%s: nothing came twice", self.name)

    def demand_doubts_exact(self):
        """What was in doubt is what the target left without an answer, record for record."""
        broken_off = Counter(entry["key"] for entry in self.target.faulted() if entry["broken_off"])
        seen = Counter(self.doubts_seen)
        demand(seen == broken_off, "%s: broken off and never in doubt: %s; in doubt and never broken off: %s", self.name,
               sorted(broken_off - seen)[:5], sorted(seen - broken_off)[:5])

    def demand_cut_anew(self):
        """Batches of several partitions were sent, and records came again in batches with other boundaries."""
        sent = self.sent()
        demand(any(len(request) > 1 for request in sent), "%s: no request held several partitions", self.name)
        demand(any(list(request.values()) == [(first, first)] for request in sent for first, _ in request.values()),
               "%s: no request held one record", self.name)
        spans = {(partition, span) for request in sent for partition, span in request.items()}
        demand(any(p == q and s != t and s[0] <= t[1] and t[0] <= s[1] for p, s in spans for q, t in spans),
               "%s: no boundary of a batch has moved", self.name)
