"""The same faults for different targets, and what each of them then holds.

Faults: answers that are lost after the target has applied (connection resets), answers that come later than the
connector waits for, the worker killed while a batch is applied and not acknowledged, and a connector set back to an
older offset.  Each target stands behind a gate (gate.py) that spoils its answers by the same rule.
"""

import http.server
import importlib.util
import os
import sys
import threading
import time
from collections import Counter

import sinkonce
from flow import KMETA, Broken, demand, read_lines, runs_of
from gate import Gate
from postgres import Postgres
from sinkonce import wait_for

RECORDS, PARTITIONS, BATCH = 3000, 2, 50
CUT_EVERY, HOLD_EVERY = 9, 13  # answers
CLIENT_TIMEOUT_MS = 1000
REWIND_TO = 500  # of each partition, once all is delivered
HTTP_DONE = b"HTTP/1.1 20"
TITLES = ("target", "answers lost, late", "rows expected", "found", "duplicates", "lost", "overwritten", "doubts",
          "resolved by")


class System:
    """A target and a sink for it.  The defaults are those of a target behind the small HTTP sink."""

    done = HTTP_DONE
    doubts, resolver = None, "-"

    def start(self, folder):
        """Its own port."""
        raise NotImplementedError

    def stand_in_front(self, gate):
        """The port that the connector is told."""
        return gate.port

    def http_config(self, port, path, form):
        return {"connector.class": "sinkonce.e2e.HttpSinkConnector", "http.url": "http://127.0.0.1:%d%s" % (port, path),
                "http.timeout.ms": str(CLIENT_TIMEOUT_MS), "form": form}

    def settle(self):
        """Called again and again while the connector works."""

    def check(self):
        """Called when all is delivered."""

    def found(self):
        """{key: how many of it are there}"""
        raise NotImplementedError

    def applied(self):
        """How many writes took effect: a row that is overwritten counts again, as for a trigger or a change stream."""
        return sum(self.found().values())

    def close(self):
        raise NotImplementedError


class Sql(System):
    """PostgreSQL; a trigger counts what each statement did."""

    done = b"COMMIT\0"
    TABLE = """CREATE TABLE records (topic text, part int, pos bigint, value text%s);
               CREATE TABLE effects (topic text);
               CREATE FUNCTION effect() RETURNS trigger AS
                   'BEGIN INSERT INTO effects VALUES (NEW.topic); RETURN NULL; END' LANGUAGE plpgsql;
               CREATE TRIGGER effect AFTER INSERT OR UPDATE ON records FOR EACH ROW EXECUTE FUNCTION effect()"""
    INSERT = "INSERT INTO records VALUES (?, ?, ?, ?)"

    def __init__(self, title, key="", clause=""):
        self.title, self.key, self.clause = title, key, clause

    def start(self, folder):
        self.server = Postgres(os.path.join(folder, "postgres"))
        self.server.ask(self.TABLE % self.key)
        return self.server.port

    def config(self, port):
        url = "jdbc:postgresql://127.0.0.1:%d/postgres?user=postgres&sslmode=disable&gssEncMode=disable" % port
        return {"connector.class": "sinkonce.e2e.JdbcSinkConnector", "jdbc.statement": self.INSERT + self.clause,
                "jdbc.url": url + "&socketTimeout=%d" % (CLIENT_TIMEOUT_MS // 1000)}

    def found(self):
        rows = self.server.ask("SELECT topic, part, pos, count(*) FROM records GROUP BY 1, 2, 3")
        return {"/".join(row[:3]): int(row[3]) for row in rows}

    def applied(self):
        return int(self.server.ask("SELECT count(*) FROM effects")[0][0])

    def close(self):
        self.server.close()


class Bulk(System):
    """An OpenSearch node; the _id is made of the coordinates, so that a second write is a new version of the same."""

    title = "OpenSearch, `_id` of the coordinates"

    def __init__(self, work):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "judges")
        sys.path.append(path)
        spec = importlib.util.spec_from_file_location("judges", os.path.join(path, "run.py"))
        self.judges = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.judges)
        self.work = work

    def start(self, folder):
        class_path = self.judges.compile_judge("node", ("Node",), os.path.join(self.work, "judges"))
        self.node = self.judges.bulk_node.Node(class_path, os.path.join(folder, "opensearch"))
        self.node.ask("PUT", "/orders", {"settings": {"number_of_shards": 1, "number_of_replicas": 0}})
        return self.node.port

    def config(self, port):
        return self.http_config(port, "/_bulk", "bulk")

    def _hits(self):
        self.node.ask("POST", "/orders/_refresh")
        found = self.node.ask("POST", "/orders/_search", {"size": 10000, "version": True, "_source": False})
        return found["hits"]["hits"]

    def found(self):
        return Counter(hit["_id"].replace("+", "/") for hit in self._hits())

    def applied(self):
        return sum(hit["_version"] for hit in self._hits())

    def close(self):
        self.node.close()


