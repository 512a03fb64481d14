"""What all scenarios share: a target, a sinkonce in front of it, raw sockets, and what must hold after each test.

A scenario file holds one class Test(Scenario) per promise and ends with harness.main().  It drives the built program
through environment variables and sockets only.  SINKONCE_BIN and TARGET_BIN name the programs; with SINKONCE_TEST_TLS=1
all speak TLS to it.  After each test the target's journal has met the checker, the parts of sinkonce_records_total add
up, the program has ended well on SIGTERM, and its log holds no report of a sanitizer and no failed assertion.
"""

import functools
import http.client
import json
import os
import re
import socket
import struct
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))

import checker  # noqa: E402
import pki  # noqa: E402
import sinkonce  # noqa: E402
from sinkonce import key, record, wait_for  # noqa: E402,F401

PATIENCE = 20  # seconds that a condition may take before a test calls it never
EXIT_SKIPPED = 77  # ctest's SKIP_RETURN_CODE
PARTS = ("applied", "duplicate", "rejected", "not_sent", "busy", "conflict", "unkeyed", "entered_in_doubt")
TROUBLE = re.compile(r"AddressSanitizer|ThreadSanitizer|LeakSanitizer|runtime error:|Assertion `|Assertion failed")
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1:exitcode=0",
}


class Scenario(unittest.TestCase):
    """One target and, from self.serve() on, one sinkonce, each test its own."""

    settings = {}  # of every test of the class
    admin_context = None  # for an admin port that speaks TLS by the test's own settings
    is_journal_checked = True
    allowed_twice = ()  # keys that a named policy may send twice
    longMessage = True

    @classmethod
    def setUpClass(cls):
        for name, value in SANITIZERS.items():
            os.environ.setdefault(name, value)

    def setUp(self):
        self.target = sinkonce.Target().start()
        self.addCleanup(self.target.close)
        self.proxy = None
        self.is_killed_between = False

    def serve(self, **settings):
        """Start sinkonce; SETTINGS without their prefix."""
        env = {"SINKONCE_WORKERS": "2", "SINKONCE_WAIT": "200ms", "SINKONCE_LOG_FORMAT": "json"}
        for name, value in {**self.settings, **settings}.items():
            env["SINKONCE_" + name] = value
        self.proxy = sinkonce.Sinkonce(self.target.url, env=env)
        if "SINKONCE_ADMIN_CERT_FILE" in env:
            self.proxy.context = self.admin_context
        for name, value in self.proxy.settings.items():  # known only now
            self.proxy.settings[name] = value.replace("{admin_port}", str(self.proxy.admin_port))
        self.addCleanup(self.proxy.close)
        self.addCleanup(self.after)
        self.proxy.start()
        return self.proxy

    def between(self):
        """The gap between two steps: nothing, or a kill and a restart."""
        if self.is_killed_between:
            self.restart()

    def restart(self, **changes):
        if self.proxy.process.is_running():
            self.check_sum_if_quiet()  # the counters die with the process
        self.proxy.kill()
        self.proxy.start(**{"SINKONCE_" + name: value for name, value in changes.items()})

    # what must hold at the end

    def after(self):
        if self.proxy.process.is_running():
            self.target.drop()  # whatever it still holds back
            self.check_sum()
            code = self.proxy.stop()
            self.assertEqual(code, 0, "the exit code after SIGTERM" + sinkonce._tail(self.proxy.log))
        self.check_log()
        if self.is_journal_checked:
            self.check_journal()

    def check_log(self):
        with open(self.proxy.log, errors="replace") as log:
            found = [line.rstrip() for line in log if TROUBLE.search(line)]
        self.assertEqual(found, [], sinkonce._tail(self.proxy.log, 60) if found else "")

    def counted(self):
        """(requests in flight, all records, those of each part)"""
        now = self.proxy.metrics()
        parts = {part: now["sinkonce_%s_records_total" % part] for part in PARTS}
        return now["sinkonce_http_requests_in_flight"], now["sinkonce_records_total"], parts

    def check_sum(self):
        """Every record is counted in sinkonce_records_total and in exactly one of its parts."""
        wait_for(lambda: self.counted()[0] == 0, "nothing in flight", PATIENCE)
        _, total, parts = self.counted()
        self.assertEqual(total, sum(parts.values()), parts)

    def check_sum_if_quiet(self):
        """The same, unless something is on its way: then the parts need not add up yet."""
        def is_right():
            in_flight, total, parts = self.counted()
            return in_flight > 0 or total == sum(parts.values())
        wait_for(is_right, "the parts to add up", PATIENCE)

    def check_journal(self):
        """No record took effect twice unless a policy said so, and none in another form than before."""
        journal = [line[:2] for line in self.target.lines() if line[0].count("/") == 2 and line[0][0] != "/"]
        report = checker.check(journal, dict.fromkeys(k for k, _ in journal), allow_twice=self.allowed_twice)
        self.assertTrue(report.is_good, "\n".join(report.lines()))

    # shorter words for what tests do all the time

    def send(self, offset, topic="orders", partition=0, headers=None, timeout=PATIENCE, **fields):
        """One record as a POST: an Answer."""
        return Answer(*self.proxy.post("/in", record(topic, partition, offset, **fields), headers, timeout))

    def doubt(self, *offsets, topic="orders", partition=0, apply="yes", **fields):
        """Leave these records in doubt; the target has applied them, unless APPLY is "no"."""
        for offset in offsets:
            self.target.set(cut="answer", end="rst", apply=apply, next=1)
            self.assertEqual(self.send(offset, topic, partition, **fields).outcome, "in-doubt")
        self.target.clear()

    def applied(self, offset, topic="orders", partition=0):
        """How often the record took effect."""
        return self.target.count(key(topic, partition, offset))

    def state(self, offset, topic="orders", partition=0):
        return self.proxy.record_state(key(topic, partition, offset))

    def doubts(self):
        return self.proxy.doubt_keys()

    def assert_metric(self, name, expected):
        """Counters are told after the answer has left."""
        now = self.proxy.metrics
        wait_for(lambda: now().get("sinkonce_" + name) == expected, "%s to be %s" % (name, expected), PATIENCE, [self.proxy.log])

    def later(self, call, *arguments, **named):
        """CALL in a thread of its own, which ends with the test."""
        running = Later(call, *arguments, **named)
        self.addCleanup(running.finish)
        return running

    def held(self, count=1):
        """Wait until the target holds COUNT requests back."""
        return wait_for(lambda: len(self.target.held()) == count and self.target.held(), "held requests", PATIENCE,
                        [self.proxy.log])

    def assert_own(self, answer, status, outcome, error=None):
        """An answer that sinkonce made itself."""
        self.assertEqual((answer.status, answer.outcome), (status, outcome), answer)
        if error is not None:
            self.assertEqual(answer.json()["error"], error, answer)
        if status == 503:
            self.assertEqual(answer.headers.get("retry-after"), "1", answer)
        self.assertNotIn("set-cookie", answer.headers)

    def events(self, kind=None):
        status, page = self.proxy.admin("GET", "/events?limit=1000")
        self.assertEqual(status, 200, page)
        return [row for row in page["events"] if kind is None or row["event"] == kind]

    def logged(self, event):
        """The lines of the program's log that tell of this event, oldest first."""
        with open(self.proxy.log, errors="replace") as log:
            lines = [json.loads(line) for line in log if line.startswith("{") and line.endswith("}\n")]
        return [line for line in lines if line.get("event") == event]

    def assert_logged(self, wanted):
        """The first line of WANTED's event holds all of WANTED.  It may come after the answer."""
        wait_for(lambda: self.logged(wanted["event"]), wanted["event"], PATIENCE, [self.proxy.log])
        line = self.logged(wanted["event"])[0]
        self.assertEqual({name: line.get(name) for name in wanted}, wanted)


