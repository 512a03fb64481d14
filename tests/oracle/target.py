"""The target of the oracle: takes batches of every dialect, does wrong by chance, writes each step into the history first,
and can be asked for the truth about one record.
"""

import fcntl
import random
import select
import socket
import struct
import termios
import threading
import time

from batch_target import MAX_LINE, BatchTarget, Reply, Seen, body_read, is_success, reset
import sinkonce

TIMEOUT_MS = 800  # SINKONCE_TARGET_TIMEOUT of all runs
LATE_SECONDS = 0.35
CUTS = ("answer", "status", "head", "head", "body")
STALL_SECONDS = 10


class Faults:
    """What goes wrong, by chance; RATE is the share of writes that meet something."""

    def __init__(self, seed, rate, is_whole):
        self.chance, self.lock, self.rate = random.Random("faults/%d" % seed), threading.Lock(), rate
        self.is_on, self.is_clear = True, False
        self.is_whole = is_whole  # nothing is applied in part
        self.pad = b"r" * self.chance.choice((0, 0, 900, 3000))

    def _some(self, seen):
        """What a target that died half-way has applied: the first records."""
        if self.is_whole:
            return self.chance.choice((True, False))
        count = self.chance.randrange(len(seen.keys) + 1)
        return set(seen.keys[:count])

    def __call__(self, seen):
        with self.lock:
            if not self.is_on:
                return Reply()
            return self._wrong(seen) if self.chance.random() < self.rate else self._right(seen)

    def _right(self, seen):
        body = self.pad if not (seen.is_bulk or seen.is_collector or not self.pad) else None
        pause = self.chance.choice((0, 0, 0, 0.004, 0.02, 0.05))
        reply = Reply(body=body, held=pause, is_late=self.chance.random() < 0.5)
        reply.is_shy = self.chance.random() < 0.5
        return reply

    def _wrong(self, seen):
        kind = self.chance.choice(("refused", "unknown", "cut", "cut", "cut", "slow", "stall", "items", "close", "torn"))
        if kind == "refused":
            return Reply(status=self.chance.choice((400, 404, 409, 422, 429, 501, 503, 503, 302)))
        if kind == "unknown":
            return Reply(status=self.chance.choice((500, 502, 504)), applied=self._some(seen))
        if kind == "slow":
            return Reply(held=self.chance.choice((0.05, 0.1, 0.2)), is_late=self.chance.random() < 0.5)
        if kind == "stall":
            return Reply(cut=self.chance.choice(("answer", "status", "head")), end="stall", applied=self._some(seen))
        if kind == "items" and seen.is_bulk:
            return Reply(items={key: self.chance.choice((400, 429, 429, 503, 500))
                                for key in seen.keys if self.chance.random() < 0.3})
        if kind == "close":
            return Reply(fields=["Connection: close"], end="close")
        if kind == "torn":
            return Reply(cut="torn", end=self.chance.choice(("rst", "close")))
        cut = self.chance.choice(CUTS)
        is_sent = cut == "body" and not seen.is_bulk and not seen.is_collector
        return Reply(cut=cut, end=self.chance.choice(("rst", "close", "close")), applied=None if is_sent else self._some(seen))


class Carrier:
    """One connection, and what it is doing: idle, reading or answering KEYS."""

    def __init__(self, one):
        self.socket, self.state, self.keys = one, "idle", ()

    def unread(self):
        if self.socket.fileno() < 0:
            return 0
        return struct.unpack("i", fcntl.ioctl(self.socket, termios.FIONREAD, b"\0\0\0\0"))[0]


