"""The whole chain: lines of a file -> a source worker with exactly-once support (KIP-618), and a transactional producer
that aborts in between -> a sink worker that reads what is committed -> sinkonce -> the target.  Source worker, sinkonce
and sink worker are killed, each while it holds something.

What was aborted, and the marker behind each transaction, leave gaps between the offsets; one is wider than
SINKONCE_WINDOW.  Each line and each committed record must take effect once, and no gap may count as a loss.
"""

import json

from flow import Flow, demand, read_lines
from sinkonce import wait_for

FILE, PRODUCED = "chain-file", "chain-transactions"  # topics of PARTITIONS each
PARTITIONS = 2
LINES = (1500, 1500, 1000)  # written before the source worker is killed, meanwhile, and at the end
WINDOW = 65536
POLL_RECORDS = 100
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
NEW_LEDGER = "The ledger is less than a day old"


class Source:
    """The lines of a file, and the worker that brings them into a topic, each once."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.file = cluster.log("lines")
        self.count = 0
        self.worker = cluster.new_worker("source-worker", {"exactly.once.source.support": "enabled"})

    def write(self, count):
        with open(self.file, "a") as lines:
            for number in range(self.count, self.count + count):
                lines.write(json.dumps({"id": number, "pad": "x" * 200}) + "\n")
        self.count += count

    def connect(self):
        self.worker.create_connector("lines", {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1",
            "file": self.file, "topic": FILE, "batch.size": "50", "value.converter": STRINGS,
            "exactly.once.support": "required", "transaction.boundary": "interval",
            "transaction.boundary.interval.ms": "3000"})

    def open_offsets(self):
        return int(self.cluster.feed("open", FILE, PARTITIONS))

    def kill_inside_transaction(self, count):
        """Write COUNT lines and kill the worker while they are under way; those of before are committed."""
        wait_for(lambda: self.open_offsets() == 0, "the last transaction to end", 60, [self.worker.log])
        self.write(count)
        wait_for(self.open_offsets, "records in a transaction that is still open", 60, [self.worker.log])
        self.worker.kill()
        demand(self.open_offsets() > 0, "the transaction was over before the kill")

    def is_done(self):
        """Whether each line is there.  A line may not be there twice, at any time."""
        numbers = [json.loads(value)["id"] for _, value in read_topic(self.cluster, FILE)]
        demand(len(set(numbers)) == len(numbers), "the source wrote %d lines twice", len(numbers) - len(set(numbers)))
        return len(numbers) == self.count


def read_topic(cluster, topic, isolation="read_committed"):
    """[key, value] of each record."""
    path = cluster.log("%s.%s" % (topic, isolation))
    cluster.feed("read", topic, PARTITIONS, isolation, path)
    return [line.split("\t") for line in read_lines(path)]


def transact(cluster, count, outcome, partitions=PARTITIONS):
    cluster.feed("transact", PRODUCED, partitions, count, outcome, outcome)


def start_chain(cluster, source, flow):
    for topic in (FILE, PRODUCED):
        wait_for(lambda: cluster.try_feed("create", topic, PARTITIONS), "topic %s to be created" % topic, 60)
    source.write(LINES[0])
    transact(cluster, 40, "abort")  # the first record that the sink sees has an offset above 0
    transact(cluster, 400, "commit")
    source.worker.wait_ready()
    source.connect()
    flow.worker.wait_ready()
    flow.connect()
    flow.wait_applied(400)


def kill_sinkonce(cluster, flow):
    """Killed while one batch is applied and another is not, and nobody has been told of either."""
    flow.target.set(cut="answer", end="stall", apply="no", every=2)
    flow.target.add(cut="answer", end="stall")
    transact(cluster, 400, "commit")
    flow.wait(lambda: len(flow.target.held()) == PARTITIONS, "both tasks' requests to hang", every=0.1)
    flow.proxy.kill()
    held = {entry["key"]: entry["applied"] for entry in flow.target.faulted()}
    demand(set(held.values()) == {True, False}, "only one kind of doubt was made")
    flow.target.clear()
    flow.proxy.start()
    doubts = flow.proxy.doubt_keys()
    demand(doubts == sorted(held), "held at the kill: %d records; in doubt: %d", len(held), len(doubts))
    flow.resolve_by_journal(doubts)


def kill_sink_worker(cluster, flow):
    """Killed while the target has applied a batch of which the connector knows nothing."""
    flow.target.set(delay=2500)
    transact(cluster, 300, "abort")
    transact(cluster, 400, "commit")
    flow.wait(flow.target.held, "a batch to be held")
    flow.worker.kill()
    flow.target.clear()
    flow.worker.start(POLL_RECORDS)


def committed_keys(cluster):
    return [key for topic in (FILE, PRODUCED) for key, _ in read_topic(cluster, topic)]


def demand_gaps(cluster, flow):
    """There were aborted records of both kinds, and gaps, and nothing was alarmed but what is so."""
    for topic in (FILE, PRODUCED):
        aborted = len(read_topic(cluster, topic, "read_uncommitted")) - len(read_topic(cluster, topic))
        demand(aborted > 0, "nothing was aborted in %s", topic)
    missing = 0
    for partition in {key.rpartition("/")[0] for key in flow.produced()}:
        offsets = [int(key.rpartition("/")[2]) for key in flow.produced() if key.rpartition("/")[0] == partition]
        missing += max(offsets) + 1 - len(offsets)
    demand(missing > WINDOW, "the offsets have only %d gaps", missing)
    metrics = flow.proxy.metrics()
    for name, wanted in (("offset_jumps_total", 1), ("conflict_records_total", 0), ("below_window_records_total", 0)):
        demand(metrics["sinkonce_" + name] == wanted, "%s is %d", name, metrics["sinkonce_" + name])
    warnings = flow.proxy.admin("GET", "/status")[1]["warnings"]
    demand(all(text.startswith(NEW_LEDGER) for text in warnings), "%s", warnings)
    return missing


def play(cluster):
    """The figures of the run: (title, value)."""
    source = Source(cluster)
    source.worker.start()
    sink = cluster.new_worker("sink-worker").start(POLL_RECORDS)
    options = {"topics": "%s,%s" % (FILE, PRODUCED), "tasks.max": str(PARTITIONS), "batch.max.size": "25",
               "consumer.override.isolation.level": "read_committed"}
    with Flow(cluster, sink, "source", True, form="array", config=options,
              env={"SINKONCE_WINDOW": str(WINDOW)}) as flow:
        start_chain(cluster, source, flow)
        source.kill_inside_transaction(LINES[1])
        source.worker.start()
        kill_sinkonce(cluster, flow)
        transact(cluster, WINDOW + 1000, "abort", partitions=1)
        kill_sink_worker(cluster, flow)
        source.write(LINES[2])
        wait_for(source.is_done, "each line to be in the topic", 90, [source.worker.log], every=1)
        sink.wait_ready()
        with open(flow.produced_file, "w") as produced:
            produced.writelines(key + "\n" for key in committed_keys(cluster))
        flow.finish()
        flow.demand_clean()
        flow.demand_redelivered()
        missing = demand_gaps(cluster, flow)
        figures = flow.report().figures
        return [("committed", figures["produced"]), ("gaps", missing), ("applied", figures["applied"]),
                ("dropped duplicates", int(flow.proxy.metric("sinkonce_duplicate_records_total"))),
                ("doubts", len(flow.doubts_seen)), ("twice", figures["duplicates"]), ("lost", figures["lost"])]
