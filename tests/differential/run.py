#!/usr/bin/env python3
"""The same bytes to our codec, nginx, HAProxy and Node: who accepts which requests?

  run.py [--seeds N] [--first SEED]     the table and N connections made by seeds (SINKONCE_SEEDS, SINKONCE_SEED)
  run.py --counts ...                   also how often each kind was met
  run.py --show NAME                    one connection, as seed.7 or H-03.1: its bytes, and what each reader makes of it
  run.py --control ...                  SINKONCE_BIN is broken on purpose: differences without a kind must be found
  run.py --write                        the table of kinds into README.md

Each difference has a kind (kinds.py).  One without an explanation ends the run with 1.  SINKONCE_BIN names the program.
"""

import argparse
import asyncio
import base64
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))

import cases  # noqa: E402
import kinds  # noqa: E402
import sinkonce  # noqa: E402

EXIT_SKIPPED = 77
PATIENCE = 20  # seconds: a reader that is silent for so long has no verdict
AT_ONCE = 48  # connections
# Seconds of silence after which the client ends its half: whoever waits for more bytes then learns that none come.
# Earlier would be wrong: HAProxy then leaves a second request of the connection unread.
SILENCE, LONG_SILENCE = 0.5, 3
STATUS = re.compile(rb"HTTP/1\.[01] (\d\d\d)")
SEEN = re.compile(rb"\r\nx-seen: ([A-Za-z0-9+/=]+)\r\n", re.I)

# accepted: (method, target, bytes of the body, their sum) up to the first refusal.  end: the status of that, or a word.
Verdict = collections.namedtuple("Verdict", "accepted end")


