#!/usr/bin/env python3
"""A ledger that is locked, lost, damaged or made for something else is refused at start with a sentence that says what
to do, and nothing listens.
"""

import fcntl
import os
import shutil
import socket

import harness

EX_TEMPFAIL, EX_IOERR, EX_CONFIG = 75, 74, 78


class Test(harness.Scenario):
    def refused(self, code, *words, **changes):
        """Start with CHANGES: it must end with CODE and say WORDS."""
        kept = dict(self.proxy.settings)
        with open(self.proxy.log, errors="replace") as log:
            log.seek(0, os.SEEK_END)
            self.proxy.start(is_ready=False, **{"SINKONCE_" + name: value for name, value in changes.items()})
            self.assertEqual(self.proxy.process.wait(), code)
            said = log.read()
        self.proxy.settings = kept
        for word in words:
            self.assertIn(word, said)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.proxy.port), timeout=5)

    def test_Z_12_another_scope_on_the_same_ledger_is_refused(self):
        self.serve(SCOPE="payments")
        self.send(1)
        self.proxy.kill()
        self.refused(EX_IOERR, "payments", SCOPE="refunds")
        self.proxy.start()
        self.assertTrue(self.send(1).is_replayed)

    def test_Z_12_another_target_on_the_same_ledger_is_refused(self):
        self.serve()
        self.send(1)
        self.proxy.kill()
        url = self.target.url.replace("127.0.0.1", "localhost")
        self.refused(EX_IOERR, self.target.url, url, "SINKONCE_TARGET_WAS", TARGET=url)
        self.refused(EX_IOERR, "SINKONCE_TARGET_WAS", TARGET=url, TARGET_WAS=self.target.url + "/v2")
        self.proxy.start(SINKONCE_TARGET=url, SINKONCE_TARGET_WAS=self.target.url + "/")
        self.assertTrue(self.send(1).is_replayed)
        events = self.proxy.admin("GET", "/events")[1]["events"]
        self.assertTrue(any("it was " + self.target.url in event["detail"] for event in events), events)

    def test_Z_12_two_scopes_share_no_keys(self):
        self.serve(SCOPE="one")
        other = harness.sinkonce.Sinkonce(self.target.url, env={"SINKONCE_SCOPE": "two"})
        self.addCleanup(other.close)
        other.start()
        self.allowed_twice = ["orders/0/1"]
        self.assertEqual(self.send(1).status, 200)
        status, headers, _ = other.post("/in", harness.record("orders", 0, 1))
        self.assertEqual((status, headers.get("sinkonce-outcome"), self.applied(1)), (200, None, 2))

    def test_who_only_looks_at_the_folder_keeps_no_start_away(self):
        self.serve()
        self.send(1)
        self.proxy.kill()
        with open(os.path.join(self.proxy.data_dir, "sinkonce.lock")) as lock, open(self.proxy.log) as log:
            log.seek(0, os.SEEK_END)
            fcntl.flock(lock, fcntl.LOCK_SH)  # as sinkonce check does
            self.proxy.start(is_ready=False)
            said = []
            harness.wait_for(lambda: said.append(log.read()) or "server.start" in "".join(said), "the start to begin")
        harness.wait_for(self.proxy._is_ready, "sinkonce to be ready", harness.PATIENCE, [self.proxy.log])
        self.assertTrue(self.send(1).is_replayed)

    def test_Z_13_L_07_a_missing_ledger_refuses_to_start_when_set_so(self):
        self.serve()
        self.send(1)
        self.proxy.kill()
        kept = self.proxy.data_dir + ".kept"
        os.rename(self.proxy.data_dir, kept)
        os.makedirs(self.proxy.data_dir)
        self.refused(EX_IOERR, "no ledger", LEDGER_MISSING="refuse")
        self.assertFalse([name for name in os.listdir(self.proxy.data_dir) if name.endswith(".mdb")])
        shutil.rmtree(self.proxy.data_dir)
        os.rename(kept, self.proxy.data_dir)
        self.proxy.start(SINKONCE_LEDGER_MISSING="refuse")
        self.assertTrue(self.send(1).is_replayed)

    def test_Z_13_a_new_ledger_is_told_loudly(self):
        self.serve()
        with open(self.proxy.log) as log:
            self.assertIn('"ledger.created"', log.read())
        self.assertTrue(any("less than a day" in text for text in self.proxy.admin("GET", "/status")[1]["warnings"]))
        self.assertEqual(len(self.events("ledger.created")), 1)

    def test_L_08_a_second_process_on_the_same_ledger_is_refused_and_the_first_goes_on(self):
        self.serve()
        other = harness.sinkonce.Sinkonce(self.target.url, env={"SINKONCE_DATA_DIR": self.proxy.data_dir})
        self.addCleanup(other.close)
        other.start(is_ready=False)
        self.assertEqual(other.process.wait(), EX_TEMPFAIL)
        self.assertEqual(self.send(1).status, 200)

    def test_a_damaged_ledger_is_refused_and_left_as_it_is(self):
        self.serve()
        self.send(1)
        self.proxy.kill()
        path = os.path.join(self.proxy.data_dir, "ledger.mdb")
        with open(path, "rb") as ledger:
            whole = ledger.read()
        for content in (b"", b"not a ledger", os.urandom(65536), b"\0" * 65536):
            with open(path, "wb") as ledger:
                ledger.write(content)
            self.refused(EX_IOERR, "ledger")
            with open(path, "rb") as ledger:
                self.assertEqual(ledger.read(), content)
        with open(path, "wb") as ledger:
            ledger.write(whole)
        self.proxy.start()
        self.assertTrue(self.send(1).is_replayed)

    def test_a_folder_that_is_not_there_or_not_a_folder_is_refused(self):
        self.serve()
        self.proxy.kill()
        self.refused(EX_IOERR, "folder", DATA_DIR="/nonexistent/sinkonce")
        self.refused(EX_IOERR, DATA_DIR="/dev/null")
        self.proxy.start()

    def test_wrong_settings_are_told_all_at_once(self):
        self.serve()
        self.proxy.kill()
        self.refused(EX_CONFIG, "SINKONCE_MODE", "SINKONCE_WAIT", "SINKONCE_TARGT", "SINKONCE_TARGET",
                     MODE="enforced", WAIT="5", TARGT="x")
        self.proxy.start()

    def test_a_port_that_is_taken_ends_the_start(self):
        self.serve()
        self.proxy.kill()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.proxy.start(is_ready=False, SINKONCE_LISTEN="127.0.0.1:%d" % taken.getsockname()[1])
            self.assertEqual(self.proxy.process.wait(), 69)
        self.proxy.start(SINKONCE_LISTEN="127.0.0.1:%d" % self.proxy.port)


if __name__ == "__main__":
    harness.main()