def straight_and_killed(test):
    """The test runs as it is, and with sinkonce killed and started again in each of its gaps."""
    test.is_run_with_kills = True
    return test


def _with_kills(test):
    @functools.wraps(test)
    def run(self):
        self.is_killed_between = True
        test(self)
    run.is_run_with_kills = False
    return run


def _add_killed_runs(module):
    for kind in list(vars(module).values()):
        if not (isinstance(kind, type) and issubclass(kind, Scenario)):
            continue
        for name, test in list(vars(kind).items()):
            if getattr(test, "is_run_with_kills", False):
                setattr(kind, name + "_also_when_killed_between_steps", _with_kills(test))


def unchunked(chunks):
    """A body without its transfer coding."""
    body = b""
    while True:
        size, _, chunks = chunks.partition(b"\r\n")
        count = int(size.split(b";")[0], 16)
        if count == 0:
            return body
        body, chunks = body + chunks[:count], chunks[count + 2:]


class Answer:
    """What came back: status, headers in lower case, body."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def outcome(self):
        return self.headers.get("sinkonce-outcome")

    @property
    def is_replayed(self):
        return self.headers.get("idempotency-replayed") == "true"

    def json(self):
        return sinkonce.json.loads(self.body)

    def __repr__(self):
        return "%s %s %r" % (self.status, self.headers, self.body[:300])


class Later:
    """A call in another thread; result() waits for it and gives what it returned, or None when the connection failed."""

    def __init__(self, call, *arguments, **named):
        self.value = self.error = self.wrong = None
        self.thread = threading.Thread(target=self._run, args=(call, arguments, named), daemon=True)
        self.thread.start()

    def _run(self, call, arguments, named):
        try:
            self.value = call(*arguments, **named)
        except (OSError, EOFError, http.client.HTTPException) as error:
            self.error = error
        except Exception as error:  # for the thread of the test
            self.wrong = error

    def is_running(self):
        return self.thread.is_alive()

    def result(self):
        self.thread.join(60)
        if self.thread.is_alive():
            raise TimeoutError("a request was never answered")
        if self.wrong:
            raise self.wrong
        return self.value

    def finish(self):
        self.thread.join(60)


class Wire:
    """One connection, byte by byte; over TLS where sinkonce speaks it."""

    def __init__(self, port, receive_bytes=None, context=sinkonce.papers.context if sinkonce.IS_TLS else None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        if context:
            self.socket = pki.TlsSocket(self.socket, context)
        self.input = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """False: the peer has ended the connection already."""
        try:
            self.socket.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            return False
        return True

    def end_output(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def reset(self):
        """Leave with RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _more(self):
        try:
            piece = self.socket.recv(65536)
        except ConnectionResetError:
            piece = b""
        self.input += piece
        return bool(piece)

    def until(self, mark):
        while mark not in self.input:
            if not self._more():
                raise EOFError("ended after %r" % self.input[:300])
        taken, _, self.input = self.input.partition(mark)
        return taken + mark

    def exactly(self, count):
        while len(self.input) < count:
            if not self._more():
                raise EOFError("ended after %r" % self.input[:300])
        taken, self.input = self.input[:count], self.input[count:]
        return taken

    def reply(self, method="POST"):
        """The next answer, framed as its fields say: a Reply.  EOFError: the connection ended first."""
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")[:-2]
        reply = Reply(lines[0], [tuple(line.split(": ", 1)) for line in lines[1:]])
        length = reply.one("content-length")
        if method != "HEAD" and reply.status >= 200 and reply.status not in (204, 304):
            if length is None:
                raise ValueError("an answer without Content-Length: %s" % lines)
            reply.body = self.exactly(int(length))
        return reply

    def final(self, method="POST"):
        """The next answer that is not 1xx."""
        while True:
            reply = self.reply(method)
            if reply.status >= 200:
                return reply

    def is_ended(self):
        """Wait for the peer to end the connection as it should.  False: it says something instead, or just goes."""
        return not self.input and not self._more() and not getattr(self.socket, "is_cut", False)

    def rest(self):
        while self._more():
            pass
        return self.input


