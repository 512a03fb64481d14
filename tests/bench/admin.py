"""Measures the admin port; started by run.sh, or alone once run.sh has built:

    SINKONCE_BIN=build/Release/proxy/sinkonce TARGET_BIN=build/Release/tests/support/target \\
        python3 -B tests/bench/admin.py [--rounds N] [metrics] [busy] [resolve]

    metrics  /metrics with the gauges of 10,000 partitions, beside nginx giving a file of as many bytes
    busy     what the admin port answers while the data port is saturated
    resolve  100,000 doubts resolved by one filter

As bench.py: rounds around all candidates, the median of the rounds.
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import tempfile
import threading
import time

import bench
from bench import sinkonce

TOPICS = PARTITIONS = 100
SCRAPES = 20  # a round
DOUBTS = 100000


def body_of(records):
    return b"[" + b",".join(b'{"__topic":"%s","__partition":%d,"__offset":%d}' % (topic.encode(), partition, offset)
                            for topic, partition, offset in records) + b"]"


def deliver(proxy, records, expected):
    status, _, body = proxy.post("/in", body_of(records), timeout=120)
    if status != expected:
        raise RuntimeError("a batch was answered with %d: %s" % (status, body[:200]))


class Scraper:
    """One connection that asks for PATH again and again; it reads into one buffer, so that its own work stays small."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.request = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path.encode()
        self.buffer = memoryview(bytearray(1 << 24))

    def ask(self):
        """(milliseconds to the last byte, bytes of the body)"""
        begin, used, whole = time.perf_counter(), 0, None
        self.socket.sendall(self.request)
        while whole is None or used < whole:
            count = self.socket.recv_into(self.buffer[used:])
            if count == 0:
                raise RuntimeError("the connection ended")
            used += count
            if whole is None:
                head, mark, _ = bytes(self.buffer[:min(used, 4096)]).partition(b"\r\n\r\n")
                if mark:
                    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                    body = int(length.split(b":")[1])
                    whole = len(head) + 4 + body
        return (time.perf_counter() - begin) * 1000, body


