"""A target that takes batches, for scenarios: keeps each request whole, applies its records one by one and answers in the
dialect of the request.  It runs in the test's own process, so that a test can say what it does with which record.

    target.next(Reply(items={"orders/0/101": 429}))     # the next write: this action of the bulk fails
    target.choose = lambda seen: Reply(status=503)       # every write that next() says nothing about

Its parsers are Python's and share no line with the proxy's: one mistake cannot hide on both sides.
"""

import collections
import json
import re
import socket
import struct
import threading
import time
import zlib

import sinkonce
import zstd

MAX_LINE = 1 << 16
KEY_NAMES = [  # where products put topic, partition and offset
    (("__topic",), ("__partition",), ("__offset",)),
    (("fields", "kafka_topic"), ("fields", "kafka_partition"), ("fields", "kafka_offset")),
    (("metadata", "__topic"), ("metadata", "__partition"), ("metadata", "__offset")),
    (("message", "__topic"), ("message", "__partition"), ("message", "__offset")),
    (("doc", "__topic"), ("doc", "__partition"), ("doc", "__offset")),
    tuple(("attributes", "collector.metadata.kafka." + name) for name in ("topic", "partition", "offset")),
    (("topic",), ("partition",), ("offset",)),
    (("t",), ("p",), ("o",)),
]
LISTS = ("rows", "data", "entries", "logs")  # arrays inside of envelopes
VALUE_END = re.compile(r"[\s,;]*")
COMPOSITE = re.compile(r"(.+)\+(\d+)\+(\d+)$")
_decode = json.JSONDecoder().raw_decode


class Element:
    """One record of a request: its key or None, its own bytes, the action line in front of it in a bulk request."""

    def __init__(self, key, data, value=None, action=None):
        self.key, self.data, self.value, self.action = key, data, value, action


class Reply:
    """What to do with one write.  ITEMS: statuses of single records of a bulk, or of Dapr's entries, by key.  APPLIED: None
    as the statuses say, else True, False or a set of keys.  CUT: answer, status, head or body, and then END.  HELD: an Event
    before which nothing happens; LATE: the records are applied after it, not before."""

    def __init__(self, status=200, body=None, fields=(), items=None, applied=None, cut=None, end="close", held=None,
                 is_late=False, ack_id=None):
        self.status, self.body, self.fields, self.items = status, body, list(fields), items or {}
        self.applied, self.cut, self.end, self.held, self.is_late, self.ack_id = applied, cut, end, held, is_late, ack_id


class Seen:
    """A request as it came, and what lies in it."""

    def __init__(self, method, path, fields, body, number):
        self.method, self.path, self.fields, self.body, self.number = method, path, fields, body, number
        try:
            self.opened = opened(body, self.one("content-encoding"))
        except (ValueError, zlib.error):  # some tests send what cannot be opened
            self.opened = body
        self.elements = elements_of(self)

    def one(self, name):
        found = [value for field, value in self.fields if field.lower() == name]
        return found[0] if found else None

    @property
    def line(self):
        return "%s %s" % (self.method, self.path)

    @property
    def keys(self):
        return [element.key for element in self.elements]

    @property
    def is_write(self):
        return self.method in ("POST", "PUT", "PATCH", "DELETE")

    @property
    def is_bulk(self):
        return self.path.split("?")[0].rstrip("/").endswith("/_bulk")

    @property
    def is_collector(self):
        return self.path.startswith("/services/collector") and not self.is_ack_poll

    @property
    def is_ack_poll(self):
        return self.path.split("?")[0] == "/services/collector/ack"

    @property
    def is_dapr(self):
        return any(isinstance(element.value, dict) and "entryId" in element.value for element in self.elements)

    def __repr__(self):
        return "%s %r" % (self.line, self.opened[:300])


def opened(body, coding):
    """The body without its content coding."""
    if not body or coding in (None, "identity"):
        return body
    if coding == "gzip":
        return zlib.decompress(body, 31)
    if coding == "deflate":
        try:
            return zlib.decompress(body)
        except zlib.error:
            return zlib.decompress(body, -15)
    return zstd.opened(body) if coding == "zstd" else body


def packed(body, coding):
    """The counterpart; deflate-raw is what some senders call deflate."""
    window = {"gzip": 31, "deflate": 15, "deflate-raw": -15}.get(coding)
    if window is not None:
        packer = zlib.compressobj(6, zlib.DEFLATED, window)
        return packer.compress(body) + packer.flush()
    return zstd.packed(body) if coding == "zstd" else body


# ---- what lies in a request


def at_path(value, names):
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def key_of_value(value):
    for topic, partition, offset in KEY_NAMES:
        found = [at_path(value, names) for names in (topic, partition, offset)]
        if isinstance(found[0], str) and all(str(one).isdigit() for one in found[1:]):
            return "%s/%s/%s" % tuple(found)
    return None


