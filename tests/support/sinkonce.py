"""Starts and stops sinkonce and the counting target for tests.  Python's standard library only.

    with Target() as target, Sinkonce(target.url) as proxy:
        status, headers, body = proxy.post("/ingest", record("orders", 0, 7))
        proxy.kill(); proxy.start()         # the same ports, the same ledger
        assert target.stats()["applied"] == 1

SINKONCE_TEST_TLS=1 has sinkonce speak TLS on both ports, and this module with it.

Binaries: SINKONCE_BIN and TARGET_BIN, or the arguments.  Every process is started with the order to die with the
thread that started it, and is ended by its pid, also when the test fails.  Nothing here waits for a length of time:
wait_for() asks until a condition holds, and raises TimeoutError with the last logs when it does not.
"""

import atexit
import ctypes
import fcntl
import functools
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from urllib.parse import quote, urlencode

import checker
import pki

_libc = ctypes.CDLL(None)
_running = []


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@atexit.register
def _end_all():
    for process in list(_running):
        process.end()


# Below the ports that the kernel gives to connections by itself (ip_local_port_range): a restart finds its port free.
_PORTS = range(20000, 32000)
_held_ports = []
_chooser = random.SystemRandom()  # not the seeds of the tests


def free_port():
    """A port of 127.0.0.1 that nobody has, and that no other test gets while this process lives."""
    folder = os.path.join(tempfile.gettempdir(), "sinkonce-test-ports")
    os.makedirs(folder, exist_ok=True)
    while True:
        port = _chooser.choice(_PORTS)
        lock = os.open(os.path.join(folder, str(port)), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            os.close(lock)
            continue
        _held_ports.append(lock)
        return port


def wait_for(condition, what, seconds=20, logs=(), every=0.01):
    """Ask CONDITION again and again until it gives something true, and return that."""
    limit = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > limit:
            raise TimeoutError("waited %d s for: %s%s" % (seconds, what, "".join(_tail(log) for log in logs)))
        time.sleep(every)


def _tail(path, lines=15):
    try:
        with open(path, errors="replace") as log:
            return "\n--- %s\n%s" % (os.path.basename(path), "".join(log.readlines()[-lines:]))
    except OSError:
        return ""


def record(topic, partition, offset, **fields):
    """The body of one record in the form of Kafka's InsertField transform."""
    return json.dumps({"amt": 9007199254740993, "__partition": partition, "id": offset, **fields,
                       "__topic": topic, "__offset": offset}, separators=(",", ":")).encode()


def key(topic, partition, offset):
    return "%s/%d/%d" % (topic, partition, offset)


def journal_hash(body):
    """The second column of the target's journal."""
    return "%08x-%d" % (zlib.crc32(body), len(body))


IS_TLS = os.environ.get("SINKONCE_TEST_TLS") == "1"


class _Papers:
    """What all of this process need for TLS, made at the first use."""

    @functools.cached_property
    def folder(self):
        folder = tempfile.mkdtemp(prefix="sinkonce-tls-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder

    @functools.cached_property
    def authority(self):
        return pki.Authority(self.folder, "ours")

    @functools.cached_property
    def server(self):
        return self.authority.issue("server")

    @functools.cached_property
    def context(self):
        return pki.client_context(self.authority)


papers = _Papers()


def request(port, method, path, body=None, headers=None, timeout=30, context=None):
    """One request on a connection of its own, over TLS with a CONTEXT: (status, headers in lower case, body)."""
    if context:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def configured(template, into, **values):
    """A copy of TEMPLATE in the folder INTO, with @NAME@ replaced by the value of that name; its path."""
    with open(template) as source:
        text = source.read()
    for word, value in values.items():
        text = text.replace("@%s@" % word.upper(), str(value))
    path = os.path.join(into, os.path.basename(template))
    with open(path, "w") as out:
        out.write(text)
    return path


class Process:
    """One process with its log file; started and ended by pid."""

    def __init__(self, command, log, env=None, cwd=None, stdin=None, stdout=None):
        self.log = log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(command, env=env, cwd=cwd, stdin=stdin or subprocess.DEVNULL,
                                          stdout=stdout or out, stderr=out, preexec_fn=_die_with_parent)
        _running.append(self)

    @property
    def pid(self):
        return self.popen.pid

    def is_running(self):
        return self.popen.poll() is None

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, seconds=30):
        code = self.popen.wait(seconds)
        if self in _running:
            _running.remove(self)
        return code

    def kill(self):
        if self.is_running():
            self.signal(signal.SIGKILL)
        return self.wait()

    def stop(self, seconds=30):
        """SIGTERM; the exit code."""
        if self.is_running():
            self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def end(self):
        try:
            self.stop(5)
        except subprocess.TimeoutExpired:
            self.kill()


class _Folder:
    """A temporary folder, kept when KEEP_FOLDERS is set."""

    def __init__(self, folder, name):
        self.is_ours = folder is None
        self.path = folder or tempfile.mkdtemp(prefix="sinkonce-%s-" % name)
        os.makedirs(self.path, exist_ok=True)

    def remove(self):
        if self.is_ours and not os.environ.get("KEEP_FOLDERS"):
            shutil.rmtree(self.path, ignore_errors=True)


class Target:
    """The counting target (target.c).  Each start has the same ports and goes on with the same journal."""

    def __init__(self, folder=None, binary=None, options=()):
        self._folder = _Folder(folder, "target")
        self.binary = binary or os.environ.get("TARGET_BIN") or "target"
        self.journal = os.path.join(self._folder.path, "journal")
        self.port = self.control_port = 0
        self.options = list(options)
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def start(self):
        command = [self.binary, "--port", str(self.port), "--control-port", str(self.control_port),
                   "--journal", self.journal] + self.options
        self.process = Process(command, os.path.join(self._folder.path, "target.log"), stdout=subprocess.PIPE)
        with self.process.popen.stdout as out:
            line = out.readline().decode()
        if "control=" not in line:
            raise RuntimeError("the target did not start" + _tail(self.process.log))
        ports = dict(word.split("=") for word in line.split())
        self.port, self.control_port = int(ports["port"]), int(ports["control"])
        return self

    def kill(self):
        return self.process.kill()

    def stop(self):
        return self.process.stop()

    def close(self):
        if self.process:
            self.process.end()
        self._folder.remove()

    def ask(self, path):
        status, _, body = request(self.control_port, "GET", path)
        if status != 200:
            raise RuntimeError("target: %s: %d %s" % (path, status, body.decode(errors="replace")))
        return body

    def set(self, **rule):
        """This rule alone (target_rules.h), for instance set(every=50, delay=2500)."""
        self.ask("/set?" + urlencode(rule, quote_via=quote))

    def add(self, **rule):
        self.ask("/add?" + urlencode(rule, quote_via=quote))

    def clear(self):
        self.ask("/clear")

    def stats(self):
        return json.loads(self.ask("/stats"))

    def counters(self):
        return json.loads(self.ask("/counters"))

    def count(self, record_key):
        return int(self.ask("/count?" + record_key))

    def held(self):
        return json.loads(self.ask("/held"))

    def faulted(self):
        return json.loads(self.ask("/faulted"))

    def last(self):
        """The last write, byte for byte as it came."""
        return self.ask("/last")

    def refuse(self):
        self.ask("/refuse")

    def listen(self):
        self.ask("/listen")

    def drop(self):
        self.ask("/drop")

    def reset(self):
        self.ask("/reset")

    def lines(self):
        """The journal: a list of (key, hash, milliseconds)."""
        with open(self.journal) as journal:
            return [(k, h, int(ms)) for k, h, ms in (line.rstrip("\n").split("\t") for line in journal)]


def _resolution(is_applied):
    return "applied" if is_applied else "not-applied"


class Sinkonce:
    """A sinkonce in front of TARGET_URL, on free ports that it keeps over kill() and start()."""

    def __init__(self, target_url, folder=None, binary=None, env=None, wrapper=()):
        self._folder = _Folder(folder, "proxy")
        self.binary = binary or os.environ.get("SINKONCE_BIN") or "sinkonce"
        self.port, self.admin_port = free_port(), free_port()
        self.data_dir = os.path.join(self._folder.path, "data")
        os.makedirs(self.data_dir, exist_ok=True)
        self.log = os.path.join(self._folder.path, "sinkonce.log")
        self.wrapper = list(wrapper)  # for instance valgrind or strace
        self.settings = {"SINKONCE_TARGET": target_url, "SINKONCE_LISTEN": "127.0.0.1:%d" % self.port,
                         "SINKONCE_ADMIN_LISTEN": "127.0.0.1:%d" % self.admin_port,
                         "SINKONCE_DATA_DIR": self.data_dir, "SINKONCE_LEDGER_MAX": "256MiB"}
        if IS_TLS:
            for port in ("LISTEN", "ADMIN"):
                self.settings["SINKONCE_%s_CERT_FILE" % port] = papers.server.certificate
                self.settings["SINKONCE_%s_KEY_FILE" % port] = papers.server.key
        self.settings.update(env or {})
        self.process = None
        self.context = papers.context if IS_TLS else None  # for both ports, until a test says otherwise

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % ("https" if self.context else "http", self.port)

    def environment(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("SINKONCE_")}
        env.update({name: value for name, value in self.settings.items() if value is not None})
        return env

    def start(self, is_ready=True, seconds=20, **changes):
        """Start, and wait for /readyz unless told otherwise.  CHANGES are settings, by their full names."""
        self.settings.update(changes)
        self.process = Process(self.wrapper + [self.binary], self.log, env=self.environment())
        if is_ready:
            wait_for(self._is_ready, "sinkonce to be ready", seconds, [self.log])
        return self

    def _is_ready(self):
        if not self.process.is_running():
            raise RuntimeError("sinkonce ended with %s%s" % (self.process.popen.returncode, _tail(self.log)))
        try:
            return request(self.admin_port, "GET", "/readyz", timeout=5, context=self.context)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def run(self, *arguments, seconds=30):
        """One command of the same program under the same settings, to its end."""
        return subprocess.run([self.binary, *arguments], env=self.environment(), capture_output=True, text=True,
                              timeout=seconds)

    def kill(self):
        """SIGKILL."""
        return self.process.kill()

    def stop(self):
        """SIGTERM; the exit code."""
        return self.process.stop()

    def close(self):
        if self.process:
            self.process.end()
        self._folder.remove()

    # towards the proxy

    def send(self, method, path, body=None, headers=None, timeout=30):
        return request(self.port, method, path, body, headers, timeout, self.context)

    def post(self, path, body, headers=None, timeout=30):
        return self.send("POST", path, body, {"Content-Type": "application/json", **(headers or {})}, timeout)

    # towards the admin port

    def admin(self, method, path, document=None):
        """(status, decoded JSON or text)"""
        body, headers = None, {}
        if document is not None:
            body, headers = json.dumps(document).encode(), {"Content-Type": "application/json"}
        status, _, answer = request(self.admin_port, method, path, body, headers, context=self.context)
        try:
            return status, json.loads(answer)
        except ValueError:
            return status, answer.decode(errors="replace")

    def metrics(self):
        """{name or name{labels}: value}; what is told apart by topic alone also stands there as its sum."""
        status, text = self.admin("GET", "/metrics")
        if status != 200:
            raise RuntimeError("/metrics: %d" % status)
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        found = {name: float(value) for name, value in lines}
        for name, value in list(found.items()):
            if re.fullmatch(r'\w+\{topic="[^"]*"\}', name):
                bare = name.split("{", 1)[0]
                found[bare] = found.get(bare, 0) + value
        return found

    def metric(self, name):
        """The sum of a metric over its labels."""
        found = self.metrics()
        if name in found:
            return found[name]
        return sum(value for full, value in found.items() if full.split("{", 1)[0] == name)

    def _list(self, path, field):
        """All entries of a paged list, whatever the page size."""
        entries, after = [], None
        while True:
            status, page = self.admin("GET", path + ("&after=%s" % after if after is not None else ""))
            if status != 200:
                raise RuntimeError("%s: %d %s" % (path, status, page))
            found = page if isinstance(page, list) else page.get(field, [])
            entries += found
            after = page.get("next") if isinstance(page, dict) else None
            if not found or after is None:
                return entries

    def in_doubt(self, topic=None):
        """The rows of the list: dictionaries with id, topic, partition, first, last, records, cause and more."""
        return self._list("/in-doubt?limit=1000" + ("&topic=" + topic if topic else ""), "in_doubt")

    def doubt_keys(self, topic=None):
        return sorted(checker.doubt_keys(self.in_doubt(topic)))

    def resolve_row(self, doubt_id, is_applied, reason="the target's journal"):
        """Resolve one row of the list by its id."""
        return self.admin("POST", "/in-doubt/%s" % doubt_id, {"resolution": _resolution(is_applied), "reason": reason})

    def resolve(self, record_key, is_applied, reason="the target's journal"):
        """Resolve one record by a filter."""
        topic, partition, offset = record_key.split("/")
        return self.resolve_run(topic, int(partition), int(offset), int(offset), is_applied, reason)

    def resolve_run(self, topic, partition, first, last, is_applied, reason="the target's journal"):
        """Resolve the records from FIRST to LAST, all of them in doubt, by a filter."""
        return self.admin("POST", "/in-doubt", {
            "resolution": _resolution(is_applied), "reason": reason, "expect_count": last - first + 1, "topic": topic,
            "partition": partition, "from": first, "to": last})

    def conflicts(self):
        return self._list("/conflicts?limit=1000", "conflicts")

    def decide(self, conflict_id, decision, reason="a test"):
        """DECISION is same or new-topic."""
        return self.admin("POST", "/conflicts/%s" % conflict_id, {"decision": decision, "reason": reason})

    def record_state(self, record_key):
        """What the ledger says of one record, for instance applied or in-doubt."""
        status, answer = self.admin("GET", "/records?topic=%s&partition=%s&offset=%s" % tuple(record_key.split("/")))
        if status != 200:
            raise RuntimeError("/records: %d %s" % (status, answer))
        return answer["state"]


if __name__ == "__main__":
    sys.exit("a module for tests, not a program")
