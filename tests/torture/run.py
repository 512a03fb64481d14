#!/usr/bin/env python3
"""F-10: every allocation and every system call of one story fails once, each in a run of its own.

    run.py                 a sample of SINKONCE_TORTURE_RUNS (default 500): each place that calls, before any place twice
    run.py --all           every call, with every error that it can have
    run.py --only serve malloc ENOMEM 17      one run, with its log and the stack of the call that failed

The story: a new record, its duplicate, batches of which half is known (plain, gzip, zstd, bulk), a record whose outcome
stays unknown, its resolution over the admin port, a look at every list.  A call fails at the start, in the story or at the
stop (fail_nth.c).  In each run, whatever fails:

    the program neither crashes nor hangs; only a fault at its start may end it, with a code of sysexits and a sentence
    every request ends: 2xx, 503, or a closed connection, and never a 4xx for a failure of our own
    no record takes effect twice, none that was told done is lost, each other one is absent, offered again or in doubt
    afterwards the same process serves all of it, holds no more descriptors than before, and its sums are right
    it stops with 0 on SIGTERM, and a restart knows every record

Needs SINKONCE_BIN and FAIL_NTH_LIB.
"""

import argparse
import errno
import http.client
import mmap
import multiprocessing
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "support"), os.path.join(os.path.dirname(HERE), "scenario")]

import batches  # noqa: E402
import checker  # noqa: E402
import sinkonce  # noqa: E402
from batch_target import BatchTarget, Reply, packed  # noqa: E402

PATIENCE = 30  # seconds after which something hangs
BROKEN_OFF = (OSError, http.client.HTTPException)
TROUBLE = re.compile(r"Sanitizer|runtime error:|Assertion|\[err\]|stack smashing|free\(\)|malloc\(\)|corrupt")
PARTS = ("applied", "duplicate", "rejected", "not_sent", "busy", "conflict", "unkeyed", "entered_in_doubt")
START_CODES = (69, 70, 71, 74, 78)  # sysexits.h: unavailable, software, system, i/o, configuration
SETTINGS = {
    "WORKERS": "1", "WAIT": "100ms", "TARGET_TIMEOUT": "2s", "HEAD_TIMEOUT": "2s", "BODY_TIMEOUT": "2s",
    "LOG_FORMAT": "json", "DRAIN_TIMEOUT": "5s",
}

# What can go wrong with each kind of call, and is worth a try.
FAULTS = {
    "malloc": "ENOMEM", "calloc": "ENOMEM", "realloc": "ENOMEM", "strdup": "ENOMEM", "mmap": "ENOMEM",
    "open": "EMFILE ENOMEM EACCES", "stat": "EIO", "fstat": "EIO", "statfs": "EIO", "flock": "ENOLCK", "rename": "EIO ENOSPC",
    "read": "EIO EINTR", "readv": "ECONNRESET EINTR EAGAIN", "write": "ENOSPC EINTR", "writev": "ECONNRESET EIO EINTR EAGAIN",
    "pread": "EIO", "pwrite": "EIO ENOSPC", "lseek": "EIO", "fsync": "EIO", "fdatasync": "EIO ENOSPC",
    "ftruncate": "ENOSPC", "fallocate": "ENOSPC EOPNOTSUPP EINTR", "socket": "EMFILE ENOBUFS", "socketpair": "EMFILE",
    "bind": "EADDRINUSE", "listen": "EADDRINUSE", "connect": "ENETUNREACH EADDRNOTAVAIL",
    "accept4": "EMFILE ECONNABORTED EINTR", "getsockopt": "ENOBUFS", "setsockopt": "ENOBUFS", "getsockname": "ENOBUFS",
    "send": "ECONNRESET EAGAIN EINTR", "sendmsg": "ECONNRESET ENOBUFS EAGAIN EINTR", "recv": "ECONNRESET EAGAIN EINTR",
    "epoll_create1": "EMFILE", "epoll_ctl": "ENOMEM ENOSPC", "epoll_wait": "EINTR", "eventfd": "EMFILE",
    "pipe2": "EMFILE", "getrandom": "EINTR", "pthread_create": "EAGAIN",
}
LASTING = ("malloc", "calloc", "realloc", "open", "fdatasync", "accept4", "socket", "epoll_ctl")  # fail on and on, too
BURST = 8
MOMENTS = ("start", "serve", "stop")