def key_of_fields(seen):
    for prefix in ("x-kafka-", "__"):
        found = [seen.one(prefix + name) for name in ("topic", "partition", "offset")]
        repeated = [name for name, _ in seen.fields if name.lower() == prefix + "offset"]
        if all(found) and len(repeated) == 1:
            return "%s/%s/%s" % tuple(found)
    partition, offset = seen.one("ce-knativekafkapartition"), seen.one("ce-knativekafkaoffset")
    if partition and offset:
        return "%s/%s/%s" % (seen.one("ce-source").partition("#")[2] or "orders", partition, offset)
    return None


def values_of(text, at, end_mark=None):
    """JSON values from AT on, up to END_MARK or the end: (begin, end, value)."""
    while True:
        at = VALUE_END.match(text, at).end()
        if at >= len(text) or text[at] == end_mark:
            return
        value, end = _decode(text, at)
        yield at, end, value
        at = end


def envelope_begin(text, value):
    """Behind the bracket of a known array inside VALUE, or None."""
    for name in LISTS:
        if isinstance(value, dict) and isinstance(value.get(name), list):
            return text.index("[", text.index('"%s"' % name)) + 1
    return None


def json_values(text):
    begin = VALUE_END.match(text).end()
    if text[begin:begin + 6] == "INSERT":
        begin = text.index("{")
    if text[begin:begin + 1] == "[":
        found = list(values_of(text, begin + 1, "]"))
    else:
        try:
            found = list(values_of(text, begin))
        except ValueError:  # a trailing comma inside
            return list(values_of(text, text.index("[") + 1, "]"))
    inside = envelope_begin(text, found[0][2]) if len(found) == 1 else None
    return found if inside is None else list(values_of(text, inside, "]"))


def bulk_elements(seen):
    lines = seen.opened.split(b"\n")
    at, found = 0, []
    while at < len(lines) and lines[at]:
        action = json.loads(lines[at])
        (kind, meta), = action.items()
        has_source = kind != "delete"
        source = json.loads(lines[at + 1]) if has_source else None
        match = COMPOSITE.match(meta.get("_id", ""))
        key = "%s/%s/%s" % match.groups() if match else key_of_value(source)
        found.append(Element(key, lines[at + 1] if has_source else lines[at], source, (kind, meta)))
        at += 2 if has_source else 1
    return found


def elements_of(seen):
    try:
        if seen.is_bulk:
            return bulk_elements(seen)
        key = key_of_fields(seen)
        if key:
            return [Element(key, seen.opened)]
        text = seen.opened.decode("latin-1")
        return [Element(key_of_value(value), seen.opened[begin:end], value) for begin, end, value in json_values(text)]
    except (ValueError, IndexError, AttributeError, KeyError, RecursionError):
        return [Element(None, seen.opened)] if seen.opened else []


# ---- answers


def is_success(status):
    return 200 <= status < 300


def bulk_item(seen, element, status, number):
    kind, meta = element.action
    index = meta.get("_index") or seen.path.split("/")[1]
    item = {"_index": index, "_type": "_doc", "_id": meta.get("_id") or "made-%d" % number}
    if is_success(status):
        item.update(_version=1, result={"delete": "deleted", "update": "updated"}.get(kind, "created"),
                    _shards={"total": 2, "successful": 1, "failed": 0}, _seq_no=number, _primary_term=1, status=status)
    else:
        kinds = {409: "version_conflict_engine_exception", 429: "es_rejected_execution_exception"}
        item.update(status=status, error={"type": kinds.get(status, "mapper_parsing_exception"), "reason": "a test says so"})
    return {kind: item}