class Http(System):
    """The counting target: each record that is posted takes effect, as a booking would."""

    title = "HTTP, no key"

    def start(self, folder):
        self.target = sinkonce.Target(folder).start()
        return self.target.port

    def config(self, port):
        return {**self.http_config(port, "/ingest", "array"), **KMETA}

    def found(self):
        return Counter(line[0] for line in self.target.lines())

    def close(self):
        self.target.close()


class Asked:
    """Tells whether the target has a record: 200 or 404."""

    def __init__(self, target):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if target.count(self.path[1:]) else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d/{topic}/{partition}/{offset}" % self.server.server_port

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Guarded(Http):
    """The same target behind sinkonce; its doubts are resolved by a person who looks into the target's journal."""

    title = "HTTP, no key, sinkonce (`hold`)"
    resolver = "a person, who looked into the target"

    def start(self, folder):
        self.folder = folder
        return super().start(folder)

    def settings(self):
        return {}

    def stand_in_front(self, gate):
        self.proxy = sinkonce.Sinkonce("http://127.0.0.1:%d" % gate.port, self.folder,
                                       env={"SINKONCE_WAIT": "700ms", **self.settings()}).start()
        return self.proxy.port

    def settle(self):
        applied = self.found()
        for first, last, is_applied in runs_of(self.proxy.doubt_keys(), applied):
            topic, partition, offset = first.split("/")
            status, answer = self.proxy.resolve_run(topic, int(partition), int(offset), int(last.rpartition("/")[2]),
                                                    is_applied)
            demand(status == 200, "resolving %s to %s: %s", first, last, answer)

    def check(self):
        demand(not self.proxy.in_doubt(), "records are still in doubt")
        dropped = self.proxy.metric("sinkonce_duplicate_records_total")
        demand(dropped >= RECORDS - PARTITIONS * REWIND_TO, "only %d duplicates came, and were dropped", dropped)

    @property
    def doubts(self):
        return int(self.proxy.metric("sinkonce_entered_in_doubt_records_total"))

    def close(self):
        self.proxy.close()
        super().close()


class Probed(Guarded):
    """The same, and sinkonce asks the target itself."""

    title = "HTTP, no key, sinkonce (`probe`)"
    resolver = "the target, asked by sinkonce"

    def settings(self):
        self.asked = Asked(self.target)
        return {"SINKONCE_IN_DOUBT": "probe", "SINKONCE_PROBE_URL": self.asked.url, "SINKONCE_PROBE_DELAY": "200ms"}

    def settle(self):
        pass

    def close(self):
        super().close()
        self.asked.close()


def systems(work):
    upsert = Sql("PostgreSQL, upsert", ", PRIMARY KEY (topic, part, pos)",
                 " ON CONFLICT (topic, part, pos) DO UPDATE SET value = EXCLUDED.value")
    return [Sql("PostgreSQL, insert"), upsert, Bulk(work), Http(), Guarded(), Probed()]


