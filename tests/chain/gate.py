"""A gate in front of any target that answers over TCP.  It passes the bytes, and spoils some of the answers that say
"done": when they come, the target has applied what it was told, and whoever waits for them does not know.

    gate.cut_every = 9      each 9th such answer is swallowed, and its connection reset
    gate.hold_every = 13    each 13th is kept back for HOLD_SECONDS, longer than the client waits
    gate.holds_all = True   each is kept back until this is False again
"""

import select
import socket
import struct
import threading
import time

HOLD_SECONDS = 2.5


class Gate:
    def __init__(self, target_port, done):
        """DONE: the bytes by which such an answer is known; they come in one piece."""
        self.target_port, self.done = target_port, done
        self.cut_every = self.hold_every = 0
        self.holds_all = False
        self.lock = threading.Lock()
        self.count = self.cuts = self.holds = self.waiting = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.holds_all = False
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        """Both directions on one thread: a socket that another thread reads from would not be reset by its close."""
        try:
            with client, socket.create_connection(("127.0.0.1", self.target_port)) as target:
                for one in (client, target):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while self._pass(client, target):
                    pass
        except OSError:
            pass

    def _pass(self, client, target):
        """Whether the connection lives on."""
        for source in select.select([client, target], [], [])[0]:
            data = source.recv(1 << 16)
            if not data or (source is target and not self._may_pass(data, client)):
                return False
            (target if source is client else client).sendall(data)
        return True

    def _may_pass(self, data, client):
        """Whether an answer may pass; comes back when it may."""
        if self.done not in data:
            return True
        with self.lock:
            self.count += 1
            is_cut = self.cut_every and self.count % self.cut_every == 0
            is_held = self.holds_all or (self.hold_every and self.count % self.hold_every == 0)
            self.cuts += bool(is_cut and not is_held)
            self.holds += bool(is_held)
        if is_held:
            self._hold()
        elif is_cut:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        return True

    def _hold(self):
        with self.lock:
            self.waiting += 1
        limit = time.monotonic() + HOLD_SECONDS
        while self.holds_all or time.monotonic() < limit:
            time.sleep(0.02)
        with self.lock:
            self.waiting -= 1