class BatchTarget:
    """Listens from start() to close(); requests, journal and counts are those of its whole life."""

    def __init__(self):
        self.lock = threading.Lock()
        self.seen, self.journal, self.counts = [], [], collections.Counter()
        self.queued, self.choose = collections.deque(), lambda seen: Reply()
        self.acks = {}  # channel: {id: is acknowledged}
        self.with_acks = False
        self.open_sockets, self.waiting, self.active, self.most_active = set(), 0, 0, 0
        self.port, self.listener, self.is_closed = 0, None, False

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def start(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        return self

    def refuse(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def close(self):
        self.is_closed = True
        try:
            self.refuse()
        except OSError:
            pass
        self.drop()

    def drop(self):
        """End every connection, also those that are held."""
        with self.lock:
            ending = list(self.open_sockets)
        for one in ending:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def next(self, *replies):
        self.queued.extend(replies)

    def writes(self):
        with self.lock:
            return [seen for seen in self.seen if seen.is_write]

    def count(self, key):
        return self.counts[key]

    def lines(self):
        with self.lock:
            return list(self.journal)

    def held(self):
        return self.waiting

    # connections

    def _accept(self, listener):
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.open_sockets.add(one)
            threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one):
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with one.makefile("rb") as source:
                while self._exchange(one, source):
                    pass
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.open_sockets.discard(one)
            one.close()

    def _exchange(self, one, source):
        """One request and its answer; False: the connection has ended."""
        line = source.readline(MAX_LINE).decode("latin-1").split()
        if len(line) != 3:
            return False
        fields = []
        while True:
            field = source.readline(MAX_LINE).decode("latin-1").rstrip("\r\n")
            if not field:
                break
            fields.append(tuple(field.split(": ", 1)) if ": " in field else (field.rstrip(":"), ""))
        body = body_read(source, fields)
        if body is None:
            return False
        with self.lock:
            seen = Seen(line[0], line[1], fields, body, len(self.seen))
            self.seen.append(seen)
            reply = self.queued.popleft() if self.queued and seen.is_write and not seen.is_ack_poll else None
            self.active += 1
            self.most_active = max(self.most_active, self.active)
        try:
            return self._answer(one, seen, reply or (self.choose(seen) if seen.is_write else Reply()))
        finally:
            with self.lock:
                self.active -= 1

    def _answer(self, one, seen, reply):
        if not reply.is_late:
            self._apply(seen, reply)
        if reply.held is not None:
            with self.lock:
                self.waiting += 1
            reply.held.wait(60)
            with self.lock:
                self.waiting -= 1
        if reply.is_late:
            self._apply(seen, reply)
        head, body = self._bytes(seen, reply)
        if reply.cut is None:
            one.sendall(head + body)
            return True
        whole = {"answer": b"", "status": head[:10], "head": head[:-6], "body": head + body[:len(body) // 2]}[reply.cut]
        one.sendall(whole)
        if reply.end == "rst":
            reset(one)
        elif reply.end == "stall":
            one.recv(1)
        return False

    # what takes effect

    def _status_of(self, reply, element):
        status = reply.items.get(element.key, reply.status)
        return status if isinstance(status, int) else 200

    def _is_applied(self, seen, reply, element):
        if isinstance(reply.applied, (set, frozenset)):
            return element.key in reply.applied
        if reply.applied is not None:
            return reply.applied
        if not is_success(reply.status):
            return False
        if isinstance(reply.items.get(element.key), str):
            return reply.items[element.key] == "SUCCESS"
        return is_success(self._status_of(reply, element))

    def _apply(self, seen, reply):
        if not seen.is_write or seen.is_ack_poll:
            return
        now = time.monotonic_ns() // 1000000
        with self.lock:
            for element in seen.elements:
                if self._is_applied(seen, reply, element):
                    key = element.key or "/" + seen.path
                    self.journal.append((key, sinkonce.journal_hash(element.data), now))
                    self.counts[key] += 1

    def _bytes(self, seen, reply):
        body, kind = reply.body, None
        if body is None and seen.is_write:
            body, kind = self._success(seen, reply)
        body = body or b""
        fields = ["Content-Length: %d" % len(body)] + (["Content-Type: " + kind] if kind else []) + reply.fields
        head = "HTTP/1.1 %d Status\r\n%s\r\n\r\n" % (reply.status, "\r\n".join(fields))
        return head.encode("latin-1"), b"" if seen.method == "HEAD" else body

    def _success(self, seen, reply):
        if not is_success(reply.status):
            return b"no\n", "text/plain"
        if seen.is_bulk:
            items = [bulk_item(seen, element, reply.items.get(element.key, 201 if element.action[0] != "delete" else 200), number)
                     for number, element in enumerate(seen.elements)]
            errors = any("error" in member for item in items for member in item.values())
            return json.dumps({"took": 3, "errors": errors, "items": items}).encode(), "application/json; charset=UTF-8"
        if seen.is_ack_poll:
            return self._polled(seen), "application/json"
        if seen.is_collector:
            return self._collected(seen, reply), "application/json"
        if seen.is_dapr:
            statuses = [{"entryId": element.value["entryId"], "status": reply.items.get(element.key, "SUCCESS")}
                        for element in seen.elements]
            return json.dumps({"statuses": statuses}).encode(), "application/json"
        return b"ok\n", "text/plain"

    # acknowledgements of the Event Collector

    def _collected(self, seen, reply):
        answer = {"text": "Success", "code": 0}
        channel = seen.one("x-splunk-request-channel")
        if self.with_acks and channel:
            with self.lock:
                ids = self.acks.setdefault(channel, {})
                answer["ackId"] = reply.ack_id if reply.ack_id is not None else len(ids)
                ids[answer["ackId"]] = False
        return json.dumps(answer).encode()

    def _polled(self, seen):
        with self.lock:
            ids = self.acks.get(seen.one("x-splunk-request-channel"), {})
            asked = json.loads(seen.opened)["acks"]
            return json.dumps({"acks": {str(one): ids.get(one, False) for one in asked}}).encode()

    def acknowledge(self, channel):
        with self.lock:
            self.acks[channel] = dict.fromkeys(self.acks.get(channel, {}), True)


def reset(one):
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.shutdown(socket.SHUT_RD)
        one.close()
    except OSError:
        pass


def body_read(source, fields):
    """The body without its transfer coding; None: it never came whole."""
    names = {name.lower(): value for name, value in fields}
    if names.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while True:
            count = int(source.readline(MAX_LINE).split(b";")[0] or b"0", 16)
            body += source.read(count)
            source.readline(MAX_LINE)
            if count == 0:
                return body
    count = int(names.get("content-length", "0"))
    body = source.read(count)
    return body if len(body) == count else None
