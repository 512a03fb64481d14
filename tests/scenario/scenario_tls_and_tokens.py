#!/usr/bin/env python3
"""TLS on both ports, certificates of clients, the connectors' token; all of it read again at SIGHUP, whole or not at all.
"""

import http.client
import os
import signal
import socket
import ssl
import threading

import failpoints
import harness
import pki
from authority import AuthorityScenario
from harness import PATIENCE, Wire, post_bytes, record, sinkonce, wait_for
from scenario_ops_a_probe_resolves_doubts import Probed

BEARER = {"Authorization": "Bearer s3cret"}


class Case(AuthorityScenario):
    def install(self, pair, port="listen"):
        """PAIR's files under names that stay the same: settings for PORT."""
        return {port.upper() + "_CERT_FILE": self.file(port + ".pem", of=pair.certificate),
                port.upper() + "_KEY_FILE": self.file(port + ".key", of=pair.key)}

    def serve_tls(self, pair=None, ports=("listen", "admin"), **settings):
        pair = pair or sinkonce.papers.server
        for port in ports:
            settings = {**self.install(pair, port), **settings}
        contexts = {port: pki.client_context(self.ours) for port in ports}
        self.admin_context = contexts.get("admin")
        self.context = contexts.get("listen")
        return self.serve(**settings)

    def ask(self, offset=1, headers=None, context=None, port=None, method="POST", path="/in"):
        """One record over TLS on a connection of its own: an Answer."""
        return harness.Answer(*sinkonce.request(
            port or self.proxy.port, method, path, record("orders", 0, offset) if method == "POST" else None,
            {"Content-Type": "application/json", **(headers or {})}, PATIENCE, context or self.context))

    def failures(self, reason):
        return self.proxy.metrics()['sinkonce_tls_handshake_failures_total{reason="%s"}' % reason]

    def assert_failure(self, reason, count=1):
        wait_for(lambda: self.failures(reason) == count, "%d failed handshakes: %s" % (count, reason), PATIENCE,
                 [self.proxy.log])

    def wait_log(self, words, count=1):
        wait_for(lambda: self.log().count(words) >= count, "%r in the log" % words, PATIENCE, [self.proxy.log])


