#!/usr/bin/env python3
"""Whatever is wrong with a request at the admin port is told by status, label and words, and nothing is changed; an export
that is damaged or foreign is refused with the number of its line, and nothing is imported.
"""

import copy
import json
import os
import subprocess

import harness
from harness import PATIENCE
from scenario_changes_pass_one_gate import outside_address

JSON = {"Content-Type": "application/json"}
BODY_BYTES_MAX = 65536
REASON = "a test"
FILTER = {"topic": "orders", "partition": 0, "from": 1, "to": 1, "reason": REASON}

# Every change: its method, its path, and a body that would do.
CHANGES = [
    ("POST", "/in-doubt/{doubt}", {"resolution": "applied", "reason": REASON}),
    ("POST", "/in-doubt", {"resolution": "applied", "expect_count": 1, **FILTER}),
    ("POST", "/conflicts/{conflict}", {"decision": "same", "reason": REASON}),
    ("POST", "/replays", {"topic": "orders", "partition": 0, "from": 0, "to": 0, "for": "10m"}),
    ("DELETE", "/replays/{replay}", {"reason": REASON}),
    ("POST", "/forget", {**FILTER, "from": 0, "to": 0, "expect_count": 1}),
    ("PUT", "/mode", {"mode": "observe"}),
    ("PUT", "/log-level", {"level": "debug"}),
    ("POST", "/drain", {"reason": REASON}),
    ("DELETE", "/drain", {"reason": REASON}),
    ("POST", "/backup", {"path": "copy.mdb"}),
]

# What may be wrong with any of them: what, body or fields of the head, status, label, words.
ANY_CHANGE = [
    ("no JSON", b"nonsense", {}, 400, "bad-json", "line 1, column "),
    ("JSON that ends early", b'{"reason":', {}, 400, "bad-json", "line 1, column "),
    ("JSON broken in its third line", b'{\n"reason":\n]}', {}, 400, "bad-json", "line 3, column "),
    ("two documents", b'{"reason":"x"}{}', {}, 400, "bad-json", "line 1, column "),
    ("a member twice", b'{"reason":"x","reason":"y"}', {}, 400, "bad-json", "line 1, column "),
    ("a zero byte", b'{"reason":"\\u0000"}', {}, 400, "bad-json", "line 1, column "),
    ("no UTF-8", b'{"reason":"\xff"}', {}, 400, "bad-json", "line 1, column "),
    ("an array", b"[1]", {}, 400, "bad-json", "must be an object"),
    ("too deep", b"[" * 5000, {}, 400, "bad-json", "line 1, column "),
    ("a field that is none", {"no_such_field": 1}, {}, 400, "unknown-field", '"no_such_field"'),
    ("a long field that is none", {"x" * 500: 1}, {}, 400, "unknown-field", '"' + "x" * 60 + '"'),
    ("a reason of two lines", {"reason": "one\ntwo"}, {}, 400, "bad-value", '"reason" must be'),
    ("an empty reason", {"reason": ""}, {}, 400, "bad-value", '"reason" must be'),
    ("a reason that is no text", {"reason": 1}, {}, 400, "bad-value", '"reason" must be'),
    ("a reason of 121 bytes", {"reason": "x" * 121}, {}, 400, "bad-value", '"reason" must be'),
    ("the type of a form", {}, {"Content-Type": "application/x-www-form-urlencoded"}, 415, "not-json", "application/json"),
    ("plain text", {}, {"Content-Type": "text/plain"}, 415, "not-json", "application/json"),
    ("a type that begins alike", {}, {"Content-Type": "application/json-seq"}, 415, "not-json", "application/json"),
    ("no type", {}, {"Content-Type": None}, 415, "not-json", "application/json"),
    ("a foreign name", {}, {"Host": "evil.example.test"}, 403, "foreign-host", "Host must be"),
    ("a name with ours in front", {}, {"Host": "127.0.0.1.evil.example.test"}, 403, "foreign-host", "Host must be"),
    ("a foreign origin", {}, {"Origin": "http://evil.example.test"}, 403, "foreign-origin", "another origin"),
    ("no origin at all", {}, {"Origin": "null"}, 403, "foreign-origin", "another origin"),
    ("a body too large", b" " * (BODY_BYTES_MAX + 1), {}, 413, "body-too-large", ""),
]

