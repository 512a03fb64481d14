"""What the tests of rules, dashboard and runbook share: the files, read, and a sinkonce with something of everything.

The rules are read by regular expressions on purpose: a library for YAML is no part of what a machine must have; the form of
the file is promtool's to judge.
"""

import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TOP, "tests", "support"), os.path.join(TOP, "tests", "scenario")]

import sinkonce  # noqa: E402
from sinkonce import record  # noqa: E402

FOLDER = os.path.join(TOP, "conf", "prometheus")
RULES = os.path.join(FOLDER, "sinkonce.rules.yml")
RULES_TEST = os.path.join(FOLDER, "sinkonce.rules.test.yml")
RUNBOOK = os.path.join(FOLDER, "README.md")
DASHBOARD = os.path.join(TOP, "conf", "grafana", "sinkonce.json")
METRIC = re.compile(r"\b(?:sinkonce|process)_[a-z_]+\b")
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def text_of(path):
    with open(path) as file:
        return file.read()


def alerts():
    """{alert: its part of the file}"""
    parts = re.split(r"^ +- alert: (\w+)\n", text_of(RULES), flags=re.M)[1:]
    return {name: re.split(r"^  - name:", part, flags=re.M)[0] for name, part in zip(parts[::2], parts[1::2])}


def runbook():
    """{heading of an alert: its section}"""
    parts = re.split(r"^### (\w+)\n", text_of(RUNBOOK), flags=re.M)[1:]
    return dict(zip(parts[::2], (re.split(r"^## ", part, flags=re.M)[0] for part in parts[1::2])))


def dashboard():
    return json.loads(text_of(DASHBOARD))


def panels():
    """Those that show something."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions():
    """(title of the panel, expression as Prometheus gets it)"""
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"]
            for variable, value in (("$__rate_interval", "1m"), ("$job", ".*"), ("$instance", ".*")):
                expression = expression.replace(variable, value)
            yield panel["title"], expression


def metric_names(proxy):
    return {name.split("{")[0] for name in proxy.metrics()}


class World:
    """A counting target and a sinkonce in front of it, to which everything that is counted has happened."""

    def __init__(self, **settings):
        pair = sinkonce.papers.server  # not asked for by a target without TLS, but its end is told
        env = {"SINKONCE_WAIT": "0", "SINKONCE_IDENTITY": "body", "SINKONCE_LOG_FORMAT": "json",
               "SINKONCE_TARGET_CERT_FILE": pair.certificate, "SINKONCE_TARGET_KEY_FILE": pair.key, **settings}
        self.target = sinkonce.Target().start()
        self.proxy = sinkonce.Sinkonce(self.target.url, env=env).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proxy.close()
        self.target.close()

    def send(self, topic, offset, partition=0, **fields):
        return self.proxy.post("/in", record(topic, partition, offset, **fields))[0]

    def doubt(self, topic, offset, partition=0):
        """Let a record become in doubt; its id."""
        self.target.set(cut="answer", end="rst", next=1)
        assert self.send(topic, offset, partition) == 503
        self.target.clear()
        return next(row["id"] for row in self.proxy.in_doubt(topic) if row["first"] <= offset <= row["last"])

    def conflict(self, topic):
        """Let a topic look as if it had been created anew; the id of the conflict."""
        self.send(topic, 0)
        assert self.send(topic, 0, other=True) == 503
        return next(row["id"] for row in self.proxy.conflicts() if row["topic"] == topic)

    def everything(self, round_number):
        """One record for each way to end."""
        offset = 10 * round_number
        self.send("orders", offset)
        self.send("orders", offset)
        self.proxy.post("/in", b"[%s,%s]" % (record("orders", 0, offset), record("orders", 0, offset + 1)))
        self.target.set(status=400, next=1)
        self.send("orders", offset + 2)
        self.doubt("parcels", offset)
        self.send("parcels", offset)
        self.proxy.post("/in", b"no coordinates")
        self.conflict("topic%d" % round_number)
        self.target.refuse()
        self.target.drop()
        self.send("orders", offset + 3)
        self.target.listen()
        self.send("orders", offset + 3)
