"""What scenarios of batches share: requests with many records in every shape, the recorded requests of connectors, and a
target that answers in their dialects (support/batch_target.py).
"""

import json
import os
import re

import harness
from harness import Answer, Wire, checker, chunked, key, post_bytes, sinkonce, wait_for  # noqa: F401
from batch_target import BatchTarget, Reply, opened, packed, values_of  # noqa: F401

WIRE = os.path.join(os.path.dirname(harness.HERE), "wire")
ENVELOPE = {"SHAPE": "envelope", "ENVELOPE": "/rows"}
SEPARATED = {"SHAPE": "separated", "SEPARATOR": ","}
CODINGS = ("gzip", "deflate", "deflate-raw", "zstd")


def record(offset, topic="orders", partition=0, **fields):
    return sinkonce.record(topic, partition, offset, **fields)


def records(*offsets, topic="orders", partition=0, **fields):
    return [record(offset, topic, partition, **fields) for offset in offsets]


# ---- shapes: each takes the bytes of its records


def array(elements):
    return b"[" + b",".join(elements) + b"]"


def lines(elements):
    return b"".join(element + b"\n" for element in elements)


def concat(elements):
    return b"".join(elements)


def separated(elements):
    return b",".join(elements)


def envelope(elements):
    return b'{"rows":[' + b",".join(elements) + b'],"source":"test"}'


def action(element, kind="index", **meta):
    """An action with coordinates in its source line."""
    value = json.loads(element)
    meta = {"_index": value["__topic"], "_id": "%s+%d+%d" % (value["__topic"], value["__partition"], value["__offset"]), **meta}
    return json.dumps({kind: meta}, separators=(",", ":")).encode() + b"\n" + element + b"\n"


def bulk(elements, kind="index"):
    return b"".join(action(element, kind) for element in elements)


def events(elements):
    """Bodies of Splunk's Event Collector."""
    made = []
    for element in elements:
        value = json.loads(element)
        fields = {"kafka_topic": value["__topic"], "kafka_partition": str(value["__partition"]),
                  "kafka_offset": str(value["__offset"])}
        made.append(b'{"event":%s,"fields":%s}\n' % (element, json.dumps(fields, separators=(",", ":")).encode()))
    return b"".join(made)


# name, builder, path, settings
SHAPES = [
    ("json_array", array, "/in", {}), ("ndjson", lines, "/in", {}), ("concat", concat, "/in", {}),
    ("separated", separated, "/in", SEPARATED), ("envelope", envelope, "/in", ENVELOPE), ("bulk", bulk, "/_bulk", {}),
]


def values(body):
    """JSON values one after the other."""
    return [value for _, _, value in values_of(body.decode("latin-1"), 0)]


def stored(name):
    """A recorded request, byte for byte."""
    with open(os.path.join(WIRE, name + ".http"), "rb") as file:
        return file.read()


def parts(data):
    """(request line, fields, body without transfer coding) of a raw request."""
    head, _, body = data.partition(b"\r\n\r\n")
    head = head.decode("latin-1").split("\r\n")
    if any(line.lower().startswith("transfer-encoding: chunked") for line in head):
        body = harness.unchunked(body)
    return head[0], [tuple(line.split(": ", 1)) for line in head[1:]], body


class BatchScenario(harness.Scenario):
    """One target that takes batches and, from self.serve() on, one sinkonce."""

    def setUp(self):
        self.target = BatchTarget().start()
        self.addCleanup(self.target.close)
        self.proxy = None
        self.is_killed_between = False

    def raw(self, data, port=None):
        """Send the bytes of one request: a Reply."""
        with Wire(port or self.proxy.port) as wire:
            wire.send(data)
            return wire.final(data.split(b" ", 1)[0].decode())

    def deliver(self, body, path="/in", headers=None, timeout=harness.PATIENCE):
        return Answer(*self.proxy.post(path, body, headers, timeout))

    def collect(self, elements, channel="c-1", timeout=harness.PATIENCE):
        return self.deliver(events(elements), "/services/collector/event", {"X-Splunk-Request-Channel": channel}, timeout)

    def poll(self, ids, channel="c-1"):
        return self.deliver(json.dumps({"acks": ids}).encode(), "/services/collector/ack", {"X-Splunk-Request-Channel": channel})

    def written(self, skip=0):
        """The writes that reached the target."""
        return self.target.writes()[skip:]

    def arrived(self, skip=0):
        """Their keys, in the order of their arrival."""
        return [one for seen in self.written(skip) for one in seen.keys]

    def wait_written(self, count):
        wait_for(lambda: len(self.target.writes()) >= count, "writes at the target", harness.PATIENCE, [self.proxy.log])

    def wait_held(self, count=1):
        wait_for(lambda: self.target.held() >= count, "held requests", harness.PATIENCE, [self.proxy.log])

    def states(self, *offsets, topic="orders", partition=0):
        return [self.state(offset, topic, partition) for offset in offsets]

    def assert_duplicate(self, answer, body=b""):
        """Everything was dropped."""
        self.assertEqual((answer.status, answer.outcome, answer.body), (200, "duplicate", body), answer)
        self.assertTrue(answer.is_replayed, answer)


def items_of(answer):
    """(action, _id, status) of a bulk answer's items, after a look at what the clients demand."""
    document = answer.json()
    assert set(document) <= {"took", "ingest_took", "errors", "items"}, document
    found = []
    for item in document["items"]:
        (kind, member), = item.items()
        assert member["_index"] and member["_id"] is not None and isinstance(member["status"], int), member
        if "error" not in member:
            assert member["_type"] == "_doc" and isinstance(member["_version"], int) and member["result"], member
            assert member["_shards"]["failed"] == 0, member
        found.append((kind, member["_id"], member["status"]))
    assert document["errors"] == any("error" in member for item in document["items"] for member in item.values()), document
    assert re.match("application/(vnd|json)", answer.headers["content-type"]), answer
    return found


def main():
    harness.main()