class Ports(Case):
    def test_a_record_goes_through_once_and_plain_http_is_refused_and_counted(self):
        self.serve_tls()
        self.assertEqual(self.ask(1).status, 200)
        self.assertTrue(self.ask(1).is_replayed)
        with Wire(self.proxy.port, context=None) as wire:
            wire.send(post_bytes(record("orders", 0, 2)))
            wire.rest()
        self.assert_failure("not_tls")
        self.wait_log("it must use https://")
        self.assertEqual((self.applied(1), self.applied(2)), (1, 0))

    def test_either_port_may_have_tls_alone(self):
        self.serve_tls(ports=("listen",))
        self.assertEqual((self.ask(1).status, self.proxy.admin("GET", "/livez")[0]), (200, 200))

    def test_only_1_2_and_newer_and_only_http_1_1_are_agreed_upon(self):
        self.serve_tls()
        old = pki.client_context(self.ours)
        with_h2 = pki.client_context(self.ours)
        with_h2.set_alpn_protocols(["h2", "http/1.1"])
        only_h2 = pki.client_context(self.ours)
        only_h2.set_alpn_protocols(["h2"])
        old.set_ciphers("DEFAULT:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with Wire(self.proxy.port, context=with_h2) as wire:
            self.assertEqual(wire.socket.tls.selected_alpn_protocol(), "http/1.1")
        for context in (old, only_h2):
            with self.assertRaises(OSError):
                Wire(self.proxy.port, context=context)
        self.assert_failure("other", 2)

    def test_no_session_is_ever_resumed(self):
        self.serve_tls()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = pki.client_context(self.ours)
            context.minimum_version = context.maximum_version = version
            first = context.wrap_socket(socket.create_connection(("127.0.0.1", self.proxy.port)),
                                        server_hostname="127.0.0.1")
            first.sendall(post_bytes(record("orders", 0, 1)))
            first.recv(1)
            session = first.session
            first.close()
            with context.wrap_socket(socket.create_connection(("127.0.0.1", self.proxy.port)), session=session,
                                     server_hostname="127.0.0.1") as second:
                self.assertFalse(second.session_reused)

    def test_H_44_a_handshake_that_drips_or_never_begins_is_ended_at_an_absolute_time(self):
        self.serve_tls(HEAD_TIMEOUT="500ms")
        with Wire(self.proxy.port, context=None) as silent, Wire(self.proxy.port, context=None) as slow:
            slow.send(b"\x16\x03\x01\x02\x00")  # the header of a record that does not come
            self.assertEqual((silent.rest(), slow.rest()), (b"", b""))
        self.assert_failure("timeout", 2)
        self.wait_log("handshake was not done in time")
        self.assertEqual(self.ask(1).status, 200)

    def test_a_peer_that_leaves_in_the_handshake_is_counted(self):
        self.serve_tls()
        Wire(self.proxy.port, context=None).socket.close()
        self.assert_failure("closed")

    def test_H_45_connections_above_the_cap_are_closed_before_a_handshake(self):
        self.serve_tls(MAX_CONNECTIONS="2")
        wires = [Wire(self.proxy.port, context=self.context) for _ in range(2)]
        with self.assertRaises(OSError):
            Wire(self.proxy.port, context=self.context)
        self.assert_metric('http_refused_total{reason="connections"}', 1)
        for n, wire in enumerate(wires):
            wire.send(post_bytes(record("orders", 0, n)))
            self.assertEqual(wire.final().status, 200)
            wire.socket.close()

    def test_an_output_that_ends_with_its_alert_is_a_half_close_and_gets_its_answer(self):
        self.serve_tls()
        with Wire(self.proxy.port, context=self.context) as wire:
            wire.send(post_bytes(record("orders", 0, 1)))
            wire.end_output()
            self.assertEqual(wire.final().status, 200)
            self.assertTrue(wire.is_ended())

    def test_a_body_that_ends_without_the_alert_was_cut_and_is_an_abort(self):
        self.serve_tls()
        wire = Wire(self.proxy.port, context=self.context)
        wire.send(post_bytes(record("orders", 0, 1))[:-1])
        wait_for(lambda: self.proxy.metric("sinkonce_http_body_bytes") > 0, "the body to begin", PATIENCE)
        wire.socket.close()
        self.assert_metric('client_aborts_total{phase="reading"}', 1)
        self.assertEqual((self.state(1), self.target.stats()["requests"]), ("absent", 0))

    def test_bytes_that_are_no_record_end_the_connection_and_nothing_else(self):
        self.serve_tls()
        with Wire(self.proxy.port, context=self.context) as wire:
            wire.send(post_bytes(record("orders", 0, 1))[:-1])
            wire.socket.raw.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
            with self.assertRaises(ssl.SSLError):  # the alert
                wire.rest()
        self.assert_metric('client_aborts_total{phase="reading"}', 1)
        self.assertEqual(self.ask(2).status, 200)

    def test_pipelined_requests_beyond_what_is_read_ahead_are_all_answered(self):
        """Bytes that the library holds already must not be waited for (see the head of conn.c)."""
        self.serve_tls()
        count, pad = 40, "p" * 15000
        with Wire(self.proxy.port, context=self.context) as wire:
            data = b"".join(post_bytes(record("orders", 0, n, pad=pad)) for n in range(count))
            sender = self.later(wire.socket.sendall, data)
            for _ in range(count):
                self.assertEqual(wire.final().status, 200)
            sender.result()
        self.assertEqual(len(self.target.lines()), count)

    def test_what_sigterm_finds_is_finished(self):
        self.serve_tls()
        self.target.set(delay=1000, next=1)
        idle = Wire(self.proxy.port, context=self.context)
        running = self.later(self.ask, 1)
        self.held()
        self.proxy.process.signal(signal.SIGTERM)
        self.assertTrue(idle.is_ended())
        self.assertEqual((running.result().status, self.proxy.process.wait()), (200, 0))


class ClientCertificates(Case):
    def test_only_clients_with_a_certificate_of_the_authority_come_in(self):
        other = pki.Authority(self.folder, "other")
        self.serve_tls(ports=("listen",), LISTEN_CLIENT_CA_FILE=self.ours.certificate)
        good = pki.client_context(self.ours, self.ours.issue("connector"))
        self.assertEqual(self.ask(1, context=good).status, 200)
        for n, pair in enumerate((None, other.issue("stranger"), self.ours.issue("old", begin=-9, end=-2))):
            context = pki.client_context(self.ours, pair)
            with self.assertRaises((OSError, http.client.HTTPException)):
                self.ask(10 + n, context=context)
        self.assert_failure("client_certificate", 3)
        self.assertEqual(self.target.stats()["requests"], 1)

    def test_the_commands_reach_an_admin_port_that_wants_certificates(self):
        pair = sinkonce.papers.server
        mine = self.ours.issue("operator")
        settings = {**self.install(pair, "admin"), "ADMIN_CLIENT_CA_FILE": self.ours.certificate}
        self.admin_context = pki.client_context(self.ours, mine)
        self.serve(**settings)
        self.assertEqual(self.proxy.run("health").returncode, 0)  # it shows the port's own
        done = self.proxy.run("status", "--cert-file", mine.certificate, "--key-file", mine.key)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ready", done.stdout)
        for name in ("CERT_FILE", "KEY_FILE", "CLIENT_CA_FILE"):  # of somebody who has none of them
            self.proxy.settings["SINKONCE_ADMIN_" + name] = None
        address = "https://127.0.0.1:%d" % self.proxy.admin_port
        done = self.proxy.run("status", "--admin", address, "--ca-file", self.ours.certificate)
        self.assertEqual(done.returncode, 69, done)


    def test_the_health_check_needs_no_file_that_the_process_has_in_its_memory(self):
        pair = sinkonce.papers.server
        settings = {**self.install(pair, "admin"), "ADMIN_CLIENT_CA_FILE": self.file("ca.pem", of=self.ours.certificate),
                    "ADMIN_TOKEN_FILE": self.file("token", "s3cret")}
        self.admin_context = pki.client_context(self.ours, self.ours.issue("operator"))
        self.serve(**settings)
        for name in ("admin.pem", "ca.pem", "token"):
            self.file(name, "broken")
        os.unlink(os.path.join(self.folder, "admin.key"))
        os.unlink(os.path.join(self.folder, "token"))
        for words in (("health",), ("health", "--live"), ("health", "--ready")):
            done = self.proxy.run(*words)
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
        path = os.path.join(self.proxy.data_dir, "health.sock")
        self.assertEqual([self.through(path, request) for request in (
            "GET /livez", "GET /readyz?verbose", "GET /status", "GET /metrics", "GET /", "PUT /mode", "POST /livez")],
            [200, 200, 404, 404, 404, 404, 404])
        for name in ("admin.pem", "admin.key", "ca.pem", "token"):
            self.file(name, of={"admin.pem": pair.certificate, "admin.key": pair.key, "ca.pem": self.ours.certificate}.get(name),
                      content="s3cret")
        self.proxy.wrapper = ["sh", "-c", 'umask 0; exec "$0"']
        self.restart()  # what a kill has left of the socket is taken away
        self.assertEqual(self.proxy.run("health").returncode, 0)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        os.unlink(path)
        self.assertEqual(self.proxy.run("health").returncode, 0)  # as before there was one: with the port's own pair
        self.file("admin.key", "broken")
        self.assertEqual(self.proxy.run("health").returncode, 1)
        self.proxy.stop()
        self.assertFalse(os.path.exists(path))
        self.assertEqual(self.proxy.run("health").returncode, 1)

    def through(self, path, request):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(path)
            connection.sendall((request + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                "Content-Length: 0\r\nConnection: close\r\n\r\n").encode())
            return int(connection.makefile("rb").read().split()[1])


class Commands(Case):
    def test_the_commands_trust_the_ports_own_certificate_whatever_names_it_has(self):
        pair = self.ours.issue("elsewhere", names="DNS:sinkonce.example")
        context = ssl.create_default_context(cafile=self.ours.certificate)
        context.check_hostname = False
        self.admin_context = context
        self.serve(**self.install(pair, "admin"))
        for words in (("status",), ("in-doubt",), ("health",)):
            done = self.proxy.run(*words)
            self.assertEqual(done.returncode, 0, (words, done.stderr))
        address = "https://127.0.0.1:%d" % self.proxy.admin_port  # with an authority, its names count
        done = self.proxy.run("status", "--admin", address, "--ca-file", self.ours.certificate)
        self.assertEqual(done.returncode, 69, done)

    def test_a_certificate_that_was_replaced_without_sighup_is_told_apart_from_a_stranger(self):
        self.serve_tls(ports=("admin",))
        self.install(self.ours.issue("renewed"), "admin")
        done = self.proxy.run("status")
        self.assertEqual(done.returncode, 69, done)
        self.assertIn("was the file replaced, and no SIGHUP sent or the SIGHUP refused?", done.stderr)
        self.assertEqual(self.proxy.run("status", "--ca-file", self.ours.certificate).returncode, 0)
        self.hangup()
        self.assertEqual(self.proxy.run("status").returncode, 0)

    def test_check_and_serve_name_every_mistake_and_show_no_secret(self):
        locked = self.ours.issue("locked", password="opensesame")
        old = self.ours.issue("old", begin=-9, end=-2)
        self.serve()
        env = {"SINKONCE_LISTEN_CERT_FILE": old.certificate, "SINKONCE_LISTEN_KEY_FILE": old.key,
               "SINKONCE_ADMIN_CERT_FILE": locked.certificate, "SINKONCE_ADMIN_KEY_FILE": locked.key,
               "SINKONCE_TARGET_CERT_FILE": locked.certificate, "SINKONCE_TARGET_KEY_FILE": locked.key,
               "SINKONCE_TARGET_KEY_PASSWORD": "notsesame"}
        self.proxy.settings.update(env)
        for command in (("check",), ("serve",)):
            done = self.proxy.run(*command)
            self.assertEqual(done.returncode, 78, done)
            for words in ("SINKONCE_LISTEN_CERT_FILE: its certificate expired on", "there is no password for it",
                          "SINKONCE_TARGET_KEY_FILE names a file without a usable key: the password does not open it"):
                self.assertIn(words, done.stderr)
            self.assertNotIn("sesame", done.stdout + done.stderr)
            self.assertNotIn("PRIVATE", done.stdout + done.stderr)
        self.proxy.settings = {name: value for name, value in self.proxy.settings.items() if name not in env}


class Token(Case):
    settings = {"CLIENT_TOKEN": "s3cret"}

    def test_who_has_the_token_comes_in_and_the_target_never_sees_it(self):
        self.serve()
        answer = self.send(1, headers=BEARER)
        self.assertEqual(answer.status, 200)
        seen = self.target.last().lower()
        self.assertNotIn(b"s3cret", seen)
        self.assertNotIn(b"authorization", seen)

    def test_who_has_it_not_gets_401_before_the_body_and_is_counted(self):
        self.serve()
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}):
            answer = self.send(1, headers=headers)
            self.assert_own(answer, 401, "refused", "unauthorized")
            self.assertEqual(answer.headers["www-authenticate"], 'Bearer realm="sinkonce"')
        with Wire(self.proxy.port, context=None) as wire:  # a body that is announced is not waited for
            wire.send(b"POST /in HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9000000\r\n\r\n")
            self.assertEqual(wire.reply().status, 401)
            self.assertTrue(wire.is_ended())
        self.assert_metric('http_refused_total{reason="unauthorized"}', 4)
        self.assertEqual((self.target.stats()["requests"], self.state(1)), (0, "absent"))
        self.assertNotIn("s3cret", open(self.proxy.log).read())

    def test_credentials_for_the_target_go_on_beside_our_own_field(self):
        self.serve()
        answer = self.send(1, headers={"Sinkonce-Authorization": "Bearer s3cret", "Authorization": "Basic dTpw"})
        self.assertEqual(answer.status, 200)
        seen = self.target.last()
        self.assertIn(b"Authorization: Basic dTpw", seen)
        self.assertNotIn(b"s3cret", seen)

    def test_our_own_credentials_for_the_target_take_its_place(self):
        self.serve(AUTHORIZATION="Basic b3Vycw==")
        self.assertEqual(self.send(1, headers=BEARER).status, 200)
        seen = self.target.last()
        self.assertIn(b"Authorization: Basic b3Vycw==", seen)
        self.assertNotIn(b"s3cret", seen)


