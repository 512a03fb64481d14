"""Measures batches: arrays of 500 records of 500 bytes through sinkonce and through nginx; started by run.sh.

As bench.py: one target, one load generator, one machine, rounds around all candidates, the median of the rounds.  nginx
keeps these bodies in memory as sinkonce does, so that no temporary file slows it down.
"""

import http.client
import os
import statistics
import threading
import time

import bench
from bench import sinkonce

CONNECTIONS = 64
RECORDS = 500
DISTINCT = 100  # batches of each partition in the load of duplicates
LARGE = 33000  # records in the largest batch: just below 16 MiB


def records(candidate):
    return candidate.rate() * RECORDS


def print_table(candidates):
    base = candidates[0]
    names = ("", "records/s", "MB/s", "ratio", "CPU us/rec", "p50 ms", "p99 ms", "peak MiB")
    print("\n%-22s %10s %10s %7s %12s %8s %8s %9s" % names)
    for one in candidates:
        print("%-22s %10.0f %10.1f %7.2f %12.2f %8.2f %8.2f %9.1f" % (
            one.name, records(one), records(one) * 500 / 1e6, one.rate() / base.rate(), one.cpu() / RECORDS,
            one.median(lambda run: run["p50"] / 1000), one.median(lambda run: run["p99"] / 1000),
            bench.peak_bytes(one.pids()) / bench.MIB))
    print("CPU us/rec: microseconds of the proxy's processes per record.")


def large(number):
    """The body of one batch of 16 MiB."""
    pad = "x" * 400
    return b"[" + b",".join(sinkonce.record("large-%d" % number, 0, offset, pad=pad) for offset in range(LARGE)) + b"]"


class Watch:
    """Asks again and again what one loop answers by itself, and keeps the longest wait."""

    def __init__(self, port):
        self.longest, self.is_over = 0, False
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            begin = time.monotonic()
            self.connection.request("OPTIONS", "*", headers={"Max-Forwards": "0"})
            self.connection.getresponse().read()
            self.longest = max(self.longest, time.monotonic() - begin)

    def stop(self):
        self.is_over = True
        self.thread.join()
        return self.longest * 1000


def large_batch(folder, target, rounds):
    """(peak bytes over those of the fresh process, bytes of the body, longest wait on the same loop in ms by the median of
    the rounds: one batch that is new, and again as a duplicate)"""
    one = bench.start_sinkonce("large", folder, target, SINKONCE_WORKERS="1")
    body, before = large(0), bench.peak_bytes(one.pids())
    one.proxy.post("/ingest", body)
    peak = bench.peak_bytes(one.pids()) - before
    waits = []
    for number in range(1, rounds + 1):
        again = large(number)
        watch = Watch(one.proxy.port)
        for _ in range(2):
            one.proxy.post("/ingest", again)
        waits.append(watch.stop())
    one.proxy.close()
    return peak, len(body), statistics.median(waits)


def run(folder, memory, options):
    print("\nbatches: arrays of %d records of 500 bytes; %d connections; %d rounds of %d s" % (
        RECORDS, CONNECTIONS, options.rounds, options.seconds))
    print("disk: %.2f ms for a page and its fdatasync; load of the machine before: %.1f" % (
        bench.sync_ms(folder), os.getloadavg()[0]))
    target = bench.Target(folder)
    candidates = [bench.start_nginx(folder, target), bench.start_sinkonce("sinkonce, new", folder, target),
                  bench.start_sinkonce("sinkonce, duplicates", folder, target, distinct=DISTINCT)]
    if memory:
        candidates.append(bench.start_sinkonce("(new, ledger in RAM)", memory, target))
    for one in candidates:
        one.script, one.connections = "batch.lua", CONNECTIONS
    bench.measure(candidates, options.rounds, options.seconds)
    print_table(candidates)
    nginx, new, duplicates = candidates[:3]
    for one in candidates:
        one.process.end()
    peak, size, longest = large_batch(folder, target, options.rounds)
    print("\nbars")
    bench.bar("batches, new records/s: at least 150,000", records(new), "%.0f", records(new) >= 150000)
    bench.bar("batches, new records to nginx: at least 0.5", new.rate() / nginx.rate(), "%.2f", new.rate() >= 0.5 * nginx.rate())
    bench.bar("batches, duplicates, records/s: at least 400,000", records(duplicates), "%.0f", records(duplicates) >= 400000)
    words = "a batch of %.1f MiB, peak memory to its body: at most 3" % (size / bench.MIB)
    bench.bar(words, peak / size, "%.2f", peak <= 3 * size)
    bench.bar("longest wait of others on its loop: at most 50 ms", longest, "%.0f ms", longest <= 50)


if __name__ == "__main__":
    bench.main(run)
