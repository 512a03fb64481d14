"""A Kafka broker, Connect workers and a feeder of records, on random ports of 127.0.0.1.

The jars come from Maven (pom.xml); the connector of this folder is compiled into a plugin of the worker.  Without
Java, Maven or the registry prepare() raises Missing with the reason.
"""

import base64
import hashlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "support"))
import sinkonce
from sinkonce import wait_for

QUICK_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true",
             "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true"]


class Missing(Exception):
    """What the run cannot do without is not on this machine."""


def _run(command, what, problem):
    """Run COMMAND to its end, or raise PROBLEM with its first word of error."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line.lower()]
        raise problem("%s: %.160s" % (what, (lines or ["exit code %d" % done.returncode])[0]))


def prepare(work):
    """Bring the jars and build the plugin under WORK, unless that is done; the classpath and the plugin folder."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise Missing("no %s" % program)
    pom = os.path.join(HERE, "pom.xml")
    with open(pom, "rb") as text:
        jars = os.path.join(work, "jars-" + hashlib.sha256(text.read()).hexdigest()[:12])
    if not os.path.exists(jars):
        coming = jars + ".coming"
        shutil.rmtree(coming, ignore_errors=True)
        _run(["mvn", "-B", "-q", "-Dstyle.color=never", "-f", pom, "dependency:copy-dependencies", "-DincludeScope=runtime",
              "-DoutputDirectory=" + coming], "Maven could not bring the jars", Missing)
        os.rename(coming, jars)
    return _compile(work, os.path.join(jars, "*"))


def _compile(work, jars):
    classes, plugins = os.path.join(work, "classes"), os.path.join(work, "plugins")
    shutil.rmtree(classes, ignore_errors=True)
    source = os.path.join(HERE, "connector", "sinkonce", "e2e")
    _run(["javac", "-nowarn", "-cp", jars, "-d", classes] +
         [os.path.join(source, name) for name in sorted(os.listdir(source))], "javac", RuntimeError)
    os.makedirs(os.path.join(plugins, "sinkonce-e2e"), exist_ok=True)
    with zipfile.ZipFile(os.path.join(plugins, "sinkonce-e2e", "sinkonce-e2e.jar"), "w") as jar:
        for name in os.listdir(os.path.join(classes, "sinkonce", "e2e")):
            jar.write(os.path.join(classes, "sinkonce", "e2e", name), "sinkonce/e2e/" + name)
        jar.writestr("META-INF/services/org.apache.kafka.connect.sink.SinkConnector",
                     "sinkonce.e2e.HttpSinkConnector\nsinkonce.e2e.JdbcSinkConnector\n")
    return jars, classes, plugins


def _jmx_options(port):
    """A JMX port on loopback alone; None: none."""
    if port is None:
        return []
    settings = {"port": port, "rmi.port": port, "host": "127.0.0.1", "authenticate": "false", "ssl": "false"}
    return ["-Dcom.sun.management.jmxremote.%s=%s" % pair for pair in settings.items()] + \
        ["-Djava.rmi.server.hostname=127.0.0.1"]


def write_properties(path, properties):
    with open(path, "w") as out:
        out.writelines("%s=%s\n" % pair for pair in properties.items())
    return path


