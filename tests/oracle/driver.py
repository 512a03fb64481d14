"""Connect workers, as sinkonce sees them: tasks that own partitions, send at least once, cut their batches anew at every
attempt, start again from older offsets, leave before the answer, and sometimes go on after they have been replaced.
"""

import http.client
import random
import threading
import time

import batches
from batches import Answer, packed
from plan import BUILD
from sinkonce import key

NO_ANSWER = (OSError, EOFError, http.client.HTTPException)


class Group:
    """The consumer group of one topic: who owns which partition, and from where a new owner goes on."""

    def __init__(self, world, topic):
        self.world, self.topic = world, topic
        self.lock = threading.Lock()
        self.streams = [[one for one in topic.records if one[1] == partition] for partition in range(topic.partitions)]
        self.committed = [0] * topic.partitions
        self.tasks, self.generation = [], 0

    def assign(self, chance):
        """A rebalance.  The old tasks end first, unless they are zombies and do not know it."""
        old, self.generation = self.tasks, self.generation + 1
        for task in old:
            task.retire(0 if self.topic.is_steady else chance.choice((0, 0.2, 0.6)))
        if self.topic.is_steady:
            for task in old:
                task.thread.join(30)
        owned = list(range(self.topic.partitions))
        chance.shuffle(owned)
        cut = chance.randrange(1, len(owned) + 1)
        self.tasks = [Task(self, part, chance.randrange(1 << 30)) for part in (owned[:cut], owned[cut:]) if part]

    def rewind(self, chance):
        """An operator sets the offsets back."""
        with self.lock:
            partition = chance.randrange(len(self.committed))
            self.committed[partition] = max(0, self.committed[partition] - chance.randrange(1, 60))
        self.assign(chance)

    def commit(self, partition, position):
        with self.lock:
            self.committed[partition] = max(self.committed[partition], position)

    def is_done(self):
        return all(not task.thread.is_alive() for task in self.tasks)


class Task:
    def __init__(self, group, partitions, seed):
        self.group, self.world, self.partitions = group, group.world, partitions
        self.chance = random.Random(seed)
        with group.lock:
            self.position = {partition: group.committed[partition] for partition in partitions}
        self.ends_at = None
        self.connection = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def retire(self, seconds):
        self.ends_at = time.monotonic() + seconds

    def is_over(self):
        return self.world.is_over or (self.ends_at is not None and time.monotonic() >= self.ends_at)

    def run(self):
        try:
            while not self.is_over() and self.step():
                pass
        except Exception as error:  # shown by the run, in its own thread
            self.world.fail(error)
        finally:
            self.hang_up()

    def poll(self, size):
        """The next records of the partitions, mixed, each partition in order."""
        at, taken = dict(self.position), []
        while len(taken) < size:
            ready = [p for p in self.partitions if at[p] < len(self.group.streams[p])]
            if not ready:
                break
            partition = self.chance.choice(ready)
            run = self.group.streams[partition][at[partition]:at[partition] + self.chance.choice((1, 3, 9))][:size - len(taken)]
            taken += run
            at[partition] += len(run)
        return taken, at

    def step(self):
        """One batch, once; False: nothing is left."""
        with self.world.gate.sending() as of_life:
            shapes = self.group.topic.shapes(of_life)
            if not shapes:  # this life takes none of ours
                time.sleep(0.05)
                return True
            shape = self.chance.choice(shapes)
            batch, at = self.poll(1 if shape in ("single", "headers") else self.chance.choice(self.world.plan.sizes))
            if not batch and self.world.plan.is_endless:
                self.position = dict.fromkeys(self.partitions, 0)
                return True
            if not batch:
                return False
            is_done = self.deliver(shape, batch)
        if is_done:
            self.advance(at)
        time.sleep(self.world.plan.pause + (0 if is_done else self.chance.choice((0.005, 0.02))))
        return True

    def advance(self, at):
        """Go on from there; now and then, start again from an older offset."""
        for partition in at:
            if self.chance.random() < 0.05:
                at[partition] = max(0, at[partition] - self.chance.randrange(20))
        self.position = at
        if self.chance.random() < 0.7:
            for partition, position in at.items():
                self.group.commit(partition, position)

    def deliver(self, shape, batch):
        """True: the connector goes on."""
        build, path = BUILD[shape]
        elements = [self.group.topic.element(one) for one in batch]
        if self.chance.random() < 0.1 and len(elements) > 1:  # a buffer that holds one twice
            elements.append(self.chance.choice(elements))
        body, headers = build(elements), self.headers(shape, batch)
        coding = self.chance.choice((None, None, None, "gzip", "deflate", "zstd"))
        if coding and shape != "headers":
            body, headers["Content-Encoding"] = packed(body, coding), coding
        return self.exchange(shape, path, body, headers, batch)

    @staticmethod
    def headers(shape, batch):
        if shape != "headers":
            return {"Content-Type": "application/json"}
        topic, partition, offset = batch[0]
        return {"Content-Type": "application/octet-stream", "X-Kafka-Topic": topic, "X-Kafka-Partition": str(partition),
                "X-Kafka-Offset": str(offset)}

    def exchange(self, shape, path, body, headers, batch):
        history, keys = self.world.history, [key(*one) for one in batch]
        number, began = history.number(), time.monotonic()
        history.write("send", id=number, keys=keys)
        try:
            answer = self.post(path, body, headers)
        except NO_ANSWER:
            self.hang_up()
            history.write("answer", id=number, r="info", acked=[])
            return False
        acked = acknowledged(shape, batch, answer)
        is_done = len(acked) == len(keys)
        history.write("answer", id=number, r="ok" if is_done else "fail", acked=acked, status=answer.status,
                      outcome=answer.outcome, ms=int((time.monotonic() - began) * 1000))
        if answer.outcome == "in-doubt" and self.chance.random() < 0.3:
            history.write("skip", keys=keys)  # a dead letter queue
            return True
        return is_done

    def post(self, path, body, headers):
        if self.connection is None or self.connection.sock is None or self.chance.random() < 0.3:
            self.hang_up()
            self.connection = http.client.HTTPConnection("127.0.0.1", self.world.proxy.port, timeout=3)
            self.connection.connect()
            self.world.connections[self] = self.connection
        self.connection.sock.settimeout(self.chance.choice((0.1, 1, 3, 3, 3, 3)))
        self.connection.request("POST", path, body, headers)
        answer = self.connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def hang_up(self):
        if self.connection is not None:
            self.world.connections.pop(self, None)
            self.connection.close()
            self.connection = None


def acknowledged(shape, batch, answer):
    """The keys that a connector calls done after this answer."""
    if answer.status // 100 != 2:
        return []
    if shape != "bulk":
        return [key(*one) for one in batch]
    statuses = {}
    for _, identity, status in batches.items_of(answer):
        statuses[identity] = max(status, statuses.get(identity, 0))
    return [key(*one) for one in batch if statuses["%s+%d+%d" % one] // 100 == 2]