class Reload(Case):
    def shown(self):
        """The certificate that new connections get."""
        with Wire(self.proxy.port, context=self.context) as wire:
            return wire.socket.tls.getpeercert()["subject"]

    def test_a_new_certificate_is_for_new_connections_and_those_that_are_there_live_on(self):
        self.serve_tls()
        before = self.shown()
        with Wire(self.proxy.port, context=self.context) as wire:
            self.install(self.ours.issue("renewed"))
            self.hangup()
            wait_for(lambda: self.shown() != before, "the new certificate", PATIENCE)
            wire.send(post_bytes(record("orders", 0, 1)))
            self.assertEqual(wire.final().status, 200)
        self.wait_log("config.reloaded")
        self.assertTrue([row for row in self.events() if "reload" in str(row)], self.events())

    def test_a_broken_file_changes_nothing_and_says_so_until_it_is_mended(self):
        token = self.file("token", "s3cret")
        self.serve_tls(CLIENT_TOKEN_FILE=token)
        before = self.shown()
        self.file("token", "other")
        self.file("listen.pem", "no certificate")
        self.hangup("refused")
        self.assertEqual((self.shown(), self.ask(1, BEARER).status), (before, 200))
        self.wait_log("SINKONCE_LISTEN_CERT_FILE names a file without a usable certificate")
        self.wait_log("SIGHUP changed nothing")
        warnings = self.proxy.admin("GET", "/status")[1]["warnings"]
        self.assertTrue([words for words in warnings if "The last SIGHUP changed nothing" in words], warnings)
        self.assertTrue([row for row in self.events() if "reload refused" in str(row)])
        self.install(self.ours.issue("renewed"))
        self.hangup()
        wait_for(lambda: self.shown() != before, "the new certificate", PATIENCE)
        wait_for(lambda: self.ask(2, {"Authorization": "Bearer other"}).status == 200, "the new token", PATIENCE)
        self.assertEqual(self.ask(3, BEARER).status, 401)
        warnings = self.proxy.admin("GET", "/status")[1]["warnings"]
        self.assertFalse([words for words in warnings if "SIGHUP changed" in words], warnings)

    def test_tokens_are_changed_in_three_steps_under_traffic_without_a_401(self):
        self.serve(CLIENT_TOKEN_FILE=self.file("token", "old\n"), ADMIN_TOKEN_FILE=self.file("admin", "old-admin\n"))
        shown, is_over = ["old"], threading.Event()

        def connector():
            with Wire(self.proxy.port) as wire:
                for n in range(100000):
                    wire.send(post_bytes(record("orders", 0, n), "Authorization: Bearer %s\r\n" % shown[0]))
                    self.assertEqual(wire.final().status, 200)
                    if is_over.is_set():
                        return n
        traffic = self.later(connector)
        self.file("token", "old\nnew\n")  # 1. sinkonce takes both
        self.file("admin", "old-admin\nnew-admin\n")
        self.hangup()
        wait_for(lambda: self.send(0, headers={"Authorization": "Bearer new"}).status == 200, "the new token", PATIENCE)
        shown[0] = "new"  # 2. the connectors change, one after the other
        self.assertEqual([self.admin_change(token) for token in ("old-admin", "new-admin", "old-admin\nnew-admin")],
                         [200, 200, 403])
        seen = len(self.target.lines())
        wait_for(lambda: len(self.target.lines()) > seen + 20, "traffic with the new token", PATIENCE)
        self.file("token", "new\n")  # 3. the old one is good no more
        self.file("admin", "new-admin\n")
        self.hangup()
        wait_for(lambda: self.send(0, headers={"Authorization": "Bearer old"}).status == 401, "the old one to be refused",
                 PATIENCE)
        self.assertEqual([self.admin_change(token) for token in ("old-admin", "new-admin")], [403, 200])
        is_over.set()
        self.assertGreater(traffic.result(), 20)
        self.assertNotIn(b"new", self.target.last())

    def admin_change(self, token):
        with Wire(self.proxy.admin_port) as wire:
            body = b'{"level":"info"}'
            wire.send(b"PUT /log-level HTTP/1.1\r\nHost: elsewhere\r\nContent-Type: application/json\r\n"
                      b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                      % (token.replace("\n", " ").encode(), len(body), body))
            return wire.final().status

    def test_a_file_that_became_a_pipe_or_a_folder_is_refused_and_holds_nothing_up(self):
        self.serve_tls(CLIENT_TOKEN_FILE=self.file("token", "s3cret"))
        for name, setting in (("token", "CLIENT_TOKEN_FILE"), ("listen.pem", "LISTEN_CERT_FILE"), ("listen.key", "LISTEN_KEY_FILE")):
            path = os.path.join(self.folder, name)
            for make in (os.mkfifo, os.mkdir, lambda name: os.symlink("/dev/zero", name)):
                os.rename(path, path + ".kept")
                make(path)
                self.hangup("refused")
                self.assertEqual(self.ask(1, BEARER).status, 200)
                os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
                os.rename(path + ".kept", path)
            for words in ("Is a directory", "it is not an ordinary file"):
                self.assertRegex(self.log(), "SINKONCE_%s [^\"]*%s" % (setting, words))
        self.hangup()

    def test_new_secrets_are_for_what_begins_after_them(self):
        files = {"AUTHORIZATION_FILE": self.file("authorization", "Basic b2xk"),
                 "ADMIN_TOKEN_FILE": self.file("admin", "first")}
        self.serve(**files)
        self.target.set(delay=1000, next=1)
        running = self.later(self.send, 1)
        self.held()
        self.file("authorization", "Basic bmV3")
        self.file("admin", "second")
        self.hangup()
        self.assertEqual(running.result().status, 200)
        self.assertIn(b"Basic b2xk", self.target.last())
        wait_for(lambda: self.send(2).status == 200 and b"Basic bmV3" in self.target.last(), "the new one", PATIENCE)
        path = "/log-level"

        def change(token):
            return sinkonce.request(self.proxy.admin_port, "PUT", path, b'{"level":"info"}', {
                "Content-Type": "application/json", "Host": "elsewhere", "Authorization": "Bearer " + token})[0]
        self.assertEqual((change("first"), change("second")), (403, 200))

    def test_a_sighup_that_comes_during_the_start_is_obeyed_after_it(self):
        self.serve()
        self.proxy.stop()
        self.proxy.start(is_ready=False)
        self.wait_log('"server.start"', count=2)
        self.proxy.process.signal(signal.SIGHUP)
        wait_for(self.proxy._is_ready, "sinkonce to be ready", PATIENCE, [self.proxy.log])
        self.wait_log("config.reloaded")

    def test_probes_use_new_credentials_too(self):
        probed = Probed(lambda path: (500, b"not clear"))
        self.addCleanup(probed.close)
        self.serve(IN_DOUBT="probe", PROBE_URL=probed.url + "/{topic}/{offset}", PROBE_DELAY="50ms",
                   PROBE_AUTHORIZATION_FILE=self.file("probe", "Basic b2xk"))
        self.target.set(cut="answer", end="rst", next=1)
        self.assertEqual(self.send(1).status, 503)

        def is_shown(value):
            return any(fields.get("Authorization") == value for fields in probed.heads)
        wait_for(lambda: is_shown("Basic b2xk"), "a probe", PATIENCE, [self.proxy.log])
        self.file("probe", "Basic bmV3")
        self.hangup()
        wait_for(lambda: is_shown("Basic bmV3"), "a probe with the new credentials", PATIENCE, [self.proxy.log])

    def test_sighups_that_come_faster_than_they_are_obeyed_keep_nobody_out(self):
        with open(self.ours.certificate) as file:
            self.serve_tls(ports=("listen",), TARGET_CA_FILE=self.file("slow.pem", file.read() * 100))
        answered = threading.Event()

        def storm():
            while not answered.wait(0.001):
                self.proxy.process.signal(signal.SIGHUP)
        stormer = self.later(storm)
        try:
            for n in range(5):
                self.assertEqual(self.ask(n).status, 200)
        finally:
            answered.set()
            stormer.result()
        self.assertGreater(self.proxy.metrics()['sinkonce_reloads_total{result="done"}'], 0)

    def test_many_reloads_under_load_lose_nothing(self):
        self.serve_tls(CLIENT_TOKEN_FILE=self.file("token", "s3cret"), AUTHORIZATION_FILE=self.file("a", "Basic eA=="))
        count = 60

        def writer(first):
            with Wire(self.proxy.port, context=self.context) as wire:
                for n in range(first, first + count):
                    wire.send(post_bytes(record("orders", first, n), "Authorization: Bearer s3cret\r\n"))
                    self.assertEqual(wire.final().status, 200)
        writers = [self.later(writer, first) for first in (0, 1000, 2000)]
        reloads = 0
        while any(one.is_running() for one in writers) or reloads < 5:
            self.install(self.ours.issue("renewed-%d" % reloads))
            self.hangup()
            reloads += 1
        for one in writers:
            one.result()
            self.assertIsNone(one.error)
        self.assertEqual(len(self.target.lines()), 3 * count)


