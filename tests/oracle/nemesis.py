"""What happens to a run: one thing after the other, chosen by the seed, until the time is over."""

import errno
import os
import signal
import socket
import time

from driver import NO_ANSWER
from sinkonce import key, wait_for


class Nemesis:
    def __init__(self, world):
        self.world, self.plan, self.chance = world, world.plan, world.plan.chance
        self.ends_at = time.monotonic() + self.plan.seconds

    def run(self):
        while time.monotonic() < self.ends_at and not self.world.is_over:
            self.wait(self.chance.choice((0.02, 0.05, 0.1, 0.2)))
            self.look_after()
            if self.chance.random() < 0.3:
                self.resolve_some()
            else:
                getattr(self, self.chance.choice(self.plan.nemeses))()

    def wait(self, seconds):
        time.sleep(min(seconds, max(0, self.ends_at - time.monotonic())))

    def look_after(self):
        """The program ends by our hand only."""
        if not self.world.proxy.process.is_running():
            code = self.world.proxy.process.popen.returncode
            self.world.history.write("wrong", kind="it ended by itself", what=str(code))
            raise RuntimeError("sinkonce ended with %s" % code)

    def trouble(self, what):
        return Trouble(self.world.history, what)

    def ask(self, method, path, document):
        """A change at the admin port; None: nobody knows whether it was made."""
        try:
            return self.world.proxy.admin(method, path, document)
        except NO_ANSWER:
            return None

    # processes

    def kill(self):
        self.world.die()
        self.world.live(is_same=self.chance.random() < 0.6)

    def term(self):
        self.world.die("term")
        self.world.live(is_same=self.chance.random() < 0.6)

    def stop(self):
        process = self.world.proxy.process
        with self.trouble("stop"):
            process.signal(signal.SIGSTOP)
            try:
                self.wait(self.chance.choice((0.05, 0.2, 0.5, 1)))
            finally:
                process.signal(signal.SIGCONT)

    def drain(self):
        self.ask("POST", "/drain", {"reason": "a test"})
        self.wait(self.chance.choice((0.02, 0.1)))
        self.ask("DELETE", "/drain", {})

    # connections

    def cut(self):
        for connection in list(self.world.connections.values()):
            if connection.sock is not None and self.chance.random() < 0.5:
                try:
                    connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def idle(self):
        with self.trouble("idle"):
            self.world.target.close_idle()

    def refuse(self):
        with self.trouble("refuse"):
            self.world.target.refuse()
            self.wait(self.chance.choice((0.02, 0.15)))
            self.world.target.listen_again()

    # disk and clock

    def slow_disk(self):
        self.world.disk.order(self.chance.choice((5, 30, 100)), 0)
        self.wait(self.chance.choice((0.1, 0.4)))
        self.world.disk.order(0, 0)

    def bad_disk(self, error=errno.EIO):
        with self.trouble("disk"):
            self.world.disk.order(0, error)
            self.wait(self.chance.choice((0.03, 0.2)))
            self.world.disk.order(0, 0)
            if self.chance.random() < 0.5:
                self.kill()
            else:
                wait_for(self.is_ready, "the ledger to be mended", 30, [self.world.proxy.log])

    def is_ready(self):
        return self.world.proxy.admin("GET", "/readyz")[0] == 200

    def full_disk(self):
        self.bad_disk(errno.ENOSPC)

    def clock(self):
        if hasattr(self.world, "clock") and os.path.exists(self.world.clock):
            self.world.jump(self.chance.choice(("+3650d", "-3650d", "+0d", "+1h")))

    # the operator

    def resolve_some(self):
        if self.plan.policy != "hold":
            return
        try:
            doubts = self.world.proxy.doubt_keys()
        except (*NO_ANSWER, RuntimeError):
            return
        for doubt in self.chance.sample(doubts, min(len(doubts), 5)):
            self.world.resolve(doubt)

    def mode(self):
        history = self.world.history
        history.write("loose")
        self.ask("PUT", "/mode", {"mode": self.chance.choice(("observe", "off"))})
        self.wait(0.1)
        while self.ask("PUT", "/mode", {"mode": "enforce"}) is None:
            self.look_after()
        history.write("strict")

    def some_range(self):
        """A part of a partition's records: (topic, partition, first, last, keys)."""
        topic = self.chance.choice(self.plan.topics)
        partition = self.chance.randrange(topic.partitions)
        found = [one for one in topic.records if one[1] == partition]
        if not found:
            return None
        at = self.chance.randrange(len(found))
        part = found[at:at + self.chance.choice((1, 5, 20))]
        return topic.name, partition, part[0][2], part[-1][2], [key(*one) for one in part]

    def forget(self):
        chosen = self.some_range()
        if chosen is None:
            return
        topic, partition, first, last, keys = chosen
        document = {"topic": topic, "partition": partition, "from": first, "to": last, "reason": "a test"}
        said = self.ask("POST", "/forget", {**document, "expect_count": 0})
        if said is not None and said[0] == 409:
            self.world.history.write("forget", keys=keys)
            self.ask("POST", "/forget", {**document, "expect_count": said[1]["count"]})

    def replay(self):
        chosen = self.some_range()
        if chosen is None:
            return
        topic, partition, first, last, keys = chosen
        self.world.history.write("replay", keys=keys)
        self.ask("POST", "/replays", {"topic": topic, "partition": partition, "from": first, "to": last, "for": "10m",
                                      "reason": "a test"})

    # the connectors

    def rebalance(self):
        self.chance.choice(self.world.groups).assign(self.chance)

    def rewind(self):
        self.chance.choice(self.world.groups).rewind(self.chance)


class Trouble:
    """A time in which what is sent may be left open."""

    def __init__(self, history, what):
        self.history, self.what = history, what

    def __enter__(self):
        self.history.write("trouble", what=self.what)

    def __exit__(self, *_):
        self.history.write("over")