def _accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Cluster:
    """The broker and the feeder, and the workers of new_worker(); ended by close().

    PROPERTIES are the broker's, beside those that every run needs; LISTENERS more of its listeners, as
    {name: (port, protocol)}; HAS_JMX: metric() can read what it counts.
    """

    def __init__(self, work, logs, properties=None, listeners=None, has_jmx=False):
        self.jars, self.classes, self.plugins = prepare(work)
        self.work, self.logs = work, logs
        self.port, self.controller_port = sinkonce.free_port(), sinkonce.free_port()
        self.bootstrap = "127.0.0.1:%d" % self.port
        self.properties = properties or {}
        self.jmx_port = sinkonce.free_port() if has_jmx else None
        self.listeners = {"PLAINTEXT": (self.port, "PLAINTEXT"), **(listeners or {})}
        self.broker = self.feeder = None
        self.workers = []

    def log(self, name):
        return os.path.join(self.logs, name)

    def java(self, name, heap, classpath, arguments, options=(), **more):
        return sinkonce.Process(["java", "-Xmx" + heap] + QUICK_JVM + list(options) + ["-cp", classpath] + arguments,
                                self.log(name + ".log"), cwd=self.logs, **more)

    def start(self):
        self._format()
        self.start_broker()
        self.feeder = self.java("feeder", "128m", self.classes + ":" + self.jars,
                                ["sinkonce.e2e.Records", self.bootstrap],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _format(self):
        data = self.log("kafka-data")
        shutil.rmtree(data, ignore_errors=True)
        addresses = ["%s://127.0.0.1:%d" % (name, port) for name, (port, _) in self.listeners.items()]
        protocols = ["%s:%s" % (name, protocol) for name, (_, protocol) in self.listeners.items()]
        self.broker_file = write_properties(self.log("broker.properties"), {
            "process.roles": "broker,controller", "node.id": 1, "log.dirs": data,
            "listeners": ",".join(addresses + ["CONTROLLER://127.0.0.1:%d" % self.controller_port]),
            "advertised.listeners": ",".join(addresses),
            "listener.security.protocol.map": ",".join(protocols + ["CONTROLLER:PLAINTEXT"]),
            "inter.broker.listener.name": "PLAINTEXT", "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:%d" % self.controller_port,
            "offsets.topic.replication.factor": 1, "offsets.topic.num.partitions": 2,
            "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 2,
            "group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000,
            "auto.create.topics.enable": "false", "log.segment.delete.delay.ms": 0, **self.properties})
        chosen = os.urandom(16)  # the first bit is cleared: an id that begins with a dash reads like an option
        cluster_id = base64.urlsafe_b64encode(bytes([chosen[0] & 0x7f]) + chosen[1:]).decode().rstrip("=")
        formatting = self.java("format", "128m", self.jars,
                               ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", self.broker_file])
        if formatting.wait(60) != 0:
            raise RuntimeError("the broker's folder could not be formatted: see " + self.log("format.log"))

    def start_broker(self):
        """Start it on the data that it has, and wait until it listens."""
        self.broker = self.java("broker", "512m", self.jars, ["kafka.Kafka", self.broker_file],
                                _jmx_options(self.jmx_port))
        wait_for(lambda: _accepts(self.port), "the broker to listen", 120, [self.log("broker.log")])

    def new_worker(self, name="worker", properties=None, options=(), has_jmx=False):
        self.workers.append(Worker(self, name, properties or {}, options, has_jmx))
        return self.workers[-1]

    def end_workers(self):
        for worker in self.workers:
            worker.kill()
        self.workers.clear()

    def close(self):
        self.end_workers()
        if self.feeder:
            self.feeder.kill()
            self.feeder.popen.stdin.close()
            self.feeder.popen.stdout.close()
        if self.broker:
            self.broker.kill()
        shutil.rmtree(self.log("kafka-data"), ignore_errors=True)

    # topics and records

    def feed(self, *words):
        """Tell the feeder (Records.java); what it answers behind its ok."""
        self.feeder.popen.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.feeder.popen.stdin.flush()
        answer = self.feeder.popen.stdout.readline().decode().strip()
        if answer.split(" ")[0] != "ok":
            raise RuntimeError("%s: %s" % (words[0], answer or "the feeder ended"))
        return answer[3:]

    def try_feed(self, *words):
        try:
            self.feed(*words)
            return True
        except RuntimeError:
            if not self.feeder.is_running():
                raise
            return False

    def metric(self, pattern, attribute, jmx_port=None):
        """The sum over the MBeans of a name pattern, of the broker or of the worker with that JMX_PORT."""
        return float(self.feed("metric", jmx_port or self.jmx_port, pattern, attribute))


class Worker:
    """A Connect worker, the only one of its group.  Each start has the same ports and the same topics."""

    def __init__(self, cluster, name, properties, options, has_jmx):
        self.cluster, self.name, self.options = cluster, name, list(options)
        self.jmx_port = sinkonce.free_port() if has_jmx else None
        self.port = sinkonce.free_port()
        self.log = cluster.log(name + ".log")
        self.properties = {
            "bootstrap.servers": cluster.bootstrap, "group.id": "e2e-%s-group" % name,
            "listeners": "http://127.0.0.1:%d" % self.port,
            "plugin.path": cluster.plugins, "plugin.discovery": "service_load",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "offset.storage.topic": "e2e-%s-offsets" % name, "offset.storage.partitions": 1,
            "config.storage.topic": "e2e-%s-configs" % name,
            "status.storage.topic": "e2e-%s-status" % name, "status.storage.partitions": 1,
            "offset.storage.replication.factor": 1, "config.storage.replication.factor": 1,
            "status.storage.replication.factor": 1,
            "offset.flush.interval.ms": 1000, "scheduled.rebalance.max.delay.ms": 0,
            "session.timeout.ms": 5000, "heartbeat.interval.ms": 1000, "rebalance.timeout.ms": 10000,
            "consumer.session.timeout.ms": 5000, "consumer.heartbeat.interval.ms": 1000,
            "consumer.fetch.max.wait.ms": 100, **properties}
        self.process = None

    def start(self, max_poll_records=200):
        self.max_poll_records = max_poll_records
        path = write_properties(self.cluster.log(self.name + ".properties"),
                                {**self.properties, "consumer.max.poll.records": max_poll_records})
        self.process = self.cluster.java(self.name, "400m", self.cluster.jars,
                                         ["org.apache.kafka.connect.cli.ConnectDistributed", path],
                                         self.options + _jmx_options(self.jmx_port))
        return self

    def wait_ready(self):
        wait_for(lambda: self._ask("GET", "/connectors")[0] == 200, "the REST port of the " + self.name, 90, [self.log])

    def is_running(self):
        return self.process is not None and self.process.is_running()

    def kill(self):
        if self.is_running():
            self.process.kill()

    def revive(self):
        """Start it again where a broken scenario left it dead."""
        if not self.is_running():
            self.start()
            self.wait_ready()

    # connectors

    def _ask(self, method, path, document=None):
        body = None if document is None else json.dumps(document).encode()
        try:
            status, _, answer = sinkonce.request(self.port, method, path, body, {"Content-Type": "application/json"})
        except (OSError, http.client.HTTPException):
            return 0, None
        try:
            return status, json.loads(answer)
        except ValueError:
            return status, None

    def create_connector(self, name, config):
        wait_for(lambda: self._ask("PUT", "/connectors/%s/config" % name, config)[0] in (200, 201),
                 "connector %s to be taken" % name, 60, [self.log])

    def delete_connector(self, name):
        wait_for(lambda: self._ask("DELETE", "/connectors/" + name)[0] in (204, 404),
                 "connector %s to be deleted" % name, 60, [self.log])
        wait_for(lambda: self._ask("GET", "/connectors/%s/status" % name)[0] != 200,
                 "the tasks of %s to end" % name, 60, [self.log])

    def committed(self, name):
        """{TOPIC/PARTITION: offset} of what the connector has committed."""
        status, answer = self._ask("GET", "/connectors/%s/offsets" % name)
        if status != 200:
            return {}
        return {"%(kafka_topic)s/%(kafka_partition)s" % entry["partition"]: entry["offset"]["kafka_offset"]
                for entry in answer["offsets"]}

    def rewind(self, name, offsets):
        """Let the connector go on from OFFSETS, {TOPIC/PARTITION: offset}, and not from those that it has committed."""
        wait_for(lambda: self._ask("PUT", "/connectors/%s/stop" % name)[0] in (202, 204), "%s to stop" % name, 60,
                 [self.log])
        partitions = [partition.rpartition("/") for partition in offsets]
        document = {"offsets": [
            {"partition": {"kafka_topic": topic, "kafka_partition": int(number)},
             "offset": {"kafka_offset": offsets["%s/%s" % (topic, number)]}} for topic, _, number in partitions]}
        wait_for(lambda: self._ask("PATCH", "/connectors/%s/offsets" % name, document)[0] == 200,
                 "the offsets of %s to be changed" % name, 60, [self.log], every=0.2)
        wait_for(lambda: self._ask("PUT", "/connectors/%s/resume" % name)[0] in (202, 204), "%s to resume" % name, 60,
                 [self.log])

    def failures(self, name):
        """The traces of failed tasks."""
        status, answer = self._ask("GET", "/connectors/%s/status" % name)
        if status != 200:
            return []
        return [task["trace"] for task in answer["tasks"] if task["state"] == "FAILED"]