# What one change alone can have wrong: path, body (what differs from the right one; None leaves a member out), status,
# label, words.
EACH_CHANGE = [
    ("/in-doubt/{doubt}", {"resolution": "maybe"}, 400, "bad-value", '"applied" or "not-applied"'),
    ("/in-doubt/{doubt}", {"resolution": True}, 400, "bad-value", '"resolution"'),
    ("/in-doubt/{doubt}", {"resolution": None}, 400, "field-missing", '"resolution" is needed'),
    ("/in-doubt/{doubt}", {"reason": None}, 400, "field-missing", '"reason" is needed'),
    ("/in-doubt", {"expect_count": None}, 400, "field-missing", '"expect_count" is needed'),
    ("/in-doubt", {"expect_count": -1}, 400, "bad-value", '"expect_count" must be a whole number'),
    ("/in-doubt", {"expect_count": 1.0}, 400, "bad-value", '"expect_count" must be a whole number'),
    ("/in-doubt", {"expect_count": "01"}, 400, "bad-value", '"expect_count" must be a whole number'),
    ("/in-doubt", {"topic": None}, 400, "bad-value", '"partition" must be given together with "topic"'),
    ("/in-doubt", {"partition": None}, 400, "bad-value", '"from" must be given together with "partition"'),
    ("/in-doubt", {"to": None}, 400, "bad-value", '"from" must be given together with "to"'),
    ("/in-doubt", {"from": 2}, 400, "bad-value", '"from" must be at most "to"'),
    ("/in-doubt", {"topic": "bad topic"}, 400, "bad-value", '"topic" must be the name'),
    ("/in-doubt", {"partition": 2 ** 31}, 400, "bad-value", "2147483647"),
    ("/in-doubt", {"to": 2 ** 63}, 400, "bad-json", "too big integer"),
    ("/in-doubt", {"to": str(2 ** 63)}, 400, "bad-value", "9223372036854775807"),
    ("/in-doubt", {"expect_count": 2}, 409, "count-mismatch", "another number"),
    ("/in-doubt/4242", {}, 404, "not-found", "4242"),
    ("/in-doubt/0", {}, 404, "not-found", ""),
    ("/in-doubt/18446744073709551616", {}, 404, "not-found", ""),
    ("/in-doubt/x", {}, 404, "not-found", ""),
    ("/conflicts/{conflict}", {"decision": "perhaps"}, 400, "bad-value", '"new-topic" or "same"'),
    ("/conflicts/4242", {}, 404, "not-found", "4242"),
    ("/replays", {"for": "10"}, 400, "bad-value", '"for" must be a duration'),
    ("/replays", {"for": "32d"}, 400, "bad-value", '"for" must be a duration'),
    ("/replays", {"for": None}, 400, "field-missing", '"for" is needed'),
    ("/replays", {"topic": "unmet"}, 404, "not-found", "unmet"),
    ("/replays", {"from": 7, "to": 7}, 409, "replay-overlaps", "overlaps"),
    ("/replays/4242", {}, 404, "not-found", "4242"),
    ("/forget", {"expect_count": 7}, 409, "count-mismatch", "another number"),
    ("/forget", {"topic": "unmet"}, 404, "not-found", ""),
    ("/forget", {"reason": None}, 400, "field-missing", '"reason" is needed'),
    ("/mode", {"mode": "on"}, 400, "bad-value", '"mode" must be'),
    ("/log-level", {"level": 1}, 400, "bad-value", '"level" must be'),
    ("/backup", {"path": "../../copy.mdb"}, 400, "bad-value", '"path" must be'),
    ("/backup", {"path": "/etc/copy.mdb"}, 400, "bad-value", '"path" must be'),
    ("/backup", {"path": "ledger.mdb"}, 409, "file-exists", "already"),
]

