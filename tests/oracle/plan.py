"""What one seed decides before anything runs: streams, shapes, settings, faults, and what the nemesis may do."""

import json
import random

import batches
import sinkonce
from target import TIMEOUT_MS

AUTO = ["json_array", "ndjson", "concat", "single", "bulk"]
# settings of one life, and the shapes that its JSON topics may come in
LIVES = [
    ({}, AUTO), ({}, AUTO), ({"SPLIT": "record"}, AUTO), (batches.SEPARATED, ["separated"]),
    ({**batches.SEPARATED, "SPLIT": "record"}, ["separated"]), (batches.ENVELOPE, ["envelope"]),
    ({"SHAPE": "json-array"}, ["json_array"]), ({"SHAPE": "ndjson"}, ["ndjson"]), ({"SHAPE": "concat"}, ["concat"]),
    ({"SHAPE": "bulk"}, ["bulk"]), ({"SHAPE": "single"}, ["single"]),
]
DEFAULTS = {"SHAPE": "auto", "SPLIT": "off", "SEPARATOR": None, "ENVELOPE": None}
POLICIES = ["hold"] * 5 + ["probe"] * 2 + ["retry"] * 2 + ["assume-applied"]
NEMESES = ("kill", "term", "stop", "cut", "idle", "refuse", "slow_disk", "bad_disk", "full_disk", "clock", "mode", "drain",
           "forget", "replay", "rebalance", "rewind")
BUILD = {name: (build, path) for name, build, path, _ in batches.SHAPES}
BUILD["single"] = (lambda elements: elements[0], "/in")
BUILD["events"] = (batches.events, "/services/collector/event")
BUILD["headers"] = (lambda elements: elements[0], "/in")


def stripped(data):
    """What SINKONCE_STRIP leaves of a record; the target knows it by its other fields."""
    kept = {name: value for name, value in json.loads(data).items() if not name.startswith("__")}
    return json.dumps(kept, separators=(",", ":")).encode()


class Topic:
    """A topic: FAMILY says how its records look; its order is kept when no zombie may send it."""

    def __init__(self, chance, name, family, is_steady, record_count=None):
        self.name, self.family, self.is_steady = name, family, is_steady
        self.is_stripped = False
        self.partitions = chance.choice((1, 2, 3))
        self.records = self._stream(chance, record_count or chance.choice((30, 60, 100)))

    def _stream(self, chance, record_count):
        """Coordinates in order of each partition, with the gaps of compaction and aborted transactions."""
        at, made = [chance.choice((0, 0, 5, 1 << 33)) for _ in range(self.partitions)], []
        for _ in range(record_count):
            partition = chance.randrange(self.partitions)
            made.append((self.name, partition, at[partition]))
            at[partition] += chance.choice((1, 1, 1, 1, 1, 2, 3, 7, 1000))
        return made

    def shapes(self, of_life):
        if self.family == "json":
            return of_life
        return [self.family] if of_life is AUTO else []

    def element(self, one):
        topic, partition, offset = one
        if self.family == "headers":
            return bytes((offset * 31 + i * 7) % 256 for i in range(offset % 300)) + b"amount=%d" % offset
        return batches.record(offset, topic, partition, s='},{"a,\n', pad="p" * (offset * 37 % 700), t=topic, p=partition, o=offset)

    def hash(self, one):
        data = self.element(one)
        if self.family == "events":
            data = batches.events([data]).rstrip(b"\n")
        if self.is_stripped:
            data = stripped(data)
        return sinkonce.journal_hash(data)


class Plan:
    def __init__(self, seed):
        chance = random.Random(seed)
        self.seed, self.policy, self.pause = seed, chance.choice(POLICIES), 0
        self.sizes, self.is_endless = (1, 2, 5, 10, 25), False
        kinds = [("orders", "json", True), ("pay", "json", True), ("logs", "json", False), ("hec", "events", True),
                 ("raw", "headers", False)]
        is_stripped = chance.random() < 0.15
        self.topics = [Topic(chance, *kind) for kind in (kinds[:3] if is_stripped else chance.sample(kinds, 3))]
        for topic in self.topics:
            topic.is_stripped = is_stripped
        if not any(topic.family == "json" for topic in self.topics):
            self.topics[0] = Topic(chance, *kinds[0])
        self.fault_rate = chance.choice((0.04, 0.08, 0.15, 0.3))
        self.seconds = chance.choice((1.5, 2, 2.5, 3))
        self.nemeses = ["kill", "rebalance"] + chance.sample(NEMESES, 6)
        self.settings = {
            "WORKERS": chance.choice("123"), "WAIT": chance.choice(("0", "20ms", "100ms")), "IN_DOUBT": self.policy,
            "TARGET_TIMEOUT": "%dms" % TIMEOUT_MS, "CONNECT_TIMEOUT": "500ms", "DRAIN_TIMEOUT": "500ms",
            "TARGET_IDLE": chance.choice(("100ms", "500ms", "0")), "TARGET_CONNECTIONS": chance.choice(("3", "64")),
            "UNKEYED": "reject", "IDENTITY": "auto", "MARKS": chance.choice(("16", "65536")),
            "REPLIES": chance.choice(("0", "50", "100000")), "COMMIT_DELAY": chance.choice(("0", "0", "3ms")),
            "LEDGER_MAX": chance.choice(("1MiB", "64MiB", "64MiB")), "SPLIT_PARALLEL": chance.choice(("1", "8")),
            "STRIP": "on" if is_stripped else "off", "PROBE_DELAY": "50ms", "PROBE_TIMEOUT": "500ms", "LOG_FORMAT": "json",
        }
        if self.policy == "probe":
            self.settings["PROBE_URL"] = "/probe/{topic}/{partition}/{offset}"
        self.lives = [chance.choice(LIVES) for _ in range(40)]
        self.chance = chance  # what is left of it belongs to the nemesis

    def life(self, number):
        settings, shapes = self.lives[number % len(self.lives)]
        return {**DEFAULTS, **settings}, shapes

    def produced(self):
        return {sinkonce.key(*one): topic.hash(one) for topic in self.topics for one in topic.records}