class Target(BatchTarget):
    def __init__(self, history, faults):
        super().__init__()
        self.history, self.faults, self.carriers = history, faults, set()

    # connections

    def _accept(self, listener):
        while True:
            try:
                select.select([listener], [], [])
                with self.lock:  # never between the queue and the table
                    one, _ = listener.accept()
                    carrier = Carrier(one)
                    self.carriers.add(carrier)
                    self.open_sockets.add(one)
            except (OSError, ValueError):
                return
            threading.Thread(target=self._carry, args=(carrier,), daemon=True).start()

    def _carry(self, carrier):
        one = carrier.socket
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with one.makefile("rb") as source:
                while self._request(carrier, source):
                    pass
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.carriers.discard(carrier)
                self.open_sockets.discard(one)
            one.close()

    def _request(self, carrier, source):
        select.select([carrier.socket], [], [])
        with self.lock:
            carrier.state = "reading"
        line = source.readline(MAX_LINE).decode("latin-1").split()
        if len(line) != 3:
            return False
        fields = []
        while True:
            field = source.readline(MAX_LINE).decode("latin-1").rstrip("\r\n")
            if not field:
                break
            fields.append(tuple(field.split(": ", 1)) if ": " in field else (field.rstrip(":"), ""))
        if line[1].startswith("/probe/"):
            return self._probed(carrier, line[1][len("/probe/"):])
        body = body_read(source, fields)
        if body is None:
            return False
        seen = Seen(line[0], line[1], fields, body, 0)
        with self.lock:
            carrier.state, carrier.keys = "answering", seen.keys
        number = self.history.number()
        self.history.write("attempt", id=number, keys=[key or "?" + seen.path for key in seen.keys])
        is_kept = self._told(carrier, seen, number, self.faults(seen))
        with self.lock:
            carrier.state, carrier.keys = "idle", ()
        return is_kept

    def _told(self, carrier, seen, number, reply):
        """Apply and answer; False: the connection has ended."""
        began = time.monotonic()
        if not reply.is_late:
            self._take(seen, number, reply)
        if reply.held:
            time.sleep(reply.held)
        if reply.is_late:
            if getattr(reply, "is_shy", False) and is_left(carrier.socket):
                reply = Reply(cut="torn")
            self._take(seen, number, reply)
        said, special = verdict(seen, reply)
        is_late = time.monotonic() - began > LATE_SECONDS
        details = {"keys": special, "late": is_late, "cut": reply.cut and "%s-%s" % (reply.cut, reply.end)}
        self.history.write("reply", id=number, r=said, **{name: value for name, value in details.items() if value})
        head, body = self._bytes(seen, reply)
        if reply.cut is None:
            carrier.socket.sendall(head + body)
            return "Connection: close" not in reply.fields
        carrier.socket.sendall(self._piece(reply.cut, head, body))
        if reply.end == "rst":
            reset(carrier.socket)
        elif reply.end == "stall":
            select.select([carrier.socket], [], [], STALL_SECONDS)
        return False

    @staticmethod
    def _piece(cut, head, body):
        """What still leaves of an answer.  libcurl calls a head well that ends before its length."""
        if cut == "head":
            return head[:head.index(b"\r\n") + 7]
        return {"status": head[:10], "body": head + body[:len(body) // 2]}.get(cut, b"")

    def _take(self, seen, number, reply):
        taken = {element.key or "?" + seen.path: sinkonce.journal_hash(element.data)
                 for element in seen.elements if self._is_applied(seen, reply, element)}
        with self.lock:
            self.counts.update(taken.keys())
        if taken:
            self.history.write("apply", id=number, keys=taken)

    def _is_applied(self, seen, reply, element):
        return reply.cut != "torn" and super()._is_applied(seen, reply, element)

    # the truth

    def _is_queued(self):
        return self.listener.fileno() >= 0 and bool(select.select([self.listener], [], [], 0)[0])

    def has_read_all(self):
        """Nobody sends any more: has every request that was sent been read?"""
        with self.lock:
            return not self._is_queued() and all(carrier.state == "answering" for carrier in self.carriers)

    def truth(self, key):
        """How often KEY took effect; None: a request that holds it may still be on its way."""
        with self.lock:
            if self._is_queued():
                return None
            for carrier in self.carriers:
                if carrier.state == "reading" or (carrier.state == "idle" and carrier.unread()) or key in carrier.keys:
                    return None
            return self.counts[key]

    def _probed(self, carrier, key):
        with self.lock:
            carrier.state = "idle"  # nothing of a write is left in it
        is_clear = self.faults.is_clear or self.faults.chance.random() < 0.9
        count = self.truth(key) if is_clear else None
        status = {None: 409, 0: 404}.get(count, 200)
        self.history.write("probe", key=key, said={409: "unclear", 404: "no", 200: "yes"}[status])
        carrier.socket.sendall(b"HTTP/1.1 %d Status\r\nContent-Length: 0\r\n\r\n" % status)
        return True

    # the nemesis

    def close_idle(self):
        with self.lock:
            idle = [carrier.socket for carrier in self.carriers if carrier.state == "idle"]
        for one in idle:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def listen_again(self):
        """After refuse(): on the same port."""
        self.start()


def is_left(one):
    """Has the other side ended the connection?"""
    try:
        return select.select([one], [], [], 0)[0] and not one.recv(1, socket.MSG_PEEK)
    except OSError:
        return True


def of_status(status):
    if is_success(status):
        return "ok"
    return "fail" if 300 <= status <= 499 or status in (501, 503, 505) else "info"


def verdict(seen, reply):
    """What the bytes of the answer prove: (of all, of the records where it differs)."""
    if reply.cut in ("answer", "status", "head", "torn"):
        return "info", None
    if reply.cut == "body" and (seen.is_bulk or seen.is_collector) and is_success(reply.status):
        return "info", None
    said = of_status(reply.status)
    if not seen.is_bulk or said != "ok":
        return said, None
    return said, {key: of_status(status) for key, status in reply.items.items()}