class Reply:
    """An answer as it came: status line, fields in their order, body."""

    def __init__(self, line, fields):
        self.line, self.fields, self.body = line, fields, b""
        self.status = int(line.split(" ")[1])

    def all(self, name):
        return [value for field, value in self.fields if field.lower() == name]

    def one(self, name):
        found = self.all(name)
        if len(found) > 1:
            raise ValueError("%s more than once: %s" % (name, found))
        return found[0] if found else None

    def __repr__(self):
        return "%s %s %r" % (self.line, self.fields, self.body[:300])


def post_bytes(body, fields="", path="/in", version="1.1", method="POST"):
    """A request with Content-Length; FIELDS are whole lines."""
    head = "%s %s HTTP/%s\r\nHost: sinkonce\r\n%sContent-Length: %d\r\n\r\n" % (method, path, version, fields, len(body))
    return head.encode("latin-1") + body


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def rss_kib(pid, field="VmRSS"):
    with open("/proc/%d/status" % pid) as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field + ":"))


def is_sanitized():
    """A build with a sanitizer has other sizes and speeds."""
    with open(os.environ.get("SINKONCE_BIN", "sinkonce"), "rb") as binary:
        content = binary.read()
    return b"__asan_init" in content or b"__tsan_init" in content


class _Result(unittest.TextTestResult):
    def getDescription(self, test):
        return test.id().split(".")[-1]


def main():
    """Run the tests of the calling file, and say how many there were in a last line for run.py."""
    module = sys.modules["__main__"]
    _add_killed_runs(module)
    only = os.environ.get("ONLY")
    loader = unittest.TestLoader()
    if only:
        loader.testNamePatterns = ["*%s*" % only]
    suite = loader.loadTestsFromModule(module)
    started = time.monotonic()
    result = unittest.TextTestRunner(verbosity=2, resultclass=_Result).run(suite)
    bad, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    broken = {id(test) for test, _ in result.failures + result.errors}
    print("tests: %d passed, %d failed, %d skipped, %.1f s" %
          (result.testsRun - len(broken) - skipped, len(broken), skipped, time.monotonic() - started), flush=True)
    if bad:
        sys.exit(1)
    sys.exit(EXIT_SKIPPED if skipped and skipped == result.testsRun else 0)
