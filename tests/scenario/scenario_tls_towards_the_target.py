#!/usr/bin/env python3
"""A target behind TLS: who is trusted, what is shown to it, and that nothing is sent where the handshake fails (A1), or where
the ledger fails while it lasts.
"""

import errno
import os
import socket
import ssl
import threading

import disk
import harness
import pki
from authority import AuthorityScenario
from harness import PATIENCE, wait_for


class Door:
    """TLS before the counting target: each connection is decrypted and passed on.  Remembers who came."""

    def __init__(self, test, pair, authority=None):
        self.target_port = test.target.port
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pair.certificate, pair.key)
        if authority:
            self.context.load_verify_locations(authority.certificate)
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.shown, self.failed, self.open = [], [], []  # names of client certificates; handshakes
        self.may_enter, self.waiting_count = threading.Event(), 0
        self.may_enter.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = "https://127.0.0.1:%d" % self.port
        threading.Thread(target=self._accept, daemon=True).start()
        test.addCleanup(self.close)

    def close(self):
        self.listener.close()
        for one in self.open:
            one.close()

    def _accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw):
        self.waiting_count += 1
        self.may_enter.wait(60)
        try:
            outside = self.context.wrap_socket(raw, server_side=True)
        except OSError as error:
            self.failed.append(str(error))
            return
        subject = dict(pair[0] for pair in (outside.getpeercert() or {}).get("subject", ()))
        self.shown.append(subject.get("commonName"))
        inside = socket.create_connection(("127.0.0.1", self.target_port))
        self.open += [outside, inside]
        threading.Thread(target=self._pour, args=(inside, outside), daemon=True).start()
        self._pour(outside, inside)

    @staticmethod
    def _pour(from_, to):
        try:
            while data := from_.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            pass