ALLOWED = {
    "GET, HEAD": ("/", "/app.js", "/livez", "/readyz", "/startupz", "/metrics", "/stats", "/version", "/status", "/config",
                  "/partitions", "/partitions/orders/0/intervals", "/records", "/conflicts", "/events"),
    "GET, HEAD, POST": ("/in-doubt", "/replays"),
    "POST": ("/in-doubt/1", "/conflicts/1", "/forget", "/backup", "/explain"),
    "DELETE": ("/replays/1",), "POST, DELETE": ("/drain",), "PUT": ("/mode", "/log-level"),
}

QUERIES = [
    ("/in-doubt?limit=0", "limit must be"), ("/in-doubt?limit=1001", "limit must be"), ("/in-doubt?after=-1", "after must be"),
    ("/in-doubt?limit=1&limit=1", "twice"), ("/in-doubt?topics=orders", "topics is not a parameter"),
    ("/partitions?topic=a%20b", "topic must be"), ("/partitions?topic=%zz", "broken percent"),
    ("/partitions?after=orders", "TOPIC/PARTITION"), ("/replays?after=x", "after must be"), ("/conflicts?from=1", "from is not"),
    ("/events?after=18446744073709551616", "after must be"), ("/records?topic=orders", "are all needed"),
    ("/records?topic=orders&partition=00&offset=1", "partition must be"),
    ("/partitions/orders/0/intervals?from=x", "from must be"),
]


