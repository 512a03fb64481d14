#!/usr/bin/env python3
"""A target whose connections are never completed costs its requests their time, and nothing else: nothing is sent, nothing
is in doubt, and once it listens again it is served.
"""

import socket
import threading

import harness
from harness import PATIENCE

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class DeafTarget:
    """Listens, and its queue is full: the kernel drops what would connect."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(self.listener.getsockname())
            self.fillers.append(filler)

    def listen(self):
        """From now on every connection is taken and every request answered."""
        for filler in self.fillers:
            filler.close()
        self.listener.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    @staticmethod
    def _answer(connection):
        """Head and body of a request may come apart; the body is one record, and its end is its brace."""
        waiting = b""
        with connection:
            try:
                while piece := connection.recv(65536):
                    waiting += piece
                    if b"__offset" in waiting and waiting.endswith(b"}"):
                        waiting = b""
                        connection.sendall(ANSWER)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        for filler in self.fillers:
            filler.close()


class Test(harness.Scenario):
    is_journal_checked = False

    def test_A1_C_10_04_connections_that_are_never_completed_leave_nothing_behind(self):
        deaf = DeafTarget()
        self.addCleanup(deaf.close)
        self.serve(TARGET=deaf.url, CONNECT_TIMEOUT="150ms", WORKERS="1")
        for offset in (1, 2, 1, 3):  # each is tried twice (SINKONCE_CONNECT_RETRIES), on new sockets with old numbers
            self.assert_own(self.send(offset), 503, "refused", "target-unreachable")
        self.assertEqual((self.state(1), self.doubts()), ("absent", []))
        deaf.listen()
        harness.wait_for(lambda: self.send(1).status == 200, "the target to be reached", PATIENCE, [self.proxy.log])
        self.assertEqual([self.send(offset).status for offset in (1, 2, 3)], [200] * 3)
        self.assertEqual([self.state(offset) for offset in (1, 2, 3)], ["applied"] * 3)


if __name__ == "__main__":
    harness.main()