class Test(AuthorityScenario):
    settings = {"CONNECT_RETRIES": "0"}

    def door(self, pair=None, **arguments):
        return Door(self, pair or self.ours.issue("target"), **arguments)

    def assert_not_sent(self, words, **settings):
        """A1: nothing left, nothing is remembered, and the log says why in WORDS."""
        self.serve(**settings)
        answer = self.send(1)
        self.assert_own(answer, 503, "refused", "target-unreachable")
        self.assertEqual((self.state(1), self.target.stats()["requests"]), ("absent", 0))
        self.assert_metric('target_errors_total{cause="tls"}', 1)
        line = wait_for(lambda: next((line for line in self.log().splitlines() if '"target.error"' in line), None),
                        "the log to say why", PATIENCE, [self.proxy.log])  # it is told after the answer
        self.assertIn('"cause":"tls"', line)
        self.assertIn(words, line)

    def test_a_target_that_an_authority_of_ours_has_signed_is_spoken_to_on_one_connection(self):
        door = self.door()
        self.serve(TARGET=door.url, TARGET_CA_FILE=self.ours.certificate, WORKERS="1", TARGET_IDLE="60s")
        for offset in range(5):
            self.assertEqual(self.send(offset).status, 200)
        self.assertEqual((len(door.shown), len(self.target.lines())), (1, 5))
        self.assertEqual(self.proxy.metric("sinkonce_target_connects_total"), 1)
        self.assertEqual(self.proxy.metric("sinkonce_target_unverified"), 0)

    def test_A1_an_authority_that_is_not_ours_is_not_trusted(self):
        self.assert_not_sent("unable to get local issuer certificate", TARGET=self.door().url,
                             TARGET_CA_FILE=pki.Authority(self.folder, "other").certificate)

    def test_A1_the_systems_authorities_do_not_know_ours(self):
        self.assert_not_sent("certificate", TARGET=self.door().url)

    def test_A1_a_certificate_for_another_name_is_not_taken(self):
        door = self.door(self.ours.issue("elsewhere", names="DNS:elsewhere.example"))
        self.assert_not_sent("subject name", TARGET=door.url, TARGET_CA_FILE=self.ours.certificate)

    def test_A1_a_certificate_that_has_expired_is_not_taken(self):
        door = self.door(self.ours.issue("old", begin=-9, end=-2))
        self.assert_not_sent("certificate has expired", TARGET=door.url, TARGET_CA_FILE=self.ours.certificate)

    def test_without_verification_any_certificate_is_taken_loudly(self):
        door = self.door(self.ours.issue("old", names="DNS:elsewhere.example", begin=-9, end=-2))
        self.serve(TARGET=door.url, TARGET_VERIFY="off", LOG_LEVEL="warn")
        self.assertEqual((self.send(1).status, self.applied(1)), (200, 1))
        self.assertEqual(self.proxy.metric("sinkonce_target_unverified"), 1)
        self.assertIn("SINKONCE_TARGET_VERIFY=off: anybody on the way can be the target", self.log())
        warnings = self.proxy.admin("GET", "/status")[1]["warnings"]
        self.assertTrue([words for words in warnings if "SINKONCE_TARGET_VERIFY is off" in words], warnings)

    def test_a_client_certificate_is_shown_and_its_key_opened_with_the_password(self):
        mine = self.ours.issue("mine", password="opensesame")
        door = self.door(authority=self.ours)
        self.serve(TARGET=door.url, TARGET_CA_FILE=self.ours.certificate, TARGET_CERT_FILE=mine.certificate,
                   TARGET_KEY_FILE=mine.key, TARGET_KEY_PASSWORD="opensesame")
        self.assertEqual((self.send(1).status, door.shown), (200, ["ours-mine"]))
        self.assertNotIn("sesame", self.log())

    def test_C_10_row_08_a_client_certificate_that_is_missing_may_leave_a_doubt_and_never_a_second_send(self):
        door = self.door(authority=self.ours)
        self.serve(TARGET=door.url, TARGET_CA_FILE=self.ours.certificate)
        self.assertEqual(self.send(1).status, 503)
        wait_for(lambda: door.failed, "the target to see it", PATIENCE)
        self.assertIn("did not return a certificate", door.failed[0])
        self.assertEqual(self.target.stats()["requests"], 0)
        self.assertIn(self.state(1), ("in_doubt", "absent"))  # with TLS 1.3 the client writes before it is refused

    def test_after_sighup_new_connections_show_the_new_certificate_and_no_old_one_is_used_again(self):
        first, second = self.ours.issue("first"), self.ours.issue("second", password="opensesame")
        door = self.door(authority=self.ours)
        password = os.path.join(self.folder, "password")
        with open(password, "w") as out:
            out.write("unused")
        self.serve(TARGET=door.url, TARGET_CA_FILE=self.ours.certificate, WORKERS="1", TARGET_IDLE="60s",
                   TARGET_CERT_FILE=self.file("mine.pem", of=first.certificate),
                   TARGET_KEY_FILE=self.file("mine.key", of=first.key), TARGET_KEY_PASSWORD_FILE=password)
        self.assertEqual([self.send(n).status for n in range(2)], [200, 200])
        self.assertEqual(door.shown, ["ours-first"])
        self.target.set(delay=1000, next=1)
        running = self.later(self.send, 2)
        self.held()
        self.file("mine.pem", of=second.certificate)
        self.file("mine.key", of=second.key)
        with open(password, "w") as out:
            out.write("opensesame")
        self.hangup()
        self.assertEqual(running.result().status, 200)
        self.assertEqual([self.send(n).status for n in range(3, 6)], [200, 200, 200])
        self.assertEqual(door.shown, ["ours-first", "ours-second"])
        self.assertEqual(len(self.target.lines()), 6)

    def test_after_sighup_the_new_authorities_decide(self):
        other = pki.Authority(self.folder, "other")
        door = self.door()
        self.serve(TARGET=door.url, TARGET_CA_FILE=self.file("ca.pem", of=other.certificate))
        self.assertEqual((self.send(1).status, self.state(1)), (503, "absent"))
        self.file("ca.pem", of=self.ours.certificate)
        self.hangup()
        wait_for(lambda: self.send(1).status == 200, "the target to be trusted", PATIENCE)
        self.assertEqual(self.applied(1), 1)


class Stopped(disk.Ordered, AuthorityScenario):
    def test_what_was_stopped_is_told_the_ledgers_failure_although_the_ledger_is_back(self):
        door = Door(self, self.ours.issue("target"))
        door.may_enter.clear()
        self.serve(WORKERS="1", TARGET=door.url, TARGET_CA_FILE=self.ours.certificate, CONNECT_TIMEOUT="60s")
        running = self.later(self.send, 1)
        wait_for(lambda: door.waiting_count, "the handshake", PATIENCE, [self.proxy.log])
        self.disk.order(0, errno.EIO)
        self.assert_own(self.send(2), 503, "refused", "ledger-failed")
        self.disk.order(disk.Disk.HANGS, 0)
        wait_for(self.disk.late_count, "the ledger to try again", PATIENCE, [self.proxy.log])
        door.may_enter.set()
        wait_for(lambda: door.shown, "the end of the handshake", PATIENCE, [self.proxy.log])
        self.assertEqual(self.proxy.send("GET", "/in")[0], 200)  # the loop has turned
        self.assertTrue(running.is_running())
        self.disk.order(0, 0)
        self.assert_own(running.result(), 503, "refused", "ledger-failed")
        self.assertEqual([self.state(offset) for offset in (1, 2)], ["absent", "absent"])
        self.assertEqual([self.send(offset).status for offset in (1, 2)], [200, 200])
        self.assertEqual([self.applied(offset) for offset in (1, 2)], [1, 1])


if __name__ == "__main__":
    harness.main()