class Test(harness.Scenario):
    def prepare(self, **settings):
        """One applied record, one doubt, one conflict, one replay window: what a change could change."""
        self.serve(**{"IDENTITY": "body", **settings})
        for offset in (0, 7):
            self.send(offset)
        self.doubt(1)
        self.send(0, "again")
        self.assertEqual(self.send(0, "again", life=2).status, 503)
        window = {"topic": "orders", "partition": 0, "from": 7, "to": 7, "for": "1h"}
        self.ids = {"doubt": self.proxy.in_doubt()[0]["id"], "conflict": self.proxy.conflicts()[0]["id"],
                    "replay": self.proxy.admin("POST", "/replays", window)[1]["id"]}

    def everything(self):
        """All that a change could have changed."""
        asked = [self.proxy.admin("GET", path) for path in ("/in-doubt", "/conflicts", "/replays")]
        asked += [row for row in self.events() if row["event"] != "ledger.backup"]  # that one failed is an event, too
        status = self.proxy.admin("GET", "/status")[1]
        applied = self.proxy.admin("GET", "/partitions")[1]["partitions"]
        return asked, status["mode"], status["state"], [(row["topic"], row["applied"]) for row in applied], sorted(
            os.listdir(self.proxy.data_dir))

    def ask(self, method, path, body, fields=None, address="127.0.0.1"):
        """(status, fields, decoded JSON)"""
        head = {name: value for name, value in {**JSON, **(fields or {})}.items() if value is not None}
        connection = harness.http.client.HTTPConnection(address, self.proxy.admin_port, timeout=PATIENCE)
        try:
            connection.request(method, path.format(**self.ids), body, head)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, json.loads(answer.read())
        finally:
            connection.close()

    def assert_refused(self, method, path, body, fields, status, label, words):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        found, head, answer = self.ask(method, path, body, fields)
        self.assertEqual((found, answer["error"]), (status, label), answer)
        self.assertIn(words, answer["detail"])
        self.assertEqual(head["content-type"], "application/json")
        return answer

    def test_what_may_be_wrong_with_any_change(self):
        self.prepare()
        before = self.everything()
        for method, path, right in CHANGES:
            for what, wrong, fields, status, label, words in ANY_CHANGE:
                with self.subTest(call="%s %s" % (method, path), what=what):
                    body = wrong if isinstance(wrong, bytes) else {**right, **wrong}
                    self.assert_refused(method, path, body, fields, status, label, words)
        self.assertEqual(self.everything(), before)

    def test_what_may_be_wrong_with_one_change_alone(self):
        self.prepare()
        before = self.everything()
        rights = {path.split("/")[1] + ("/" if path.count("/") > 1 else ""): (method, right) for method, path, right in CHANGES}
        for path, wrong, status, label, words in EACH_CHANGE:
            method, right = rights[path.split("/")[1] + ("/" if path.count("/") > 1 else "")]
            with self.subTest(path=path, wrong=wrong):
                body = {name: value for name, value in {**right, **wrong}.items() if value is not None}
                answer = self.assert_refused(method, path, body, {}, status, label, words)
                if label == "count-mismatch":
                    self.assertEqual((answer["expect_count"], answer["count"]), (wrong["expect_count"], 1))
        self.assertEqual(self.everything(), before)

    def test_each_right_change_is_taken_so_that_the_others_are_refused_for_what_is_wrong(self):
        self.prepare()
        for method, path, right in CHANGES[0:1] + CHANGES[2:]:
            with self.subTest(call="%s %s" % (method, path)):
                self.assertEqual(self.ask(method, path, json.dumps(right).encode())[0], 200)

    def test_a_method_that_a_path_does_not_take_is_405_and_allow_names_those_it_takes(self):
        self.prepare()
        for allowed, paths in ALLOWED.items():
            for path in paths:
                for method in ("PATCH", "OPTIONS") + (("POST",) if "POST" not in allowed else ()):
                    with self.subTest(path=path, method=method):
                        status, head, answer = self.ask(method, path, b"{}")
                        self.assertEqual((status, answer["error"], head["allow"]), (405, "method-not-allowed", allowed))

    def test_a_query_that_is_not_understood_is_400_and_its_parameter_is_named(self):
        self.prepare()
        for path, words in QUERIES:
            with self.subTest(path=path):
                status, _, answer = self.ask("GET", path, None)
                self.assertEqual(status, 400, answer)
                self.assertIn(words, answer["detail"])

    def test_a_record_that_has_settled_meanwhile_is_409_with_its_state(self):
        self.prepare()
        filter = {"resolution": "not-applied", "expect_count": 1, **FILTER}
        self.assertEqual(self.ask("POST", "/in-doubt", json.dumps(filter).encode())[0], 200)
        right = json.dumps(CHANGES[0][2]).encode()
        status, _, answer = self.ask("POST", "/in-doubt/{doubt}", right)
        self.assertEqual((status, answer["error"], answer["state"]), (409, "settled", "absent"))
        self.send(1)  # the connector's next delivery went on
        status, _, answer = self.ask("POST", "/in-doubt/{doubt}", right)
        self.assertEqual((status, answer["error"], answer["state"]), (409, "settled", "applied"))
        self.allowed_twice = ("orders/0/1",)
        status, _, answer = self.ask("POST", "/in-doubt", json.dumps(filter).encode())
        self.assertEqual((status, answer["count"]), (409, 0))

    def test_from_beyond_loopback_every_change_needs_the_token(self):
        address = outside_address()
        if address is None:
            self.skipTest("this machine has no address beyond loopback")
        self.prepare(ADMIN_LISTEN="0.0.0.0:{admin_port}")
        for secret, label, status in ((None, "no-admin-token", 403), ("t0ken-t0ken", "not-authorized", 401)):
            if secret:
                self.restart(ADMIN_TOKEN=secret)
            before = self.everything()
            for method, path, right in CHANGES:
                for given in (None, "Bearer wrong", "Basic t0ken-t0ken", "Bearer t0ken-t0ke", "Bearer t0ken-t0kenn"):
                    with self.subTest(call="%s %s" % (method, path), given=given):
                        found, head, answer = self.ask(method, path, json.dumps(right).encode(),
                                                       {"Host": address, "Authorization": given}, address)
                        self.assertEqual((found, answer["error"]), (status, label))
                        self.assertEqual("www-authenticate" in head, status == 401)
            self.assertEqual(self.everything(), before)

    def test_a_sample_that_is_not_understood_is_refused(self):
        self.prepare()
        for body, fields, status, label, words in (
                (b"nonsense", {}, 400, "bad-json", "line 1, column "), ({"bdoy": 1}, {}, 400, "unknown-field", '"bdoy"'),
                ({"method": 1}, {}, 400, "bad-value", '"method"'), ({"headers": {"a b": "c"}}, {}, 400, "bad-value", '"headers"'),
                ({"headers": {"a": "b\nc: d"}}, {}, 400, "bad-value", '"headers"'), ({"path": "x"}, {}, 400, "bad-request", ""),
                (b"POST / HTTP/1.1\r\n", {"Content-Type": "application/http"}, 400, "bad-request", ""),
                ({}, {"Content-Type": "text/plain"}, 415, "bad-type", "application/http"),
                (b" " * (BODY_BYTES_MAX + 1), {}, 413, "body-too-large", "")):
            with self.subTest(body=body[:20] if isinstance(body, bytes) else body):
                self.assert_refused("POST", "/explain", body, fields, status, label, words)