class Scraped:
    """A process that is scraped: milliseconds and CPU of each round."""

    def __init__(self, name, pids, port, path="/metrics"):
        self.name, self.pids, self.scraper = name, pids, Scraper(port, path)
        self.took, self.cpu = [], []

    def round(self):
        before = bench.cpu_seconds(self.pids)
        self.took += [self.scraper.ask()[0] for _ in range(SCRAPES)]
        self.cpu.append((bench.cpu_seconds(self.pids) - before) * 1000 / SCRAPES)

    def line(self):
        ordered = sorted(self.took)
        return "%-22s %8.2f %8.2f %8.2f %10.2f" % (self.name, ordered[0], statistics.median(ordered),
                                                   ordered[len(ordered) * 99 // 100], statistics.median(self.cpu))


def start_file_server(folder, content):
    """nginx with CONTENT as /metrics, by write() as sinkonce does it."""
    port = sinkonce.free_port()
    os.chmod(folder, 0o755)  # the workers are nobody's
    with open(os.path.join(folder, "metrics"), "wb") as out:
        out.write(content)
    path = sinkonce.configured(os.path.join(bench.HERE, "static.conf"), folder, folder=folder, port=port)
    process = sinkonce.Process(["nginx", "-p", folder, "-c", path, "-e", folder + "/nginx.error"], folder + "/static.log")
    sinkonce.wait_for(lambda: bench.is_open(port), "nginx", logs=[process.log])
    return process, port


def measure_metrics(folder, rounds):
    target = bench.Target(folder)
    proxy = sinkonce.Sinkonce("http://127.0.0.1:%d" % target.port, folder=os.path.join(folder, "metrics-proxy"),
                              env={"SINKONCE_METRICS_PARTITIONS": "on"})
    proxy.start()
    deliver(proxy, [("orders.region-%02d.created" % topic, partition, 1000000 + topic) for topic in range(TOPICS)
                    for partition in range(PARTITIONS)], 200)
    text = sinkonce.request(proxy.admin_port, "GET", "/metrics")[2]
    peer, port = start_file_server(folder, text)
    ours = Scraped("sinkonce", [proxy.process.pid], proxy.admin_port)
    nginx = Scraped("nginx, a file", bench.children(peer.pid), port)
    if nginx.scraper.ask()[1] != len(text):
        raise RuntimeError("nginx does not give the file")
    for _ in range(rounds):
        for one in (ours, nginx):
            one.round()
    count = text.count(b"\nsinkonce_partition_applied_records{")
    print("\n/metrics with %d partitions: %.1f MB; %d rounds of %d scrapes" % (count, len(text) / 1e6, rounds, SCRAPES))
    print("%-22s %8s %8s %8s %10s" % ("", "least ms", "p50 ms", "p99 ms", "CPU ms"))
    print(ours.line())
    print(nginx.line())
    took, base = statistics.median(ours.took), statistics.median(nginx.took)
    bench.bar("/metrics with 10,000 partitions: at most 10 ms", took, "%.1f ms", took <= 10)
    print("  (%.1f times the time of nginx for a file of as many bytes)" % (took / base))
    peer.end()
    proxy.close()
    target.process.end()


def ask_meanwhile(port, took, is_over):
    """What an orchestrator and a page ask, ten times a second each, on a connection of its own as they do."""
    while not is_over.is_set():
        for path in ("/livez", "/readyz", "/status", "/partitions"):
            begin = time.perf_counter()
            status = sinkonce.request(port, "GET", path)[0]
            took.append((time.perf_counter() - begin) * 1000)
            if status != 200:
                raise RuntimeError("%s: %d" % (path, status))
        is_over.wait(0.05)


def measure_busy(folder, rounds):
    target = bench.Target(folder)
    one = bench.start_sinkonce("busy", folder, target)
    tails, rates = [], []
    for number in range(rounds):
        took, is_over = [], threading.Event()
        asker = threading.Thread(target=ask_meanwhile, args=(one.proxy.admin_port, took, is_over))
        asker.start()
        run = bench.load(one.url, "busy-%d" % number, 0, 3)
        is_over.set()
        asker.join()
        bench.check_run(one, run)
        rates.append(run["requests"] * 1e6 / run["microseconds"])
        tails.append(sorted(took)[len(took) * 99 // 100])
    tail = statistics.median(tails)
    print("\nadmin port beside %.0f requests/s on the data port; p99 of each round: %s ms" % (
        statistics.median(rates), ", ".join("%.1f" % tail for tail in tails)))
    bench.bar("admin port while the data port is saturated, p99: at most 100 ms", tail, "%.1f ms", tail <= 100)
    one.proxy.close()
    target.process.end()


def measure_resolve(folder, rounds):
    target = bench.Target(folder)
    proxy = sinkonce.Sinkonce("http://127.0.0.1:%d" % target.port, folder=os.path.join(folder, "resolve"), env={
        "SINKONCE_IN_DOUBT_MAX": "1000000", "SINKONCE_LEDGER_MAX": "1GiB"})
    proxy.start()
    took = []
    for number in range(rounds):
        target.ask("/set?cut=answer&end=rst&next=1")
        # No neighbours: each record is a doubt of its own.
        deliver(proxy, [("round-%d" % number, i % 10, 2 * i) for i in range(DOUBTS)], 503)
        rows = proxy.in_doubt("round-%d" % number)
        filter = {"topic": "round-%d" % number, "resolution": "applied", "reason": "a bench", "expect_count": DOUBTS}
        begin = time.perf_counter()
        status, answer = proxy.admin("POST", "/in-doubt", filter)
        took.append(time.perf_counter() - begin)
        if (status, len(rows), answer.get("records")) != (200, DOUBTS, DOUBTS):
            raise RuntimeError("%d doubts, %d: %s" % (len(rows), status, json.dumps(answer)))
    seconds = statistics.median(took)
    print("\n%d doubts, each a row of its own, resolved by one filter: %s s" % (DOUBTS, ", ".join("%.2f" % t for t in took)))
    bench.bar("100,000 doubts resolved by filter over the admin port: at most 2 s", seconds, "%.2f s", seconds <= 2)
    proxy.close()
    target.process.end()


def main():
    ways = {"metrics": measure_metrics, "busy": measure_busy, "resolve": measure_resolve}
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, help="for the other benches")
    parser.add_argument("what", nargs="*", help=", ".join(ways))
    options = parser.parse_args()
    print("%d cores; load of the machine before: %.1f" % (os.cpu_count(), os.getloadavg()[0]))
    for name in options.what or ways:
        folder = tempfile.mkdtemp(prefix="sinkonce-bench-")
        try:
            ways[name](folder, options.rounds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