class LoopThatStandsStill(failpoints.Mortal, Case):
    def warnings(self):
        return [words for words in self.proxy.admin("GET", "/status")[1]["warnings"] if "SIGHUP" in words]

    def test_a_reload_is_told_once_the_last_loop_has_it_and_one_that_stands_still_is_told_too(self):
        self.serve(WORKERS="2", CLIENT_TOKEN_FILE=self.file("token", "s3cret"))
        os.environ["FAILPOINT"] = "after_response:sleep=10000"  # the loop that has a target's answer
        self.addCleanup(os.environ.pop, "FAILPOINT")
        self.proxy.stop()
        self.proxy.start()
        late = self.later(self.send, 1, headers=BEARER, timeout=PATIENCE)
        wait_for(lambda: self.target.lines(), "the target to have it", PATIENCE)
        self.file("token", "other")
        self.proxy.process.signal(signal.SIGHUP)
        self.wait_log("config.reloading")
        self.assertNotIn("config.reloaded", self.log())
        self.assertRegex(self.warnings()[0], "^Event loops that stand still, .*: 1[.]")
        self.assert_metric('reloads_total{result="done"}', 0)
        self.assertEqual(late.result().status, 200)
        self.wait_log("config.reloaded")
        with Wire(self.proxy.port) as one, Wire(self.proxy.port) as other:  # each on a loop of its own
            for wire in (one, other):
                wire.send(post_bytes(record("orders", 0, 2), "Authorization: Bearer s3cret\r\n"))
                self.assertEqual(wire.final().status, 401)
        self.assertEqual(self.warnings(), [])
        self.assert_metric('reloads_total{result="done"}', 1)