def changed(line, **members):
    document = json.loads(line)
    document.update(members)
    return json.dumps(document, separators=(",", ":"))


def without(line, member):
    document = json.loads(line)
    del document[member]
    return json.dumps(document, separators=(",", ":"))


class Import(harness.Scenario):
    def exported(self):
        self.serve()
        for offset in (0, 1, 2, 5):
            self.send(offset)
        self.doubt(7)
        self.check_sum()
        self.proxy.stop()
        lines = self.proxy.run("ledger", "export").stdout.splitlines()
        self.assertGreater(len(lines), 5)
        return lines

    def damages(self, lines):
        """What was done to the export, its lines afterwards, the number of the line that is wrong, words."""
        kinds = [json.loads(line)["kind"] for line in lines]
        applied, doubt, last = kinds.index("applied"), kinds.index("open"), len(lines) - 1

        def put(at, line):
            copied = copy.copy(lines)
            copied[at] = line
            return copied
        yield "nothing", [], 1, ""
        yield "no JSON", put(applied, "nonsense"), applied + 1, ""
        yield "cut in its middle", put(applied, lines[applied][:-5]), applied + 1, ""
        yield "an empty line", put(applied, ""), applied + 1, ""
        yield "a member that is none", put(doubt, changed(lines[doubt], extra=1)), doubt + 1, ""
        yield "a member that is missing", put(doubt, without(lines[doubt], "first")), doubt + 1, "first"
        yield "a kind that is none", put(doubt, changed(lines[doubt], kind="opne")), doubt + 1, ""
        yield "another scope", put(0, changed(lines[0], scope="elsewhere")), 1, "scope"
        yield "another version", put(0, changed(lines[0], version=99)), 1, "version"
        yield "another program's export", put(0, '{"index":{"_id":"1"}}'), 1, ""
        yield "no head", lines[1:], 1, ""
        yield "two heads", [lines[0]] + lines, 2, ""
        yield "the end is missing", lines[:-1], last + 1, ""
        yield "a line more", lines + [lines[applied]], last + 2, ""
        yield "a line twice", lines[:applied + 1] + lines[applied:], applied + 2, ""
        yield "a line that is missing", lines[:doubt] + lines[doubt + 1:], None, ""
        yield "an applied record in doubt", put(doubt, changed(lines[doubt], first=1, last=1)), doubt + 1, ""
        yield "an offset below 0", put(applied, changed(lines[applied], first=-1)), applied + 1, "first"
        yield "counts of another ledger", put(last, changed(lines[last], applied=99)), last + 1, ""

    def test_a_damaged_or_foreign_export_is_refused_with_its_line_and_nothing_is_imported(self):
        lines = self.exported()
        folder = os.path.join(self.proxy.data_dir, "imported")
        os.mkdir(folder)
        env = {**self.proxy.environment(), "SINKONCE_DATA_DIR": folder}

        def run(text):
            return subprocess.run([self.proxy.binary, "ledger", "import"], env=env, input=text, capture_output=True, text=True,
                                  timeout=PATIENCE)
        for what, damaged, number, words in self.damages(lines):
            with self.subTest(what=what):
                done = run("".join(line + "\n" for line in damaged))
                self.assertEqual((done.returncode, done.stdout), (74, ""), done.stderr)
                self.assertRegex(done.stderr, r"\bline %s\b" % (r"\d+" if number is None else number))
                self.assertIn(words, done.stderr)
                self.assertNotIn("ledger.mdb", os.listdir(folder))
        self.assertEqual(run("".join(line + "\n" for line in lines)).returncode, 0)
        self.assertIn("ledger.mdb", os.listdir(folder))


if __name__ == "__main__":
    harness.main()
