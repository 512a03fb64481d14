"""Measures sinkonce beside plain reverse proxies; started by run.sh, which builds and sets the paths.

One target, one load generator, one machine, one run.  The rounds go around all candidates, so that whatever else the
machine does hits all alike; each figure is the median of the rounds after one warm-up.  CPU is that of the proxy's own
processes, from /proc; the load generator and the target share the same cores with it.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import sinkonce  # noqa: E402

CONNECTIONS = 64
DISTINCT = 1000  # offsets of each partition in the load of duplicates
TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as listing:
        return [int(child) for child in listing.read().split()]


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as stat:
            fields = stat.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def peak_bytes(pids):
    """The sum of the high-water marks: pages that forked workers share count twice."""
    total = 0
    for pid in pids:
        with open("/proc/%d/status" % pid) as status:
            total += int(re.search(r"VmHWM:\s*(\d+) kB", status.read()).group(1)) * 1024
    return total


def load(url, topic, distinct, seconds, connections=CONNECTIONS, script="load.lua"):
    """One run of wrk: a dictionary of the script's last line."""
    command = ["wrk", "-t2", "-c%d" % connections, "-d%ds" % seconds, "--timeout", "10s", "-s",
               os.path.join(HERE, script), url, "--", topic, str(distinct)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines or not lines[-1].startswith("{"):
        raise RuntimeError("wrk: %s%s" % (done.stdout, done.stderr))
    return json.loads(lines[-1])


class Target:
    def __init__(self, folder):
        self.process = sinkonce.Process([os.environ["TARGET_BIN"], "--port", "0", "--control-port", "0", "--no-journal"],
                                        os.path.join(folder, "target.log"), stdout=subprocess.PIPE)
        ports = dict(word.split("=") for word in self.process.popen.stdout.readline().decode().split())
        self.process.popen.stdout.close()
        self.port, self.control = int(ports["port"]), int(ports["control"])

    def ask(self, path):
        return sinkonce.request(self.control, "GET", path)[2]


class Candidate:
    """A proxy that runs: where it listens, which processes it is, what it is loaded with."""

    def __init__(self, name, port, process, has_workers=False, distinct=0, proxy=None):
        self.name, self.url, self.process = name, "http://127.0.0.1:%d/" % port, process
        self.has_workers, self.distinct, self.proxy = has_workers, distinct, proxy
        self.script, self.connections = "load.lua", CONNECTIONS
        self.runs = []
        sinkonce.wait_for(lambda: is_open(port), name, logs=[process.log])

    def pids(self):
        return [self.process.pid] + (children(self.process.pid) if self.has_workers else [])

    def run(self, topic, seconds):
        before = cpu_seconds(self.pids())
        figures = load(self.url, topic, self.distinct, seconds, self.connections, self.script)
        figures["cpu"] = cpu_seconds(self.pids()) - before
        return figures

    def median(self, of):
        return statistics.median(of(run) for run in self.runs)

    def rate(self):
        return self.median(lambda run: run["requests"] * 1e6 / run["microseconds"])

    def cpu(self):
        return self.median(lambda run: run["cpu"] * 1e6 / run["requests"])


def is_open(port):
    try:
        return sinkonce.request(port, "GET", "/", timeout=2)[0] > 0
    except OSError:
        return False


def start_nginx(folder, target):
    port = sinkonce.free_port()
    path = sinkonce.configured(os.path.join(HERE, "nginx.conf"), folder, folder=folder, port=port, target=target.port)
    process = sinkonce.Process(["nginx", "-p", folder, "-c", path, "-e", folder + "/nginx.error"], folder + "/nginx.log")
    return Candidate("nginx", port, process, has_workers=True)


def start_haproxy(folder, target):
    port = sinkonce.free_port()
    path = sinkonce.configured(os.path.join(HERE, "haproxy.cfg"), folder, port=port, target=target.port)
    return Candidate("HAProxy", port, sinkonce.Process(["haproxy", "-db", "-f", path], folder + "/haproxy.log"))


def start_sinkonce(name, folder, target, distinct=0, **settings):
    proxy = sinkonce.Sinkonce("http://127.0.0.1:%d" % target.port, folder=os.path.join(folder, name.replace(" ", "-")),
                              env={"SINKONCE_LEDGER_MAX": "1GiB", **settings})
    proxy.start()
    return Candidate(name, proxy.port, proxy.process, distinct=distinct, proxy=proxy)


def check_run(candidate, run):
    """A figure of a run in which something else happened than what is measured is worth nothing."""
    if run["broken"] or run["not_2xx"]:
        print("  ! %s: %d answers were not 2xx, %d connections broke" % (candidate.name, run["not_2xx"], run["broken"]))


def attempts(candidate):
    """Requests that it has handed to the target so far.  The target itself cannot be asked: what the load generator
    leaves unfinished at the end of a run still arrives there during the next candidate's."""
    return candidate.proxy.metric("sinkonce_target_attempts_total")


def warm_up(candidate):
    """Once; the load of duplicates until all of its records are known, so that none is new in the rounds."""
    candidate.run("again" if candidate.distinct else "warm-up", 1)
    for _ in range(10):
        if not candidate.distinct:
            return
        before = attempts(candidate)
        candidate.run("again", 1)
        if attempts(candidate) == before:
            return
    print("  ! %s: still sending after ten warm-ups" % candidate.name)


def measure(candidates, rounds, seconds):
    for candidate in candidates:
        warm_up(candidate)
    print("  warm-up", flush=True)
    sent_before = [attempts(candidate) for candidate in candidates if candidate.distinct]
    for number in range(1, rounds + 1):
        for candidate in candidates:
            run = candidate.run("again" if candidate.distinct else "round-%d" % number, seconds)
            check_run(candidate, run)
            candidate.runs.append(run)
        print("  round %d of %d" % (number, rounds), flush=True)
    if sent_before != [attempts(candidate) for candidate in candidates if candidate.distinct]:
        print("  ! duplicates were sent to the target")


def bar(name, value, text, is_passed):
    print("  %-72s %14s  %s" % (name, text % value, "pass" if is_passed else "MISS"))


def print_table(candidates):
    base = candidates[0]
    print("\n%-22s %10s %7s %9s %7s %8s %8s %9s %12s" % ("", "requests/s", "ratio", "CPU us", "ratio", "p50 ms", "p99 ms",
                                                        "peak MiB", "ledger B/rec"))
    for one in candidates:
        print("%-22s %10.0f %7.2f %9.1f %7.2f %8.2f %8.2f %9.1f %12s" % (
            one.name, one.rate(), one.rate() / base.rate(), one.cpu(), one.cpu() / base.cpu(),
            one.median(lambda run: run["p50"] / 1000), one.median(lambda run: run["p99"] / 1000),
            peak_bytes(one.pids()) / MIB, ledger_per_record(one)))
    print("(new, ledger in RAM): nothing is durable; what it is better than \"new\" is the price of the disk.")
    print("CPU us: microseconds of the proxy's processes per request.  peak MiB: VmHWM, nginx summed over its processes.")


def ledger_per_record(candidate):
    if candidate.proxy is None:
        return "-"
    metrics = candidate.proxy.metrics()
    applied = metrics["sinkonce_applied_records_total"]
    return "%.1f" % (metrics["sinkonce_ledger_used_bytes"] / applied) if applied else "-"


def peak_at_256(folder, target):
    """A fresh process with 256 requests that all wait for a slow target at once."""
    one = start_sinkonce("in flight", folder, target, SINKONCE_TARGET_CONNECTIONS="256")
    target.ask("/set?every=1&delay=200")
    load(one.url, "slow", 0, 3, connections=256)
    peak = peak_bytes(one.pids())
    target.ask("/clear")
    one.proxy.close()
    return peak


def ready_in(folder, data_dir):
    """Milliseconds from the start of the process to the first 200 of /readyz."""
    proxy = sinkonce.Sinkonce("http://127.0.0.1:9", folder=os.path.join(folder, "ready"),
                              env={"SINKONCE_DATA_DIR": data_dir, "SINKONCE_LEDGER_MAX": "4GiB"})
    begin = time.monotonic()
    proxy.start(is_ready=False)
    sinkonce.wait_for(proxy._is_ready, "sinkonce to be ready", logs=[proxy.log], every=0.0005)
    took = (time.monotonic() - begin) * 1000
    proxy.close()
    return took


def make_ledger(folder, name, records, batch):
    """A ledger of one partition, in order, with neither marks nor answers."""
    data_dir = os.path.join(folder, name)
    os.makedirs(data_dir)
    done = subprocess.run([os.environ["LEDGER_FILL_BIN"], data_dir, str(records), str(batch)], capture_output=True,
                          text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError("ledger_fill: %s%s" % (done.stdout, done.stderr))
    return data_dir


def ledger_bytes(data_dir):
    """(the file's length, blocks that the store keeps in reserve behind it so that no result fails for space)"""
    stat = os.stat(os.path.join(data_dir, "ledger.mdb"))
    return stat.st_size, max(0, stat.st_blocks * 512 - stat.st_size)


def sync_ms(folder):
    """What one fdatasync of a page costs on the disk of the ledgers, by the median of 200."""
    took = []
    path = os.path.join(folder, "sync")
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    for number in range(200):
        os.pwrite(descriptor, b"x" * 4096, 4096 * (number % 8))
        begin = time.monotonic()
        os.fdatasync(descriptor)
        took.append((time.monotonic() - begin) * 1000)
    os.close(descriptor)
    os.unlink(path)
    return statistics.median(took)


def tool_versions():
    def first_line(command):
        done = subprocess.run(command, capture_output=True, text=True)
        return (done.stdout + done.stderr).splitlines()[0]
    return [first_line([os.environ["SINKONCE_BIN"], "--version"]), first_line(["nginx", "-v"]), first_line(["haproxy", "-v"]),
            first_line(["wrk", "-v"])]


def run(folder, memory, options):
    print("%d cores; %d connections, 500-byte records, one a request; %d rounds of %d s" % (
        os.cpu_count(), CONNECTIONS, options.rounds, options.seconds))
    print("\n".join(tool_versions()))
    print("disk: %.2f ms for a page and its fdatasync; load of the machine before: %.1f" % (
        sync_ms(folder), os.getloadavg()[0]))
    target = Target(folder)
    candidates = [start_nginx(folder, target), start_haproxy(folder, target),
                  start_sinkonce("sinkonce, new", folder, target),
                  start_sinkonce("sinkonce, duplicates", folder, target, distinct=DISTINCT)]
    if memory:
        candidates.append(start_sinkonce("(new, ledger in RAM)", memory, target))
    measure(candidates, options.rounds, options.seconds)
    print_table(candidates)
    nginx, _, new, duplicates = candidates[:4]
    rates = nginx.rate(), new.rate(), duplicates.rate()
    for candidate in candidates:
        candidate.process.end()

    peak = peak_at_256(folder, target)
    million, reserve = ledger_bytes(make_ledger(folder, "million", 1000000, 10000))
    took = ready_in(folder, make_ledger(folder, "hundred-million", 100000000, 100000))
    print("\nbars")
    bar("new records, requests/s to nginx: at least 0.5", rates[1] / rates[0], "%.2f", rates[1] >= 0.5 * rates[0])
    bar("duplicates, requests/s to nginx: at least 1.0", rates[2] / rates[0], "%.2f", rates[2] >= rates[0])
    bar("peak RSS with 256 requests in flight: at most 32 MiB", peak / MIB, "%.1f MiB", peak <= 32 * MIB)
    bar("ledger after 1,000,000 in-order records, no marks, no answers: at most 1 MiB", million / MIB, "%.2f MiB",
        million <= MIB)
    print("  (and %.1f MiB of disk that the store keeps in reserve behind it)" % (reserve / MIB))
    bar("start to ready with 100,000,000 applied records: at most 100 ms", took, "%.0f ms", took <= 100)


def main(run):
    """RUN, with a folder on the disk, one in memory or None, and the options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    folders = [tempfile.mkdtemp(prefix="sinkonce-bench-")]
    if os.access("/dev/shm", os.W_OK):
        folders.append(tempfile.mkdtemp(prefix="sinkonce-bench-", dir="/dev/shm"))
    try:
        run(folders[0], folders[1] if len(folders) > 1 else None, options)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(run)
