"""One run: the program, its target, the connectors and the nemesis, all from one seed."""

import bisect
import contextlib
import glob
import os
import re
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("support", "scenario"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import batches  # noqa: E402
import harness  # noqa: E402
import sinkonce  # noqa: E402
from disk import Disk  # noqa: E402
from driver import NO_ANSWER, Group, acknowledged  # noqa: E402
from history import History  # noqa: E402
from nemesis import Nemesis  # noqa: E402
from plan import BUILD  # noqa: E402
from sinkonce import key, wait_for  # noqa: E402
from target import Faults, Target  # noqa: E402

RSS_KIB_MAX = 64 << 10
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")


class Gate:
    """Closed while the program changes the shapes that it takes: no batch of the old ones may reach the new life."""

    def __init__(self):
        self.changed = threading.Condition()
        self.shapes, self.senders = None, 0

    @contextlib.contextmanager
    def sending(self):
        with self.changed:
            self.changed.wait_for(lambda: self.shapes is not None, 60)
            self.senders += 1
            shapes = self.shapes or []
        try:
            yield shapes
        finally:
            with self.changed:
                self.senders -= 1
                self.changed.notify_all()

    def close(self):
        with self.changed:
            self.shapes = None
            if not self.changed.wait_for(lambda: self.senders == 0, 30):
                raise TimeoutError("a task does not come back from its request")

    def open(self, shapes):
        with self.changed:
            self.shapes = shapes
            self.changed.notify_all()


class World:
    def __init__(self, plan, folder):
        for name, value in harness.SANITIZERS.items():
            os.environ.setdefault(name, value)
        self.plan, self.folder = plan, folder
        self.history = History(os.path.join(folder, "history"))
        self.faults = Faults(plan.seed, plan.fault_rate, plan.chance.random() < 0.5)
        self.target = Target(self.history, self.faults).start()
        self.gate, self.connections = Gate(), {}
        self.is_over, self.errors, self.lives = False, [], 0
        self.disk = Disk(folder)
        self.proxy = self._proxy()
        self.groups = [Group(self, topic) for topic in self.plan.topics]

    def _proxy(self):
        env = {"SINKONCE_" + name: value for name, value in self.plan.settings.items()}
        if env.get("SINKONCE_PROBE_URL"):
            env["SINKONCE_PROBE_URL"] = self.target.url + env["SINKONCE_PROBE_URL"]
        preload = [os.environ["DISK_FAULT_LIB"]] if os.environ.get("DISK_FAULT_LIB") else []
        if "clock" in self.plan.nemeses and FAKETIME and preload:
            preload.append(FAKETIME[0])
            self.clock = os.path.join(self.folder, "clock")
            self.jump("+0d")
            env.update({"FAKETIME_TIMESTAMP_FILE": self.clock, "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1",
                        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1"})
        if preload and not harness.is_sanitized():
            env.update({"LD_PRELOAD": " ".join(preload), "DISK_FAULT": self.disk.path})
        return sinkonce.Sinkonce(self.target.url, folder=self.folder, env=env)

    def jump(self, offset):
        with open(self.clock + ".new", "w") as file:
            file.write(offset + "\n")
        os.replace(self.clock + ".new", self.clock)

    def fail(self, error):
        self.errors.append(error)
        self.is_over = True

    # lives

    def live(self, changes=None, is_same=False):
        """Start the program: with other shapes, or as it was."""
        self.lives += not is_same
        settings, shapes = self.plan.life(self.lives)
        if not is_same:
            self.gate.close()
        self.disk.order(0, 0)
        self.history.write("born")
        self.proxy.start(seconds=30, **{"SINKONCE_" + name: value for name, value in {**settings, **(changes or {})}.items()})
        self.history.write("start")
        self.gate.open(shapes)

    def die(self, how="kill"):
        """SIGKILL, or SIGTERM and its drain."""
        self.look_at_the_memory()
        self.history.write("kill", how=how)
        code = self.proxy.kill() if how == "kill" else self.proxy.stop()
        self.history.write("killed", code=code)
        wait_for(self.target.has_read_all, "the target to read what the dead have sent", 30)
        if how == "term" and code != 0:
            self.history.write("wrong", kind="ended badly on SIGTERM", what=str(code))

    def look_at_the_memory(self):
        if self.proxy.process.is_running() and not harness.is_sanitized():
            peak = harness.rss_kib(self.proxy.process.pid, "VmHWM")
            if peak > RSS_KIB_MAX:
                self.history.write("wrong", kind="memory has no bound", what="%d KiB" % peak)

    # the run

    def run(self):
        plan = self.plan
        self.history.write("produce", keys=plan.produced())
        self.history.write("policy", name=plan.policy)
        self.history.write("trouble", what="not begun")
        self.live()
        for group in self.groups:
            group.assign(plan.chance)
        self.work()
        self.is_over = True
        for group in self.groups:
            for task in group.tasks:
                task.thread.join(30)
                if task.thread.is_alive():
                    raise TimeoutError("a task hangs")
        if self.errors:
            raise self.errors[0]
        self.calm()
        self.list("list")
        self.settle_all()
        self.list("end")
        self.proxy.stop()
        self.look_at_the_log()

    def work(self):
        Nemesis(self).run()

    def calm(self):
        """Nothing is wrong any more, and nothing in flight."""
        self.faults.is_on = False
        self.disk.order(0, 0)
        self.history.write("trouble", what="calm")
        self.target.drop()
        wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 0, "nothing in flight", 30, [self.proxy.log])
        # A request may have ended while the disk failed: what the ledger owes of it is on its way until the disk has it.
        wait_for(lambda: self.proxy.metric("sinkonce_ledger_failing") == 0, "nothing owed", 30, [self.proxy.log])
        self.history.write("over")
        if self.plan.policy == "probe":
            self.faults.is_clear = True
            with contextlib.suppress(TimeoutError):  # what is asked more and more seldom is left to the person
                wait_for(lambda: not self.proxy.in_doubt(), "the probes", 1)
        self.check_sum()

    def check_sum(self):
        """Every record is counted once as a record and once as what became of it."""
        now = self.proxy.metrics()
        parts = {part: now["sinkonce_%s_records_total" % part] for part in harness.PARTS}
        if now["sinkonce_records_total"] != sum(parts.values()):
            self.history.write("wrong", kind="records_total is not the sum of its parts", what=str(parts))

    def list(self, event):
        """The ledger at rest, as its own list and as its records; read again while probes still change it."""
        while True:
            doubts, states = self.proxy.doubt_keys(), self.states()
            if doubts == self.proxy.doubt_keys():
                break
        self.history.write(event, doubts=doubts, states=states)

    def states(self):
        states = {}
        for topic in self.plan.topics:
            for partition in range(topic.partitions):
                rows = list(self.intervals(topic.name, partition))
                begins = [row["first"] for row in rows]
                for name, _, offset in (one for one in topic.records if one[1] == partition):
                    at = bisect.bisect_right(begins, offset) - 1
                    if at >= 0 and offset <= rows[at]["last"]:
                        states[key(name, partition, offset)] = rows[at]["state"]
        return states

    def intervals(self, topic, partition):
        begin = 0
        while begin is not None:
            status, page = self.proxy.admin("GET", "/partitions/%s/%d/intervals?from=%s&limit=1000" % (topic, partition, begin))
            if status == 404:  # never met
                return
            if status != 200:
                raise RuntimeError("/intervals: %d %s" % (status, page))
            yield from page["intervals"]
            begin = page["next"]

    def settle_all(self):
        """A person compares the list with the target; then every record can be delivered."""
        self.die()
        self.history.write("policy", name="hold")
        self.live({"IN_DOUBT": "hold", "LEDGER_MAX": "64MiB", "SHAPE": "auto", "SPLIT": "off", "SEPARATOR": None,
                   "ENVELOPE": None, "TARGET_TIMEOUT": "60s", "CONNECT_TIMEOUT": "60s", "WAIT": "20s"})  # no time runs out
        for doubt in self.proxy.doubt_keys():  # the target may still be at work with one whose connection has died
            wait_for(lambda: self.resolve(doubt), "the target's word on " + doubt, 30)
        for topic in self.plan.topics:
            shape = "json_array" if topic.family == "json" else topic.family
            size = 1 if shape == "headers" else 50
            for at in range(0, len(topic.records), size):
                self.offer(shape, topic, topic.records[at:at + size])

    def offer(self, shape, topic, batch):
        build, path = BUILD[shape]
        keys, number = [key(*one) for one in batch], self.history.number()
        self.history.write("send", id=number, keys=keys)
        headers = self.groups[0].tasks[0].headers(shape, batch)
        answer = batches.Answer(*self.proxy.send("POST", path, build([topic.element(one) for one in batch]), headers, 60))
        self.history.write("answer", id=number, r="ok" if answer.status == 200 else "fail", status=answer.status,
                           outcome=answer.outcome, acked=acknowledged(shape, batch, answer))

    def resolve(self, doubt):
        """Tell the ledger what the target knows; False: nobody can know yet."""
        count = self.target.truth(doubt)
        if count is None:
            return False
        self.history.write("resolve", key=doubt, applied=count > 0)
        try:
            status, _ = self.proxy.resolve(doubt, count > 0)
            self.history.write("resolved", key=doubt, r="ok" if status == 200 else "fail", status=status)
        except NO_ANSWER:
            self.history.write("resolved", key=doubt, r="info")
        return True

    def look_at_the_log(self):
        with open(self.proxy.log, errors="replace") as log:
            for line in log:
                if harness.TROUBLE.search(line):
                    self.history.write("wrong", kind="the log", what=re.sub(r"\s+", " ", line)[:200])

    def close(self):
        self.is_over = True
        self.proxy.process and self.proxy.process.kill()
        self.target.close()
        self.history.close()