class Run:
    """One system under all faults."""

    def __init__(self, cluster, worker, system, number):
        self.cluster, self.worker, self.system = cluster, worker, system
        self.name = "compare-%d" % number
        self.folder = cluster.log(self.name)
        os.makedirs(self.folder)
        self.produced_file = os.path.join(self.folder, "produced")

    def row(self):
        system = self.system
        self.gate = Gate(system.start(self.folder), system.done)
        try:
            self.gate.cut_every, self.gate.hold_every = CUT_EVERY, HOLD_EVERY
            self.deliver()
            system.check()
            return self.cells(set(read_lines(self.produced_file)), system.found())
        finally:
            if self.worker.is_running():
                self.worker.delete_connector(self.name)
            system.close()
            self.gate.close()

    def cells(self, expected, found):
        system, faults, rows = self.system, (self.gate.cuts, self.gate.holds), sum(found.values())
        demand(min(faults) > 1, "only %d answers were lost, and %d late", *faults)
        demand(set(found) <= expected, "there is what was never produced")
        return [system.title, "%d, %d" % faults, len(expected), rows, rows - len(found), len(expected - set(found)),
                system.applied() - rows, "-" if system.doubts is None else system.doubts, system.resolver]

    def deliver(self):
        self.worker.revive()
        wait_for(lambda: self.cluster.try_feed("create", self.name, PARTITIONS), "the topic to be created", 60)
        self.cluster.feed("produce", self.name, PARTITIONS, RECORDS, "compare", self.produced_file)
        self.worker.create_connector(self.name, {
            "tasks.max": str(PARTITIONS), "topics": self.name, "batch.max.size": str(BATCH), "retry.backoff.ms": "200",
            **self.system.config(self.system.stand_in_front(self.gate))})
        self.kill_in_mid_batch()
        self.wait(self.is_done, "all to be committed")
        self.worker.rewind(self.name, {"%s/%d" % (self.name, one): REWIND_TO for one in range(PARTITIONS)})
        self.wait(self.is_done, "all to be committed again")

    def kill_in_mid_batch(self):
        self.wait(lambda: self.gate.count * BATCH > RECORDS / 3, "a third to be delivered")
        demand(not self.is_done(), "the delivery was over before the kill")
        self.gate.holds_all = True
        self.wait(lambda: self.gate.waiting > 0, "an answer to be held")
        self.worker.kill()
        self.gate.holds_all = False
        self.worker.start()
        self.worker.wait_ready()

    def is_done(self):
        ends = {"%s/%d" % (self.name, one): RECORDS // PARTITIONS for one in range(PARTITIONS)}
        return self.worker.committed(self.name) == ends

    def wait(self, condition, what):
        def ask():
            failures = self.worker.failures(self.name)
            demand(not failures, "a task failed: %s", failures and failures[0].splitlines()[0])
            self.system.settle()
            return condition()
        wait_for(ask, "%s (%s)" % (what, self.system.title), 180, [self.worker.log], every=0.1)


def play(cluster, work):
    """The rows, and in words what did not hold."""
    worker = cluster.new_worker()
    rows, problems = [], []
    for number, system in enumerate(systems(work)):
        try:
            started = time.monotonic()
            rows.append(Run(cluster, worker, system, number).row())
            print("%s: %.0f s" % (system.title, time.monotonic() - started), flush=True)
        except (Broken, TimeoutError, RuntimeError) as problem:
            print("%s: FAILED: %s" % (system.title, problem), flush=True)
            problems.append(system.title)
    return rows, problems + judged(rows)


def judged(rows):
    """What the table must show: nothing is lost; what has neither key nor sinkonce shows duplicates, the rest none."""
    problems = []
    for title, _, _, _, duplicates, lost, overwritten, _, _ in rows:
        is_exposed = title in (Http.title, "PostgreSQL, insert")
        if lost or (duplicates > 0) != is_exposed:
            problems.append("%s: %d duplicates, %d lost" % (title, duplicates, lost))
        if "sinkonce" in title and overwritten:
            problems.append("%s: %d overwritten" % (title, overwritten))
    return problems


def print_table(rows):
    """In Markdown, as it stands in the README."""
    print("| %s |" % " | ".join(TITLES))
    print("|%s" % ("---|" * len(TITLES)))
    for row in rows:
        print("| %s |" % " | ".join(map(str, row)))
