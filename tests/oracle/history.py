"""One line for each event of a run, in one order for all who take part: what the checks read, and nothing else.

    {"e": "reply", "t": 1234, "id": 7, "r": "info", ...}      r: ok, fail (definitely not) or info (nobody can know)

Whoever is about to have an effect writes before it, so that the order of the lines is an order of causes.
"""

import json
import threading
import time


class History:
    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.out = open(path, "w")
        self.began = time.monotonic()
        self.numbers = 0

    def write(self, event, **fields):
        line = json.dumps({"e": event, "t": int((time.monotonic() - self.began) * 1000), **fields}, separators=(",", ":"))
        with self.lock:
            self.out.write(line + "\n")

    def number(self):
        """A number for what has a beginning and an end."""
        with self.lock:
            self.numbers += 1
            return self.numbers

    def close(self):
        with self.lock:
            self.out.close()


def read(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]
