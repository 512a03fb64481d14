"""What a new record costs, in figures that repeat on a busy machine: instructions, system calls, page faults, switches.

    SINKONCE_BIN=BIN TARGET_BIN=TARGET python3 -B tests/bench/cost.py [--seconds N] [SETTING=VALUE ...]

Three runs of the load of bench.py, one under callgrind, one under strace, one alone.  How many records share a commit
differs between them, so that what the ledger's thread does per record is only comparable where that is alike.
"""

import argparse
import collections
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile

import bench
from bench import sinkonce

CALLGRIND = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes", "--callgrind-out-file=%s"]
UNDER_VALGRIND = {"SINKONCE_WORKERS": "1", "SINKONCE_WAIT": "60s", "SINKONCE_TARGET_TIMEOUT": "60s"}


class Run:
    """A process with a load on it, and what its metrics say of the time between."""

    def __init__(self, folder, target, options, wrapper=(), **settings):
        self.proxy = sinkonce.Sinkonce("http://127.0.0.1:%d" % target.port, folder=folder, wrapper=list(wrapper),
                                       env={"SINKONCE_LEDGER_MAX": "1GiB", **settings, **options.settings})
        self.proxy.start(seconds=90)
        self.candidate = bench.Candidate("sinkonce", self.proxy.port, self.proxy.process, proxy=self.proxy)
        self.seconds = options.seconds
        self.pid = self.proxy.process.pid
        self.candidate.run("warm-up", 1)

    def load(self):
        before = self.proxy.metrics()
        self.candidate.run("new", self.seconds)
        after = self.proxy.metrics()
        self.requests, commits = (after[name] - before[name] for name in (
            "sinkonce_target_attempts_total", "sinkonce_ledger_commits_total"))
        self.company = 2 * self.requests / commits  # claims and results

    def tell(self, name):
        print("%s: %d requests, %.1f claims and results a commit" % (name, self.requests, self.company))


def instructions(folder, target, options):
    out = os.path.join(folder, "callgrind")
    run = Run(os.path.join(folder, "a"), target, options, [word.replace("%s", out) for word in CALLGRIND], **UNDER_VALGRIND)
    subprocess.run(["callgrind_control", "--instr=on", str(run.pid)], check=True, capture_output=True)
    run.load()
    subprocess.run(["callgrind_control", "--instr=off", str(run.pid)], check=True, capture_output=True)
    run.proxy.process.stop(60)
    counts = {}
    for path in glob.glob(out + "-*"):
        with open(path) as lines:
            counts[int(path.rpartition("-")[2])] = sum(int(line.split()[1]) for line in lines if line.startswith("totals:"))
    run.tell("callgrind, one loop")
    for thread, count in sorted(counts.items()):
        if count > 0:
            print("  thread %d %12.0f instructions a request" % (thread, count / run.requests))
    print("  all      %12.0f" % (sum(counts.values()) / run.requests))


def system_calls(folder, target, options):
    run = Run(os.path.join(folder, "b"), target, options)
    path = os.path.join(folder, "calls")
    tracer = subprocess.Popen(["strace", "-c", "-f", "-q", "-o", path, "-p", str(run.pid)], stderr=subprocess.DEVNULL)
    sinkonce.wait_for(lambda: "TracerPid:\t0" not in open("/proc/%d/status" % run.pid).read(), "strace")
    run.load()
    tracer.send_signal(signal.SIGINT)
    tracer.wait(30)
    run.proxy.close()
    counts = collections.Counter()
    with open(path) as lines:
        for line in lines:
            row = re.match(r" *[\d.]+ +[\d.]+ +\d+ +(\d+)(?: +\d+)? +(\w+)$", line)
            if row and row.group(2) != "total":
                counts[row.group(2)] = int(row.group(1)) / run.requests
    run.tell("strace")
    for name, count in counts.most_common():
        if count >= 0.02:
            print("  %-14s %6.2f a request" % (name, count))
    print("  %-14s %6.2f" % ("all", sum(counts.values())))


def kernel_counts(pid):
    """(page faults, switches that were wanted, switches that were not), over all threads"""
    faults = switches = forced = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, thread)) as stat:
            faults += int(stat.read().rpartition(")")[2].split()[7])
        with open("/proc/%d/task/%s/status" % (pid, thread)) as status:
            text = status.read()
        switches += int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", text).group(1))
        forced += int(re.search(r"\nnonvoluntary_ctxt_switches:\s*(\d+)", text).group(1))
    return faults, switches, forced


def alone(folder, target, options):
    run = Run(os.path.join(folder, "c"), target, options)
    before = kernel_counts(run.pid)
    run.load()
    faults, switches, forced = ((now - then) / run.requests for now, then in zip(kernel_counts(run.pid), before))
    run.proxy.close()
    run.tell("alone")
    print("  %.2f page faults, %.2f waits, %.2f times put aside a request" % (faults, switches, forced))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("settings", nargs="*", type=lambda word: tuple(word.split("=", 1)))
    options = parser.parse_args()
    options.settings = dict(options.settings)
    folder = tempfile.mkdtemp(prefix="sinkonce-cost-")
    target = bench.Target(folder)
    try:
        instructions(folder, target, options)
        system_calls(folder, target, options)
        alone(folder, target, options)
    finally:
        target.process.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