class Readers:
    """Four readers, of which three have the recorder behind them."""

    def __init__(self, folder):
        self.folder = folder
        self.recorder = self.listening([sys.executable, "-B", os.path.join(HERE, "recorder.py")])
        self.ports = {"sinkonce": self.sinkonce(), "nginx": self.nginx(), "haproxy": self.haproxy(),
                      "node": self.listening(["node", os.path.join(HERE, "reader.mjs")])}

    def listening(self, command):
        """The port that a program says first."""
        process = sinkonce.Process(command, os.path.join(self.folder, "reader.log"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        return int(process.popen.stdout.readline())

    def sinkonce(self):
        proxy = sinkonce.Sinkonce("http://127.0.0.1:%d" % self.recorder, folder=os.path.join(self.folder, "sinkonce"),
                                  env={"SINKONCE_VIA": "off"})
        proxy.start()
        return proxy.port

    def opened(self, command, port):
        sinkonce.Process(command, os.path.join(self.folder, os.path.basename(command[0]) + ".log"))
        sinkonce.wait_for(lambda: is_open(port), command[0])
        return port

    def nginx(self):
        port = sinkonce.free_port()
        path = sinkonce.configured(os.path.join(HERE, "nginx.conf"), self.folder, folder=self.folder, port=port, recorder=self.recorder)
        return self.opened(["nginx", "-p", self.folder, "-c", path, "-e", self.folder + "/nginx.error"], port)

    def haproxy(self):
        port = sinkonce.free_port()
        path = sinkonce.configured(os.path.join(HERE, "haproxy.cfg"), self.folder, port=port, recorder=self.recorder)
        return self.opened(["haproxy", "-db", "-f", path], port)


def is_open(port):
    try:
        return sinkonce.request(port, "GET", "/", timeout=5)[0] > 0
    except OSError:
        return False


def verdict_of(answer, is_ended):
    """Bodies of answers are empty or a reader's own error page, so that a status line is one."""
    starts = [(found.start(), int(found.group(1))) for found in STATUS.finditer(answer)]
    accepted, end = [], "closed" if is_ended else "silent"
    for (at, status), (following, _) in zip(starts, starts[1:] + [(len(answer), 0)]):
        found = SEEN.search(answer[at:following])
        if 100 <= status < 200:
            continue
        if found is None:
            end = status
            break
        words = json.loads(base64.b64decode(found.group(1)))
        accepted.append((words["method"], words["target"], words["bytes"], words["sum"]))
    return Verdict(tuple(accepted), end)


async def answer_of(reader, writer, silence):
    """All that comes back, and whether the connection has ended."""
    answer, is_half_closed = b"", False
    while True:
        try:
            async with asyncio.timeout(PATIENCE if is_half_closed else silence):
                part = await reader.read(65536)
        except TimeoutError:
            if is_half_closed:
                return answer, False
            writer.write_eof()
            is_half_closed = True
            continue
        except ConnectionError:
            return answer, True  # closed with bytes unread: what it said before may be lost
        if not part:
            return answer, True
        answer += part


async def one_verdict(port, raw, silence=SILENCE):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw + cases.AFTER)
        return verdict_of(*await answer_of(reader, writer, silence))
    finally:
        writer.transport.abort()


async def verdicts_of(ports, connections):
    """{name: {reader: Verdict}}.  Where somebody differs, all are asked once more and with more patience: a busy machine
    is not a difference."""
    gate, all_verdicts = asyncio.Semaphore(AT_ONCE), {name: {} for name, _ in connections}

    async def ask(name, raw, reader, silence):
        async with gate:
            all_verdicts[name][reader] = await one_verdict(ports[reader], raw, silence)

    async def ask_all(some, silence):
        await asyncio.gather(*(ask(name, raw, reader, silence) for name, raw in some for reader in ports))

    await ask_all(connections, SILENCE)
    await ask_all([(name, raw) for name, raw, _, kind in differences(connections, all_verdicts) if kind is None],
                  LONG_SILENCE)
    return all_verdicts


def differences(connections, all_verdicts):
    """(name, raw, reader, Kind or None) for each reader that accepts something else than we do."""
    for name, raw in connections:
        ours = all_verdicts[name]["sinkonce"]
        for reader, theirs in all_verdicts[name].items():
            if reader != "sinkonce" and theirs.accepted != ours.accepted:
                yield name, raw, reader, kinds.kind_of(raw, reader, ours, theirs)


def words_of(verdict):
    return ", ".join("%s %s %d" % one[:3] for one in verdict.accepted) + " | %s" % verdict.end


def show(name, raw, verdicts):
    print("%s: %r" % (name, raw))
    for reader, verdict in verdicts.items():
        print("    %-9s %s" % (reader, words_of(verdict)))


def report(connections, all_verdicts, options):
    counts, unexplained = collections.Counter(), 0
    for name, raw, reader, kind in differences(connections, all_verdicts):
        if kind is None:
            unexplained += 1
            print("unexplained: we and %s" % reader)
            show(name, raw, all_verdicts[name])
        else:
            counts[kind.name, reader] += 1
    if options.counts:
        for (kind, reader), count in sorted(counts.items()):
            print("%6d  %-26s %s" % (count, kind, reader))
    silent = sum(verdict.end == "silent" for each in all_verdicts.values() for verdict in each.values())
    print("%d connections to four readers, %d differences of %d kinds, %d unexplained, %d without a verdict" % (
        len(connections), sum(counts.values()), len({name for name, _ in counts}), unexplained, silent))
    return (unexplained == 0) == options.control or silent > 0


README = os.path.join(HERE, "README.md")
TABLE = re.compile(r"(?<=<!-- kinds -->\n).*?(?=<!-- end of kinds -->)", re.S)


def is_readme_right(is_written):
    with open(README) as source:
        text = source.read()
    wanted_text = TABLE.sub(lambda _: kinds.table(), text)
    if is_written:
        with open(README, "w") as out:
            out.write(wanted_text)
    return is_written or text == wanted_text


def wanted(options):
    if options.show:
        by_hand = dict(cases.by_hand())
        name = options.show
        return [(name, by_hand[name]) if name in by_hand else cases.by_seed(int(name.removeprefix("seed.")))]
    print("seeds %d to %d" % (options.first, options.first + options.seeds - 1), flush=True)
    return cases.by_hand() + [cases.by_seed(seed) for seed in range(options.first, options.first + options.seeds)]


def run(options):
    connections = wanted(options)
    folder = tempfile.mkdtemp(prefix="sinkonce-differential-")
    try:
        all_verdicts = asyncio.run(verdicts_of(Readers(folder).ports, connections))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.show:
        show(*connections[0], all_verdicts[connections[0][0]])
        return 0
    return 1 if report(connections, all_verdicts, options) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=int(os.environ.get("SINKONCE_SEEDS", "1000")))
    parser.add_argument("--first", type=int, default=int(os.environ.get("SINKONCE_SEED", "1")))
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show")
    options = parser.parse_args()
    if not is_readme_right(options.write):
        print("README.md has another table of kinds than kinds.py: run.py --write")
        return 1
    if options.write:
        return 0
    missing = [name for name in ("nginx", "haproxy", "node") if shutil.which(name) is None]
    if missing:
        print("SKIP: no %s here" % ", no ".join(missing))
        return EXIT_SKIPPED
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
