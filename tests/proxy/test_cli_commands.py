#!/usr/bin/env python3
"""The commands beside a running instance: what they print, as a table and as JSON, what they send, how they fail.

Test(Scenario) has a real instance.  Spoken has a server that records what is asked and answers as it is told: what a
command sends, and what it makes of any answer.
"""

import concurrent.futures
import gzip
import http.server
import json
import os
import shutil
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))

import harness  # noqa: E402
from harness import PATIENCE, wait_for  # noqa: E402

BINARY = os.environ.get("SINKONCE_BIN", "sinkonce")
WHY = ("--reason", "found in the target")


def run(*arguments, env=None, stdin=""):
    """One command in an environment that holds nothing else."""
    return subprocess.run([BINARY, *arguments], env=env or {}, input=stdin, capture_output=True, text=True, timeout=60)


class Test(harness.Scenario):
    def command(self, *arguments, code=0):
        done = self.proxy.run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        return done

    def rows(self, *arguments):
        """The cells of a table, without its titles."""
        lines = self.command(*arguments).stdout.splitlines()
        return [line.split() for line in lines[1:]]

    def conflict(self):
        """The topic is created anew: other records at known offsets."""
        self.is_journal_checked = False
        self.send(5, amt=1)
        self.assertEqual(self.send(5, amt=2).outcome, "conflict")

    def test_status_tells_state_and_warnings_in_sentences(self):
        self.serve()
        done = self.command("status")
        self.assertRegex(done.stdout, r"(?m)^state +ready$")
        self.assertIn("  - The ledger is less than a day old", done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertEqual(json.loads(self.command("status", "--json").stdout)["state"], "ready")

    def test_partitions_of_all_topics_or_of_one(self):
        self.serve()
        for topic in ("orders", "bills"):
            for offset in (1, 2, 4):
                self.send(offset, topic)
        rows = self.rows("partitions")
        self.assertEqual(sorted(row[:7] for row in rows),
                         [[topic, "0", "1", "4", "3", "1", "0"] for topic in ("bills", "orders")])
        self.assertEqual([row[0] for row in self.rows("partitions", "--topic", "bills")], ["bills"])
        page = json.loads(self.command("partitions", "--topic", "bills", "--json").stdout)
        self.assertEqual([row["topic"] for row in page["partitions"]], ["bills"])

    def test_more_partitions_than_one_answer_tells_are_all_listed(self):
        self.serve()
        names = [("topic-%d" % topic, partition) for topic in range(11) for partition in range(100)]
        batch = b"[" + b",".join(harness.record(topic, partition, 0) for topic, partition in names) + b"]"
        self.assertEqual(self.proxy.post("/in", batch)[0], 200)
        rows = [(row[0], int(row[1])) for row in self.rows("partitions")]
        self.assertEqual(rows, sorted(names))

    def test_an_empty_list_says_so_on_stderr_and_succeeds(self):
        self.serve()
        for arguments, words in ((["partitions"], "no partition"), (["in-doubt"], "nothing is in doubt"),
                                 (["conflicts"], "no conflict")):
            done = self.command(*arguments)
            self.assertEqual(done.stdout, "")
            self.assertIn(words, done.stderr)

    def test_a_doubt_is_listed_and_resolved_by_its_id(self):
        self.serve()
        self.doubt(7, 9)
        rows = self.rows("in-doubt")
        self.assertEqual([row[1:6] for row in rows], [["orders", "0", "7", "7", "1"], ["orders", "0", "9", "9", "1"]])
        done = self.command("in-doubt", "resolve", rows[0][0], "--applied", *WHY)
        self.assertRegex(done.stdout, r"(?m)^records +1$")
        self.command("in-doubt", "resolve", rows[1][0], "--not-applied", *WHY)
        self.assertEqual((self.state(7), self.state(9)), ("applied", "absent"))
        self.assertEqual(self.rows("in-doubt"), [])
        again = self.command("in-doubt", "resolve", rows[0][0], "--applied", *WHY, code=1)
        self.assertEqual(again.stdout, "")
        self.assertRegex(again.stderr, r"answers (404|409): ")

    def test_many_doubts_are_resolved_only_when_their_count_is_right(self):
        self.serve()
        self.doubt(1, 3, 5)
        self.doubt(1, topic="bills")
        wrong = self.command("in-doubt", "resolve", "--topic", "orders", "--expect", "2", "--applied", *WHY, code=1)
        self.assertIn("answers 409: ", wrong.stderr)
        self.assertIn("it would be 3, not 2", wrong.stderr)
        self.assertEqual(len(self.doubts()), 4)
        self.command("in-doubt", "resolve", "--topic", "orders", "--partition", "0", "--from", "3", "--to", "5",
                     "--expect", "2", "--applied", *WHY)
        self.assertEqual(self.doubts(), ["bills/0/1", "orders/0/1"])
        answer = self.command("in-doubt", "resolve", "--expect", "2", "--not-applied", *WHY, "--json").stdout
        self.assertEqual(json.loads(answer)["records"], 2)
        self.assertEqual(self.doubts(), [])

    def test_a_list_is_read_to_its_end_or_up_to_a_limit(self):
        self.serve()
        self.doubt(*range(1, 10, 2))
        pages = self.command("in-doubt", "--json", "--limit", "2").stdout.splitlines()
        self.assertEqual([len(json.loads(page)["in_doubt"]) for page in pages], [2])
        self.assertEqual(len(self.rows("in-doubt", "--limit", "2")), 2)
        self.assertEqual(len(self.rows("in-doubt")), 5)

    def test_one_record_in_each_state(self):
        self.serve()
        self.send(1)
        self.doubt(2)
        for offset, state in ((1, "applied"), (2, "in_doubt"), (3, "absent")):
            done = self.command("records", "get", "orders", "0", str(offset))
            self.assertRegex(done.stdout, r"(?m)^state +%s$" % state)
        answer = json.loads(self.command("records", "get", "orders", "0", "2", "--json").stdout)
        self.assertEqual((answer["state"], answer["in_doubt"]["topic"]), ("in_doubt", "orders"))

    def test_a_conflict_is_listed_and_decided(self):
        self.serve()
        self.conflict()
        rows = self.rows("conflicts")
        self.assertEqual(rows[0][1:5], ["orders", "0", "5", "identity"])
        self.command("conflicts", "decide", rows[0][0], "new-topic", *WHY)
        self.assertEqual(self.send(5, amt=2).status, 200)
        self.assertIn("answers 404: ", self.command("conflicts", "decide", "999", "same", *WHY, code=1).stderr)

    def test_a_replay_window_lets_a_record_through_once(self):
        self.serve()
        self.is_journal_checked = False
        self.send(5)
        where = ("--topic", "orders", "--partition", "0", "--from", "4", "--to", "6")
        opened = json.loads(self.command("replay", "open", *where, "--for", "10m", *WHY, "--json").stdout)
        self.assertEqual([row[:5] for row in self.rows("replay")], [[opened["id"], "orders", "0", "4", "6"]])
        self.assertIn("answers 409: ", self.command("replay", "open", *where, "--for", "10m", code=1).stderr)
        for _ in range(3):
            self.send(5)
        self.assertEqual(self.applied(5), 2)
        self.assertRegex(self.command("replay", "close", opened["id"]).stdout, r"(?m)^replayed +1$")
        self.assertIn("no window is open", self.command("replay").stderr)
        self.assertIn("answers 404: ", self.command("replay", "close", opened["id"], code=1).stderr)

    def test_what_is_forgotten_is_sent_again_and_only_when_the_count_is_right(self):
        self.serve()
        self.is_journal_checked = False
        for offset in (1, 2, 3):
            self.send(offset)
        where = ("--topic", "orders", "--partition", "0", "--from", "2", "--to", "9")
        self.assertIn("it would be 2, not 3", self.command("forget", *where, "--expect", "3", *WHY, code=1).stderr)
        self.assertRegex(self.command("forget", *where, "--expect", "2", *WHY).stdout, r"(?m)^records +2$")
        self.assertEqual([self.state(offset) for offset in (1, 2, 3)], ["applied", "absent", "absent"])

    def test_a_backup_is_a_ledger_of_its_own(self):
        self.serve()
        self.send(1)
        folder = os.path.join(self.proxy.data_dir, "..", "copied")
        os.mkdir(folder)
        self.command("ledger", "backup", "copy.mdb")
        self.assertIn("answers 409: ", self.command("ledger", "backup", "copy.mdb", code=1).stderr)
        os.rename(os.path.join(self.proxy.data_dir, "copy.mdb"), os.path.join(folder, "ledger.mdb"))
        env = {**self.proxy.environment(), "SINKONCE_DATA_DIR": folder}
        self.assertEqual(run("ledger", "verify", env=env).stdout, "sound\n")

    def test_events_tell_who_did_what_and_why(self):
        self.serve()
        self.doubt(7)
        self.command("in-doubt", "resolve", "--expect", "1", "--applied", *WHY)
        text = self.command("events").stdout
        self.assertIn("record.resolved", text)
        self.assertIn(WHY[1], text)

    def test_a_limit_of_events_means_the_last_of_them_oldest_first(self):
        self.serve()
        self.doubt(7)
        self.command("in-doubt", "resolve", "--expect", "1", "--applied", *WHY)

        def last(*options):
            return [row["event"] for row in json.loads(self.command("events", "--json", *options).stdout)["events"]]
        everything = last("--limit", "1000")
        self.assertEqual(everything[0], "ledger.created")
        self.assertEqual(everything[-1], "record.resolved")
        for count in range(1, len(everything) + 2):
            self.assertEqual(last("--limit", str(count)), everything[-count:])
        rows = self.command("events", "--limit", "1").stdout.splitlines()
        self.assertEqual(len(rows), 2, rows)  # a head and the event
        self.assertIn("record.resolved", rows[1])

    def test_followed_events_come_as_they_happen(self):
        self.serve()
        log = os.path.join(os.path.dirname(self.proxy.log), "followed")
        with open(log, "wb") as out:
            follower = subprocess.Popen([BINARY, "events", "-f"], env=self.proxy.environment(), stdout=out)
        self.addCleanup(follower.wait, 30)
        self.addCleanup(follower.kill)

        def has(words):
            with open(log) as text:
                return words in text.read()
        wait_for(lambda: has("ledger.created"), "what is there", PATIENCE)
        self.doubt(7)
        wait_for(lambda: has("record.in_doubt"), "what comes", PATIENCE)
        self.assertIsNone(follower.poll())

    def test_the_ledger_is_moved_by_export_and_import_while_nobody_runs(self):
        self.serve()
        self.send(1)
        self.send(2)
        self.doubt(5)
        busy = self.command("ledger", "stat", code=75)
        self.assertEqual(busy.stdout, "")
        self.proxy.stop()
        self.assertRegex(self.command("ledger", "stat").stdout, r"(?m)^used_bytes \d+$")
        self.assertGreater(json.loads(self.command("ledger", "stat", "--json").stdout)["used_bytes"], 0)
        self.assertEqual(self.command("ledger", "verify").stdout, "sound\n")
        self.assertEqual(json.loads(self.command("ledger", "verify", "--json").stdout), {"sound": True, "findings": []})
        lines = self.command("ledger", "export").stdout
        for line in lines.splitlines():
            json.loads(line)
        folder = os.path.join(self.proxy.data_dir, "moved")
        os.mkdir(folder)
        env = {**self.proxy.environment(), "SINKONCE_DATA_DIR": folder}
        cut = run("ledger", "import", env=env, stdin="".join(lines.splitlines(True)[:-1]))
        self.assertEqual(cut.returncode, 74, cut)
        self.assertIn("line %d" % len(lines.splitlines()), cut.stderr)
        there = run("ledger", "import", "-", env=env, stdin=lines)
        self.assertEqual((there.returncode, there.stderr), (0, ""))
        self.assertEqual(run("ledger", "import", env=env, stdin=lines).returncode, 74)  # there is one now
        self.assertEqual(run("ledger", "import", "/nonexistent", env=env).returncode, 74)
        self.proxy.start(SINKONCE_DATA_DIR=folder)
        self.assertEqual([self.state(offset) for offset in (1, 2, 3, 5)], ["applied", "applied", "absent", "in_doubt"])

    def test_a_token_lets_a_change_through_a_foreign_name_and_a_wrong_one_does_not(self):
        self.serve(ADMIN_TOKEN="right-token")
        self.doubt(7)
        folder = os.path.dirname(self.proxy.log)
        # a name under .localhost is loopback, and not one that the gate lets through without a token
        change = ("in-doubt", "resolve", "--expect", "1", "--applied", *WHY,
                  "--admin", "x.localhost:%d" % self.proxy.admin_port)
        for name, token in (("right", "right-token\n"), ("wrong", "wrong-token\n")):
            with open(os.path.join(folder, name), "w") as file:
                file.write(token)
        for arguments in ([], ["--token-file", os.path.join(folder, "wrong")]):
            done = run(*change, *arguments)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertRegex(done.stderr, r"answers 40[13]: ")
            self.assertNotIn("wrong-token", done.stderr)
        self.assertEqual(run(*change, "--token-file", os.path.join(folder, "none")).returncode, 78)
        self.assertEqual(self.doubts(), ["orders/0/7"])
        self.assertEqual(run(*change, "--token-file", os.path.join(folder, "right")).returncode, 0)
        self.assertEqual(self.state(7), "applied")


class Recorder(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.asked.append((self.command, self.path, json.loads(body) if body else None, dict(self.headers)))
        status, text = self.server.answers.pop(0) if self.server.answers else (200, "{}")
        if status is None:  # none, and the connection ends
            self.close_connection = True
            return
        first_line = self.server.first_lines.pop(0) if self.server.first_lines else ""
        head = "HTTP/1.1 %d Told\r\n%sContent-Length: %d\r\n\r\n"
        self.wfile.write((head % (status, first_line, len(text.encode())) + text).encode())

    do_GET = do_POST = do_DELETE = do_PUT = answer

    def log_message(self, *_):
        pass


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Spoken(unittest.TestCase):
    longMessage = True

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sinkonce-cli-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
        self.listen(self.server)
        self.admin = "127.0.0.1:%d" % self.server.server_port

    def listen(self, server):
        server.asked, server.answers, server.first_lines = [], [], []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def command(self, *arguments, code=0, env=None, stdin=""):
        self.server.asked.clear()
        done = run(*arguments, env={"SINKONCE_ADMIN_LISTEN": self.admin, **(env or {})}, stdin=stdin)
        self.assertEqual(done.returncode, code, (arguments, done))
        return done

    def assert_asked(self, method, path, body=None):
        self.assertEqual([asked[:3] for asked in self.server.asked], [(method, path, body)])

    def test_what_each_change_sends(self):
        where = ("--topic", "orders", "--partition", "3", "--from", "5", "--to", "9223372036854775807")
        there = {"topic": "orders", "partition": 3, "from": 5, "to": 9223372036854775807, "reason": WHY[1]}
        self.command("in-doubt", "resolve", "18446744073709551615", "--not-applied", *WHY)
        self.assert_asked("POST", "/in-doubt/18446744073709551615", {"resolution": "not-applied", "reason": WHY[1]})
        self.command("in-doubt", "resolve", *where, "--expect", "0", "--applied", *WHY)
        self.assert_asked("POST", "/in-doubt", {**there, "resolution": "applied", "expect_count": 0})
        self.command("conflicts", "decide", "4", "same", *WHY)
        self.assert_asked("POST", "/conflicts/4", {"decision": "same", "reason": WHY[1]})
        self.command("forget", *where, "--expect", "12", *WHY)
        self.assert_asked("POST", "/forget", {**there, "expect_count": 12})
        self.command("replay", "open", *where, "--for", "10m", *WHY)
        self.assert_asked("POST", "/replays", {**there, "for": "10m"})
        self.command("replay", "close", "8", *WHY)
        self.assert_asked("DELETE", "/replays/8", {"reason": WHY[1]})
        self.command("replay", "close", "8")
        self.assert_asked("DELETE", "/replays/8", {})
        self.command("ledger", "backup", "/b/x.mdb")
        self.assert_asked("POST", "/backup", {"path": "/b/x.mdb"})
        self.command("ledger", "backup", "x.mdb")
        self.assert_asked("POST", "/backup", {"path": "x.mdb"})
        self.command("ledger", "backup", "./x.mdb")
        self.assert_asked("POST", "/backup", {"path": os.path.join(os.getcwd(), "./x.mdb")})
        self.assertEqual(self.server.asked[0][3]["Content-Type"], "application/json")

    def test_what_each_question_asks(self):
        for arguments, path in ((["status"], "/status"), (["partitions"], "/partitions?limit=1000"),
                                (["in-doubt", "list", "--topic", "a.b", "--limit", "5"], "/in-doubt?limit=5&topic=a.b"),
                                (["conflicts"], "/conflicts?limit=1000"), (["replay"], "/replays?limit=1000"),
                                (["events"], "/events?limit=1000"),
                                (["records", "get", "a", "1", "2"], "/records?topic=a&partition=1&offset=2")):
            self.command(*arguments)
            self.assert_asked("GET", path)

    def test_pages_follow_each_other_until_there_is_no_next(self):
        page = '{"in_doubt":[{"id":"%d","topic":"a"}],"total":2,"next":%s}\n'
        for arguments in ([], ["--json"]):
            self.server.answers[:] = [(200, page % (1, '"1"')), (200, page % (2, "null"))]
            done = self.command("in-doubt", *arguments)
            self.assertEqual([asked[1] for asked in self.server.asked],
                             ["/in-doubt?limit=1000", "/in-doubt?limit=1000&after=1"])
            if arguments:
                self.assertEqual(done.stdout, page % (1, '"1"') + page % (2, "null"))
            else:
                self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ["ID", "1", "2"])

    def test_a_second_answer_that_begins_with_a_folded_line_does_no_harm(self):
        """libcurl before 8.1.1 frees the first answer's fields twice when a handle is used again (its issue 11101)."""
        page = '{"in_doubt":[{"id":"1","topic":"a"}],"total":9,"next":"1"}\n'
        self.server.answers[:] = [(200, page)] * 3
        self.server.first_lines = ["", " folded: onto nothing\r\n", " folded: onto nothing\r\n"]
        done = run("in-doubt", env={"SINKONCE_ADMIN_LISTEN": self.admin})
        self.assertIn(done.returncode, (0, 69), "some versions refuse such an answer, none may crash: %s" % done)
        self.assertIn("1  a", done.stdout)

    def test_rows_that_were_left_out_are_counted_on_stderr(self):
        self.server.answers[:] = [(200, '{"partitions":[{"topic":"a"}],"total":3,"next":null}')]
        self.assertIn("these are 1 of 3", self.command("partitions").stderr)

    def test_a_refusal_is_1_with_its_reason_on_stderr(self):
        refusal = '{"error":"not-found","detail":"nothing \\u001b[31m is there"}'
        self.server.answers[:] = [(404, refusal)]
        done = self.command("status", code=1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "sinkonce status: %s answers 404: nothing ?[31m is there\n" % self.admin)
        self.server.answers[:] = [(503, "busy")]
        self.assertIn("answers 503: it gives no reason", self.command("status", code=1).stderr)
        self.server.answers[:] = [(403, refusal)]
        done = self.command("status", "--json", code=1)
        self.assertEqual((done.stdout, json.loads(done.stderr.splitlines()[1])["error"]), ("", "not-found"))

    def test_an_answer_that_is_no_object_is_refused(self):
        for text in ("<html>", "[1]", "", '{"state":'):
            self.server.answers[:] = [(200, text)]
            done = self.command("status", code=1)
            self.assertEqual(done.stdout, "")
            self.assertIn("is it the admin port of sinkonce?", done.stderr)

    def test_nobody_there_is_69(self):
        for admin in ("127.0.0.1:9", "unix:/nonexistent/a.sock"):
            for arguments in (["status"], ["in-doubt"], ["replay", "close", "1", *WHY]):
                done = run(*arguments, "--admin", admin)
                self.assertEqual((done.returncode, done.stdout), (69, ""), done)
                self.assertIn("cannot be asked", done.stderr)

    def test_a_change_whose_answer_is_lost_may_have_been_made(self):
        warning = "may still do what was asked: look before you ask again"
        for arguments, is_change in ((["status"], False), (["replay", "close", "1", *WHY], True),
                                     (["in-doubt", "resolve", "1", "--applied", *WHY], True)):
            self.server.answers[:] = [(None, None)]
            done = self.command(*arguments, code=69)
            self.assertIn("has not answered", done.stderr)
            self.assertEqual(warning in done.stderr, is_change, done)
            self.assertEqual(len(self.server.asked), 1, "a change is not sent twice")
        self.assertNotIn(warning, run("replay", "close", "1", *WHY, "--admin", "127.0.0.1:9").stderr)

    def test_a_wrong_address_or_token_is_78_and_other_settings_do_not_matter(self):
        self.assertEqual(run("status", "--admin", "nonsense").returncode, 78)
        self.assertEqual(run("status", "--admin", "127.0.0.1:0").returncode, 78)
        self.command("status", code=78, env={"SINKONCE_ADMIN_TOKEN_FILE": "/nonexistent"})
        self.command("status", env={"SINKONCE_WAIT": "nonsense", "SINKONCE_NONSENSE": "1"})

    def test_a_wrong_combination_of_options_is_2_and_asks_nobody(self):
        for line in ("in-doubt resolve 1 --reason x", "in-doubt resolve 1 --applied --not-applied --reason x",
                     "in-doubt resolve --applied --reason x", "in-doubt resolve 1 --topic a --applied --reason x",
                     "in-doubt resolve --topic a --applied --reason x",
                     "in-doubt resolve --partition 1 --expect 1 --applied --reason x",
                     "in-doubt resolve --topic a --partition 1 --from 1 --expect 1 --applied --reason x",
                     "in-doubt resolve --topic a --from 1 --to 2 --expect 1 --applied --reason x",
                     "in-doubt resolve --topic a --partition 1 --from 2 --to 1 --expect 1 --applied --reason x",
                     "forget --topic a --from 1 --to 2 --expect 1 --reason x",
                     "replay open --topic a --partition 0 --from 3 --to 2 --for 1m --reason x"):
            done = self.command(*line.split(), code=2)
            self.assertEqual((done.stdout, self.server.asked), ("", []), line)
            self.assertRegex(done.stderr, "^sinkonce [a-z -]+: ")

    def test_the_token_comes_from_the_environment_or_a_file_and_never_into_a_message(self):
        path = os.path.join(self.folder, "token")
        with open(path, "w") as file:
            file.write("of-the-file\n")
        for arguments, env, expected in (
                ([], {}, None), ([], {"SINKONCE_ADMIN_TOKEN": "of-the-value"}, "Bearer of-the-value"),
                ([], {"SINKONCE_ADMIN_TOKEN_FILE": path}, "Bearer of-the-file"),
                (["--token-file", path], {"SINKONCE_ADMIN_TOKEN": "of-the-value"}, "Bearer of-the-file")):
            self.server.answers[:] = [(401, '{"detail":"no"}')]
            done = self.command("status", *arguments, env=env, code=1)
            self.assertEqual(self.server.asked[0][3].get("Authorization"), expected)
            self.assertNotIn("of-the", done.stderr)

    def test_the_token_may_come_from_a_pipe_or_from_stdin(self):
        for arguments, stdin in ((["--token-file", "-"], "of-stdin\n"), (["--token-file=-"], "of-stdin"),
                                 (["--token-file", "/dev/stdin"], "of-stdin\n")):
            self.command("status", *arguments, stdin=stdin, env={"SINKONCE_ADMIN_TOKEN": "of-the-value"})
            self.assertEqual(self.server.asked.pop()[3].get("Authorization"), "Bearer of-stdin")
        path = os.path.join(self.folder, "pipe")
        os.mkfifo(path)
        with concurrent.futures.ThreadPoolExecutor() as pool:  # whoever writes into it may come later
            asking = pool.submit(self.command, "status", "--token-file", path)
            with open(path, "w") as pipe:
                pipe.write("of-the-pipe\n")
            asking.result()
        self.assertEqual(self.server.asked.pop()[3].get("Authorization"), "Bearer of-the-pipe")
        for stdin, words in (("", "it is empty"), ("\n", "it is empty"), ("x" * 5000, "it holds more than 4096 bytes"),
                             ("two words", "SINKONCE_ADMIN_TOKEN becomes a bearer token")):
            done = self.command("status", "--token-file", "-", stdin=stdin, code=78)
            self.assertIn(words, done.stderr)
            self.assertNotIn("two words", done.stderr)
        self.assertEqual(self.server.asked, [])

    def test_health_does_not_check_whom_it_asks_and_shows_no_token(self):
        self.command("health", env={"SINKONCE_ADMIN_TOKEN": "s3cret"})
        self.assert_asked("GET", "/readyz")
        self.assertNotIn("Authorization", self.server.asked[0][3])

    def test_a_socket_in_the_file_system_is_asked_like_a_port(self):
        path = os.path.join(self.folder, "a.sock")
        server = UnixServer(path, Recorder)
        self.listen(server)
        self.assertEqual(run("status", "--admin", "unix:" + path).returncode, 0)
        self.assertEqual((server.asked[0][1], server.asked[0][3]["Host"]), ("/status", "localhost"))

    def test_proxies_of_the_environment_are_not_obeyed(self):
        self.command("status", env={"http_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"})
        self.assert_asked("GET", "/status")

    def test_a_port_with_a_certificate_is_asked_by_tls_and_its_certificate_is_checked(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")
        files = {}
        for name in ("ours", "other"):
            files[name] = os.path.join(self.folder, name + ".pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                            "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
                            "-keyout", files[name] + ".key", "-out", files[name]], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files["ours"], files["ours"] + ".key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.command("status", env={"SINKONCE_ADMIN_CERT_FILE": files["ours"]})
        self.assert_asked("GET", "/status")
        self.assertEqual(run("status", "--admin", "https://" + self.admin, "--ca-file", files["ours"]).returncode, 0)
        for arguments in (["--ca-file", files["other"]], []):
            done = run("status", "--admin", "https://" + self.admin, *arguments)
            self.assertEqual((done.returncode, done.stdout), (69, ""), done)
        env = {"SINKONCE_ADMIN_LISTEN": self.admin, "SINKONCE_ADMIN_CERT_FILE": files["other"]}
        self.assertEqual(run("health", env=env).returncode, 0)  # it lives, whatever it shows


class Alone(unittest.TestCase):
    """Commands that ask nobody."""

    def test_every_command_tells_what_it_takes(self):
        text = run("--help").stdout
        names = [line[2:20].strip() for line in text.splitlines() if line.startswith("  ") and line[2:3].strip()]
        self.assertIn("in-doubt resolve", names)
        for name in names[:names.index("--version")]:
            done = run(*name.split(), "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertTrue(done.stdout.startswith("usage: sinkonce %s" % name), done.stdout)
        self.assertEqual(run("help", "in-doubt").stdout.count("usage: "), 2)
        self.assertEqual(run("help", "teleport").returncode, 2)

    def explain(self, *arguments, body, env=None, code=0):
        done = run("explain", "--json", *arguments, stdin=body, env=env)
        self.assertEqual(done.returncode, code, done)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def test_explain_names_records_rule_and_what_would_be_sent(self):
        body = json.dumps([{"a": 1, "__topic": "orders", "__partition": 3, "__offset": 41}, {"b": 2}])
        found = self.explain(body=body, env={"SINKONCE_STRIP": "on"})
        self.assertEqual((found["shape"], found["rule"], found["record_count"], found["element_count"]),
                         ("json-array", "insert-field", 1, 2))
        record = found["records"][0]
        self.assertEqual((record["topic"], record["partition"], record["offset"]), ("orders", 3, 41))
        self.assertEqual(json.loads(body[record["begin"]:record["end"]])["a"], 1)
        self.assertEqual(json.loads(found["sent"]["body"]), [{"a": 1}, {"b": 2}])
        self.assertEqual((found["sent"]["body_bytes"], found["sent"]["rewritten"]), (len(found["sent"]["body"]), True))

    def test_explain_reads_header_fields_and_hides_credentials(self):
        found = self.explain("--header", "X-Kafka-Topic: orders", "--header", "x-kafka-partition:0", "--header",
                             "X-Kafka-Offset: 7", "--header", "Authorization: Basic c2VjcmV0", "--header",
                             "Content-Length: 99", "--path", "/in?x=1", "--method", "PUT", body="raw")
        self.assertEqual([(r["topic"], r["partition"], r["offset"]) for r in found["records"]], [("orders", 0, 7)])
        self.assertEqual((found["sent"]["method"], found["sent"]["target"], found["sent"]["body"]), ("PUT", "/in?x=1", "raw"))
        self.assertIn({"name": "Authorization", "value": "***"}, found["sent"]["fields"])

    def test_explain_says_what_is_not_sent_and_why(self):
        self.assertIsNone(self.explain(body="x", env={"SINKONCE_UNKEYED": "reject"})["sent"])
        found = self.explain(body="x")
        self.assertEqual((found["record_count"], found["sent"]["body"]), (0, "x"))
        batch = '[{"__topic":"t","__partition":0,"__offset":1},{"__topic":"t","__partition":0,"__offset":2}]'
        with tempfile.NamedTemporaryFile(suffix=".gz") as file:
            file.write(gzip.compress(batch.encode() + b" " * 4096))
            file.flush()
            for env, word in (({"SINKONCE_MAX_BODY": "1KiB"}, "SINKONCE_MAX_BODY"), ({"SINKONCE_MAX_RECORDS": "1"}, "RECORDS")):
                for mode, is_sent in (("enforce", False), ("observe", True)):
                    found = self.explain("--header", "Content-Encoding: gzip", file.name, body="", env={**env, "SINKONCE_MODE": mode})
                    self.assertEqual((found["sent"] is not None, word in found["decision"]), (is_sent, not is_sent), found)
        self.assertIn("would be answered with 413", self.explain(body="xxxx", env={"SINKONCE_MAX_BODY": "3B"}, code=1))
        self.assertIn("would be answered with 501", self.explain("--method", "BREW", body="", code=1))
        self.assertIn("did you mean SINKONCE_MODE", self.explain(body="", env={"SINKONCE_MOD": "x"}, code=78))
        self.assertIn("cannot be read", self.explain("/nonexistent", body="", code=1))

    def test_explain_says_what_becomes_of_a_batch_that_cannot_be_cut(self):
        one, other = ('{"__topic":"t","__partition":0,"__offset":%d}' % offset for offset in (1, 2))
        signed = ("--header", "Content-MD5: x")
        for elements, header, words in (((one, other), (), "those that the target has are left out"),
                                        ((one,), signed, "those that the target has are left out"),
                                        ((one, other), signed, "gets 503 when it is mixed"),
                                        ((one, '{"no":"coordinates"}'), signed, "once the target has one of them it gets 503")):
            found = self.explain(*header, body="[%s]" % ",".join(elements))
            self.assertIn(words, found["decision"])
            self.assertEqual(found["cuttable"], header == ())

    def test_explain_says_where_it_looked_in_vain_and_what_to_set(self):
        found = self.explain(body='[{"a":1}]')
        self.assertEqual((found["element_count"], found["element_without_record_count"]), (None, None))
        self.assertEqual(found["reason"], "it is well-formed, but names no topic, partition and offset")
        self.assertEqual(self.explain(body='{"a":1,}')["position"], 7)
        done = run("explain", stdin='[{"a":1}]')
        self.assertRegex(done.stdout, r"(?m)^decision +no rule matched: it is sent on untouched")
        self.assertRegex(done.stdout, r"(?m)^hint +name the places with SINKONCE_TOPIC, SINKONCE_PARTITION, SINKONCE_OFFSET")
        self.assertNotRegex(done.stdout, r"(?m)^element.* 0$")
        wrapped = '{"schema":{"type":"struct"},"payload":{"__topic":"orders","__partition":3,"__offset":41}}'
        for body in (wrapped, "[%s]" % wrapped, wrapped * 2):
            self.assertIn("value.converter.schemas.enable=false", self.explain(body=body)["hint"])
        self.assertIn("SINKONCE_ID", self.explain(body=wrapped + " " * 65536)["hint"])  # too large for a look
        found = self.explain(body=wrapped, env={"SINKONCE_%s" % name.upper(): "json:/payload/__" + name
                                                for name in ("topic", "partition", "offset")})
        self.assertEqual(found["records"][0]["offset"], 41)
        self.assertNotIn("hint", self.explain(body='{"__topic":"orders","__partition":3,"__offset":41}'))

    def test_explain_reads_files_and_shows_text_for_people(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"t":"\x7f","__topic":"orders","__partition":3,"__offset":41}')
            file.flush()
            done = run("explain", file.name)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^shape +single$")
        self.assertRegex(done.stdout, r"(?m)^orders +3 +41 ")
        self.assertNotIn("\x7f", done.stdout)


if __name__ == "__main__":
    harness.main()