class Plan:
    """The memory that is shared with fail_nth.c."""

    HEAD, ROW, SITES, SITE = struct.Struct("iiIIII"), struct.Struct("24sI"), struct.Struct("II"), struct.Struct("IIQ")
    SITES_MAX = 16384

    def __init__(self, path):
        with open(path, "wb") as file:
            file.truncate(self.HEAD.size + 64 * self.ROW.size + 16 + self.SITES_MAX * self.SITE.size)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def _head(self):
        return self.HEAD.unpack_from(self.memory)

    def names(self):
        return {row[0].rstrip(b"\0").decode(): number for number, row in enumerate(self._rows())}

    def _rows(self):
        return [self.ROW.unpack_from(self.memory, self.HEAD.size + n * self.ROW.size) for n in range(self._head()[5])]

    def seen(self):
        return {row[0].rstrip(b"\0").decode(): row[1] for row in self._rows()}

    def fired(self):
        return self._head()[4]

    def arm(self, number, error, nth, burst):
        """NUMBER of the call; negative: none."""
        count = self._head()[5]
        for row in range(count):  # counted from now on
            struct.pack_into("I", self.memory, self.HEAD.size + row * self.ROW.size + 24, 0)
        self.HEAD.pack_into(self.memory, 0, -1, 0, 0, 0, 0, count)
        self.HEAD.pack_into(self.memory, 0, number, error, nth, burst, 0, count)

    def _sites_at(self):
        return self.HEAD.size + self._head()[5] * self.ROW.size

    def note_sites(self, is_on):
        self.SITES.pack_into(self.memory, self._sites_at(), is_on, 0)

    def places(self):
        """{(call, place): the number of its first call}; a place is a stack."""
        rows, names, first = self._sites_at(), list(self.seen()), {}
        count = min(self.SITES.unpack_from(self.memory, rows)[1], self.SITES_MAX)
        rows += self.SITES.size + -(rows + self.SITES.size) % 8  # as the compiler lays it out
        for n in range(count):
            call, number, stack = self.SITE.unpack_from(self.memory, rows + n * self.SITE.size)
            first.setdefault((names[call], stack), number)
        return first

    def disarm(self):
        struct.pack_into("i", self.memory, 0, -1)
        struct.pack_into("I", self.memory, self._sites_at(), 0)


class Broken(Exception):
    """What must hold does not."""


def demand(condition, *words):
    if not condition:
        raise Broken(" ".join(str(word) for word in words))


class Bench:
    """A target and a folder, one for each process that runs stories."""

    def __init__(self, root):
        self.folder = tempfile.mkdtemp(prefix="bench-", dir=root)
        self.target = BatchTarget().start()
        self.plan = Plan(os.path.join(self.folder, "plan"))
        env = {"SINKONCE_" + name: value for name, value in SETTINGS.items()}
        self.proxy = sinkonce.Sinkonce(self.target.url, folder=os.path.join(self.folder, "proxy"), env=env)
        self.names = self._names()

    def environment(self, is_preloaded):
        env = self.proxy.environment()
        env.update(ASAN_OPTIONS="detect_leaks=1:verify_asan_link_order=0:abort_on_error=0:allocator_may_return_null=1")
        if is_preloaded:
            env.update(LD_PRELOAD=os.environ["FAIL_NTH_LIB"], FAIL_NTH=os.path.join(self.folder, "plan"))
        return env

    def _names(self):
        subprocess.run([self.proxy.binary, "--version"], env=self.environment(True), stdout=subprocess.DEVNULL, check=True)
        return self.plan.names()

    def arm(self, call, error, nth, burst):
        """CALL None: nothing fails, and the places of all calls are written down."""
        self.plan.note_sites(call is None)
        self.plan.arm(self.names[call] if call else -1, getattr(errno, error) if error else 0, nth, burst)

    def clear(self):
        """As if nothing had ever been."""
        shutil.rmtree(self.proxy.data_dir, ignore_errors=True)
        os.makedirs(self.proxy.data_dir)
        open(self.proxy.log, "w").close()
        with self.target.lock:
            self.target.journal, self.target.counts, self.target.seen = [], type(self.target.counts)(), []
        self.target.queued.clear()

    def close(self):
        self.proxy.close()
        self.target.close()


