#!/usr/bin/env python3
"""Whatever the size of a body, its framing, and the pieces in which it comes over how many connections: it arrives once
and whole, and its answer comes to the connection that asked.

One seed drives a run; it is printed first.  BODIES_SEEDS="7 8" gives others.
"""

import os
import random

import harness
from harness import Wire, chunked, key, record, sinkonce

LANES, WRITES = 6, 25


class Lane:
    """One connector on one connection."""

    def __init__(self, test, seed, number):
        self.test, self.number = test, number
        self.chance = random.Random("%d/%d" % (seed, number))
        self.produced = {}

    def size(self):
        return self.chance.choice((0, 1, self.chance.randrange(100), self.chance.randrange(5000), 65536, 65537,
                                   self.chance.randrange(200000), self.chance.randrange(3000000)))

    def request(self, offset):
        body = record("t%d" % self.number, self.number, offset, pad="p" * self.size())
        self.produced[key("t%d" % self.number, self.number, offset)] = sinkonce.journal_hash(body)
        head = b"POST /%d/%d HTTP/1.1\r\nHost: x\r\n" % (self.number, offset)
        if self.chance.random() < 0.5:
            return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        cuts = sorted(self.chance.randrange(len(body) + 1) for _ in range(self.chance.randrange(6)))
        pieces = [body[a:b] for a, b in zip([0] + cuts, cuts + [len(body)]) if a < b]
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(*pieces)

    def run(self):
        offset = 0
        with Wire(self.test.proxy.port) as wire:
            while offset < WRITES:
                count = self.chance.choice((1, 1, 1, 2, 5))  # pipelined
                data = b"".join(self.request(offset + n) for n in range(count))
                sender = self.test.later(self.pour, wire, data)
                for _ in range(count):
                    reply = wire.final()
                    assert reply.status == 200, reply
                    assert reply.body == b"ok\n", reply
                sender.result()
                offset += count
        return self.produced

    def pour(self, wire, data):
        at = 0
        while at < len(data):
            size = self.chance.choice((1, 100, 4096, 65536, 1 << 20, 1 << 24))
            wire.socket.sendall(data[at:at + size])
            at += size


class Test(harness.Scenario):
    def all_arrive(self, seed):
        print("seed %d" % seed, flush=True)
        self.serve()
        produced = {}
        for call in [self.later(Lane(self, seed, n).run) for n in range(LANES)]:
            got = call.result()
            self.assertIsNotNone(got, call.error)
            produced.update(got)
        journal = [line[:2] for line in self.target.lines()]
        self.assertEqual(dict(journal), produced)
        self.assertEqual((len(journal), self.doubts()), (len(produced), []))


def one_seed(seed):
    return lambda self: self.all_arrive(seed)


for seed_ in map(int, os.environ.get("BODIES_SEEDS", "1 2 3").split()):
    setattr(Test, "test_P6_J_03_bodies_of_all_sizes_and_cuts_with_seed_%d" % seed_, one_seed(seed_))


if __name__ == "__main__":
    harness.main()
