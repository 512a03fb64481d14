"""A Kafka broker, a Connect worker and a feeder of records, on random ports of 127.0.0.1.

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
                     "sinkonce.e2e.HttpSinkConnector\n")
    return jars, classes, plugins


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
    """The broker and the worker; ended by close()."""

    def __init__(self, work, logs):
        self.jars, self.classes, self.plugins = prepare(work)
        self.logs = logs
        self.port, self.controller_port, self.rest_port = (sinkonce.free_port() for _ in range(3))
        self.bootstrap = "127.0.0.1:%d" % self.port
        self.broker = self.worker = self.feeder = None

    def log(self, name):
        return os.path.join(self.logs, name)

    def _java(self, name, heap, classpath, arguments, **more):
        return sinkonce.Process(["java", "-Xmx" + heap] + QUICK_JVM + ["-cp", classpath] + arguments,
                                self.log(name + ".log"), cwd=self.logs, **more)

    def start(self):
        self._start_broker()
        wait_for(lambda: _accepts(self.port), "the broker to listen", 60, [self.log("broker.log")])
        self.start_worker()
        self.feeder = self._java("feeder", "128m", self.classes + ":" + self.jars,
                                 ["sinkonce.e2e.Records", self.bootstrap],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.wait_for_worker()

    def _start_broker(self):
        data = self.log("kafka-data")
        shutil.rmtree(data, ignore_errors=True)
        path = write_properties(self.log("broker.properties"), {
            "process.roles": "broker,controller", "node.id": 1, "log.dirs": data,
            "listeners": "PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d" % (self.bootstrap, self.controller_port),
            "advertised.listeners": "PLAINTEXT://" + self.bootstrap,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:%d" % self.controller_port,
            "offsets.topic.replication.factor": 1, "offsets.topic.num.partitions": 2,
            "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000,
            "auto.create.topics.enable": "false", "log.segment.delete.delay.ms": 0})
        cluster_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        formatting = self._java("format", "128m", self.jars,
                                ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", path])
        if formatting.wait(60) != 0:
            raise RuntimeError("the broker's folder could not be formatted: see " + self.log("format.log"))
        self.broker = self._java("broker", "512m", self.jars, ["kafka.Kafka", path])

    def start_worker(self, max_poll_records=200):
        self.max_poll_records = max_poll_records
        path = write_properties(self.log("worker.properties"), {
            "bootstrap.servers": self.bootstrap, "group.id": "e2e-workers",
            "listeners": "http://127.0.0.1:%d" % self.rest_port,
            "plugin.path": self.plugins, "plugin.discovery": "service_load",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "offset.storage.topic": "e2e-offsets", "offset.storage.partitions": 1,
            "config.storage.topic": "e2e-configs",
            "status.storage.topic": "e2e-status", "status.storage.partitions": 1,
            "offset.storage.replication.factor": 1, "config.storage.replication.factor": 1,
            "status.storage.replication.factor": 1,
            "offset.flush.interval.ms": 1000, "scheduled.rebalance.max.delay.ms": 0,
            "session.timeout.ms": 5000, "heartbeat.interval.ms": 1000, "rebalance.timeout.ms": 10000,
            "consumer.max.poll.records": max_poll_records, "consumer.session.timeout.ms": 5000,
            "consumer.heartbeat.interval.ms": 1000, "consumer.fetch.max.wait.ms": 100})
        self.worker = self._java("worker", "400m", self.jars, ["org.apache.kafka.connect.cli.ConnectDistributed", path])

    def wait_for_worker(self):
        wait_for(lambda: self._ask("GET", "/connectors")[0] == 200, "the worker's REST port", 90,
                 [self.log("worker.log")])

    def revive_worker(self):
        """Start the worker again where a broken scenario left it dead."""
        if not self.worker.is_running():
            self.start_worker()
            self.wait_for_worker()

    def close(self):
        if self.worker:
            self.worker.kill()
        if self.feeder:
            self.feeder.kill()
            self.feeder.popen.stdin.close()
            self.feeder.popen.stdout.close()
        if self.broker:
            self.broker.kill()
        shutil.rmtree(self.log("kafka-data"), ignore_errors=True)

    # topics and records

    def feed(self, *words):
        self.feeder.popen.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.feeder.popen.stdin.flush()
        answer = self.feeder.popen.stdout.readline().decode().strip()
        if answer != "ok":
            raise RuntimeError("%s: %s" % (words[0], answer or "the feeder ended"))

    def try_feed(self, *words):
        try:
            self.feed(*words)
            return True
        except RuntimeError:
            if not self.feeder.is_running():
                raise
            return False

    # connectors

    def _ask(self, method, path, document=None):
        body = None if document is None else json.dumps(document).encode()
        try:
            status, _, answer = sinkonce.request(self.rest_port, method, path, body,
                                                 {"Content-Type": "application/json"})
        except (OSError, http.client.HTTPException):
            return 0, None
        try:
            return status, json.loads(answer)
        except ValueError:
            return status, None

    def create_connector(self, name, config):
        wait_for(lambda: self._ask("PUT", "/connectors/%s/config" % name, config)[0] in (200, 201),
                 "connector %s to be taken" % name, 60, [self.log("worker.log")])

    def delete_connector(self, name):
        wait_for(lambda: self._ask("DELETE", "/connectors/" + name)[0] in (204, 404),
                 "connector %s to be deleted" % name, 60, [self.log("worker.log")])

    def has_tasks(self, name):
        """Whether the worker still runs tasks of a connector (a deleted one takes a moment to end)."""
        return self._ask("GET", "/connectors/%s/status" % name)[0] == 200

    def committed(self, name):
        """{partition: offset} of what the connector has committed."""
        status, answer = self._ask("GET", "/connectors/%s/offsets" % name)
        if status != 200:
            return {}
        return {entry["partition"]["kafka_partition"]: entry["offset"]["kafka_offset"] for entry in answer["offsets"]}

    def failures(self, name):
        """The traces of failed tasks."""
        status, answer = self._ask("GET", "/connectors/%s/status" % name)
        if status != 200:
            return []
        return [task["trace"] for task in answer["tasks"] if task["state"] == "FAILED"]