class Ends(Case):
    def test_when_certificates_end_is_a_metric_and_near_ends_are_warned_of(self):
        soon = self.ours.issue("soon", end=10)
        self.serve_tls(soon, ports=("listen",))
        metrics = self.proxy.metrics()
        name = 'sinkonce_certificate_expiry_timestamp_seconds{use="%s"}'
        with open(soon.certificate) as file:
            end = ssl.cert_time_to_seconds(ssl._ssl._test_decode_cert(file.name)["notAfter"])
        self.assertEqual(metrics[name % "listen"], end)
        self.assertNotIn(name % "admin", metrics)
        warnings = self.proxy.admin("GET", "/status")[1]["warnings"]
        self.assertTrue([w for w in warnings if w.startswith("SINKONCE_LISTEN_CERT_FILE: its certificate expires on")])
        self.wait_log("config.risky")
        self.install(self.ours.issue("later"))
        self.hangup()
        self.assertGreater(self.proxy.metrics()[name % "listen"], end)
        warnings = self.proxy.admin("GET", "/status")[1]["warnings"]
        self.assertFalse([w for w in warnings if "expire" in w], warnings)
        self.assertIn("listen", self.proxy.admin("GET", "/stats")[1]["certificates"])


if __name__ == "__main__":
    harness.main()