class Run:
    """One story with one fault."""

    def __init__(self, bench, moment, call, error, nth, burst):
        self.bench, self.proxy, self.target = bench, bench.proxy, bench.target
        self.moment, self.fault = moment, (call, error, nth, burst)
        self.acked, self.produced, self.fired, self.seen = set(), {}, 0, {}

    # starting and stopping

    def launch(self, is_preloaded=True):
        """True: it is ready.  False: it ended, with words and a code that say why."""
        self.proxy.process = sinkonce.Process([self.proxy.binary], self.proxy.log, env=self.bench.environment(is_preloaded))
        limit = time.monotonic() + PATIENCE
        while not self.is_ready():
            if not self.proxy.process.is_running():
                return False
            demand(time.monotonic() < limit, "it is never ready")
            time.sleep(0.002)
        return True

    def is_ready(self):
        try:
            return sinkonce.request(self.proxy.admin_port, "GET", "/readyz", timeout=2)[0] == 200
        except BROKEN_OFF:
            return False

    def start(self):
        if self.moment == "start":
            self.bench.arm(*self.fault)
            is_up = self.launch()
            self.disarm()
            code = self.proxy.process.popen.poll()
            demand(is_up or code in START_CODES, "the start ended with", code)
            if is_up:
                return
            self.check_log()
        demand(self.launch(), "no start without a fault:", self.proxy.process.popen.poll())

    def disarm(self):
        self.bench.plan.disarm()
        self.fired, self.seen = self.bench.plan.fired(), self.bench.plan.seen()
        self.places = self.bench.plan.places() if self.fault[0] is None else {}

    def stop(self):
        if self.moment == "stop":
            self.bench.arm(*self.fault)
        try:
            code = self.proxy.process.stop(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Broken("it does not stop") from None
        if self.moment == "stop":
            self.disarm()
        demand(code == 0, "the stop ended with", code)
        self.check_log()

    # requests

    def deliver(self, offsets, build=batches.array, path="/in", coding=None):
        """One delivery of the connector; the status, or None when the connection ended."""
        some = batches.records(*offsets)
        for offset, one in zip(offsets, some):
            self.produced[batches.key("orders", 0, offset)] = sinkonce.journal_hash(one)
        headers = {"Content-Encoding": coding} if coding else {}
        try:
            status, fields, body = self.proxy.post(path, packed(build(some), coding), headers, PATIENCE)
        except TimeoutError:
            raise Broken("a delivery of %s is never answered" % list(offsets)) from None
        except BROKEN_OFF:
            return None
        demand(status // 100 == 2 or status == 503, "a delivery is answered with", status, body)
        if status // 100 == 2 and not self.has_failed_items(body):
            self.acked.update(batches.key("orders", 0, offset) for offset in offsets)
        return status

    @staticmethod
    def has_failed_items(body):
        return b'"errors":true' in body.replace(b" ", b"")

    def ask(self, method, path, document=None):
        """The admin port: an answer, or None when the connection ended."""
        try:
            return self.proxy.admin(method, path, document)
        except TimeoutError:
            raise Broken("%s %s is never answered" % (method, path)) from None
        except BROKEN_OFF:
            return None

    def is_applied(self, record_key):
        """A look at the target, once nothing is on its way to it any more."""
        self.target.drop()
        sinkonce.wait_for(lambda: not self.target.open_sockets, "the target's connections to end", PATIENCE)
        return self.target.count(record_key) > 0

    def story(self):
        self.deliver([0], batches.concat)
        self.deliver([0], batches.concat)
        self.deliver([0, 1, 2])
        self.deliver([2, 3, 4], coding="gzip")
        self.deliver([3, 5], batches.lines, coding="zstd")
        self.deliver([5, 6, 7], batches.bulk, "/_bulk")
        self.target.next(Reply(cut="answer", end="rst", applied=True))
        self.deliver([8], batches.concat)
        self.target.queued.clear()
        found = self.ask("GET", "/in-doubt?limit=10")
        for row in found[1]["in_doubt"] if found and found[0] == 200 else ():
            resolution = "applied" if self.is_applied(batches.key("orders", 0, row["first"])) else "not-applied"
            self.ask("POST", "/in-doubt/%s" % row["id"], {"resolution": resolution, "reason": "a look"})
        self.deliver([8], batches.concat)
        for path in ("/metrics", "/status", "/partitions", "/events", "/records?topic=orders&partition=0&offset=1"):
            self.ask("GET", path)

    # what must hold

    def recover(self, offsets):
        """Everything is delivered until it is done; what is in doubt is resolved by a look at the target."""
        limit = time.monotonic() + PATIENCE
        waiting = [batches.key("orders", 0, offset) for offset in offsets]
        while waiting:
            demand(time.monotonic() < limit, "never served:", waiting, self.ask("GET", "/in-doubt"))
            demand(self.proxy.process.is_running(), "it died:", self.proxy.process.popen.poll())
            offset = int(waiting[0].rpartition("/")[2])
            if self.deliver([offset], batches.concat) == 200:
                waiting.pop(0)
                continue
            resolution = "applied" if self.is_applied(waiting[0]) else "not-applied"
            self.ask("POST", "/in-doubt", {"resolution": resolution, "reason": "a look", "expect_count": 1, "topic": "orders",
                                           "partition": 0, "from": offset, "to": offset})
            time.sleep(0.02)

    def check_records(self):
        journal = [tuple(line[:2]) for line in self.target.lines()]
        report = checker.check(journal, self.produced, self.acked, self.proxy.doubt_keys(), [])
        demand(report.is_good, "\n".join(report.lines()))

    def check_quiet(self):
        """Nothing is left over: no exchange in flight, no connection, and no sum that does not add up."""
        metrics = {}

        def is_quiet():
            metrics.update(self.proxy.metrics())
            return metrics["sinkonce_http_requests_in_flight"] == 0
        sinkonce.wait_for(is_quiet, "nothing in flight", PATIENCE)
        total = sum(metrics["sinkonce_%s_records_total" % part] for part in PARTS)
        demand(metrics["sinkonce_records_total"] == total, "of", metrics["sinkonce_records_total"], "records", total, "are told")
        fds = lambda: len(os.listdir("/proc/%d/fd" % self.proxy.process.pid))  # noqa: E731
        try:
            sinkonce.wait_for(lambda: fds() <= self.fds_before + 1, "descriptors", PATIENCE / 4)
        except TimeoutError:
            raise Broken("%d descriptors, %d before" % (fds(), self.fds_before)) from None

    def check_log(self):
        with open(self.proxy.log, errors="replace") as log:
            found = [line.rstrip() for line in log if TROUBLE.search(line)]
        demand(not found, "the log says", "\n".join(found[:20]))

    def go(self):
        self.bench.clear()
        self.start()
        self.fds_before = len(os.listdir("/proc/%d/fd" % self.proxy.process.pid))
        if self.moment == "serve":
            self.bench.arm(*self.fault)
        self.story()
        if self.moment == "serve":
            self.disarm()
        demand(self.proxy.process.is_running(), "it died:", self.proxy.process.popen.poll())
        self.recover(range(10))
        self.check_records()
        self.check_quiet()
        self.stop()
        demand(self.launch(is_preloaded=False), "no restart")
        for record_key in sorted(self.produced):
            demand(self.proxy.record_state(record_key) == "applied", record_key, "after the restart is",
                   self.proxy.record_state(record_key))
        self.recover([0, 1, 20])
        self.check_records()
        self.proxy.kill()

    def result(self):
        """(moment, fault, how often it fired, what is wrong or None, log)"""
        wrong = None
        try:
            self.go()
        except (Broken, TimeoutError, RuntimeError) as error:
            wrong = str(error)
        except Exception:  # a mistake of ours, or a connection that must not end
            wrong = traceback.format_exc()
        self.bench.plan.disarm()
        if self.proxy.process and self.proxy.process.is_running():
            self.proxy.kill()
        log = open(self.proxy.log, errors="replace").read() if wrong else ""
        return self.moment, self.fault, self.fired, wrong, log


# ---- all runs

bench = None


def open_bench(root):
    global bench
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bench = Bench(root)


def one(task):
    return Run(bench, *task).result()


class Counts:
    """What a story without a fault calls: {moment: {call: how often}} and {moment: {(call, place): its first number}}."""

    def __init__(self, root):
        self.calls, self.places = {}, {}
        counting = Bench(root)
        for moment in MOMENTS:
            run = Run(counting, moment, None, None, 0, 0)
            _, _, _, wrong, log = run.result()
            if wrong:
                sys.exit("without a fault: %s\n%s" % (wrong, log))
            self.calls[moment], self.places[moment] = run.seen, run.places
        counting.close()

    def __str__(self):
        return "; ".join("%s %s" % (moment, " ".join("%s=%d" % pair for pair in calls.items() if pair[1]))
                         for moment, calls in self.calls.items())


def faults_of(call):
    for error in FAULTS[call].split():
        yield error, 1
        if call in LASTING and error != "EINTR":
            yield error, BURST


def all_tasks(counts):
    """Every fault of every call; a few more than were counted, because no two runs are quite alike."""
    for moment in MOMENTS:
        for call in FAULTS:
            count = counts.calls[moment].get(call, 0)
            for error, burst in faults_of(call) if count else ():
                for nth in range(1, count + 1 + count // 20):
                    yield moment, call, error, nth, burst


def sampled(counts, wanted):
    """Each place once, with one of the errors that its call can have, then each with the next; of the last round as many
    as are still wanted, spread evenly."""
    rounds = []
    for moment in MOMENTS:
        for number, ((call, _), nth) in enumerate(counts.places[moment].items()):
            faults = list(faults_of(call))
            for turn in range(len(faults)):
                error, burst = faults[(number + turn) % len(faults)]
                rounds += [[] for _ in range(turn + 1 - len(rounds))]
                rounds[turn].append((moment, call, error, nth, burst))
    chosen = []
    for tasks in rounds:
        step = max(1.0, len(tasks) / max(1, wanted - len(chosen)))
        chosen += [tasks[int(n * step)] for n in range(int(len(tasks) / step)) if len(chosen) < wanted]
    return chosen


def words(moment, fault):
    call, error, nth, burst = fault
    return "%s %s %s %d%s" % (moment, call, error, nth, " %d" % burst if burst > 1 else "")


def run_all(tasks, root, jobs):
    counted, bad = {"runs": 0, "fired": 0}, 0
    with multiprocessing.Pool(jobs, open_bench, (root,)) as pool:
        for moment, fault, fired, wrong, log in pool.imap_unordered(one, tasks, 1):
            counted["runs"] += 1
            counted["fired"] += fired > 0
            if wrong:
                bad += 1
                print("FAIL %s (fired %d): %s" % (words(moment, fault), fired, wrong), flush=True)
                if os.environ.get("TORTURE_LOGS"):
                    print(log, flush=True)
    return counted, bad


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--moment", choices=MOMENTS)
    parser.add_argument("--calls", help="only these, parted by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="MOMENT CALL ERROR NTH [BURST]")
    given = parser.parse_args(arguments)
    root = tempfile.mkdtemp(prefix="sinkonce-torture-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        if given.only:
            os.environ["FAIL_NTH_TRACE"] = "1"
            open_bench(root)
            moment, call, error, nth, burst = (given.only + ["1"])[:5]
            *_, fired, wrong, log = one((moment, call, error, int(nth), int(burst)))
            print(log if wrong else "", "fired %d: %s" % (fired, wrong or "ok"), sep="")
            return 1 if wrong else 0
        started = time.monotonic()
        counts = Counts(root)
        every = list(all_tasks(counts))
        tasks = every if given.all else sampled(counts, int(os.environ.get("SINKONCE_TORTURE_RUNS", "500")))
        chosen = [task for task in tasks
                  if given.moment in (None, task[0]) and (not given.calls or task[1] in given.calls.split(","))]
        print("%d of %d runs, %d places; calls: %s" % (
            len(chosen), len(every), sum(map(len, counts.places.values())), counts), flush=True)
        counted, bad = run_all(chosen, root, given.jobs)
        print("%d runs, a fault in %d of them, %d wrong, %.0f s" % (counted["runs"], counted["fired"], bad,
                                                                 time.monotonic() - started))
        return 1 if bad or not counted["fired"] else 0
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
