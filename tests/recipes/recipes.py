#!/usr/bin/env python3
"""Each connector recipe with the recorded requests of its product: sinkonce runs with the settings that stand in the
recipe, and with no other but its addresses and its folder.  The records are found as recipes.cases states, a redelivery
is dropped, a known record is cut out of a batch that holds a new one, and all answers have the product's form.
"""

import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "scenario"))

import batches  # noqa: E402
from batches import Answer, BatchScenario, opened, packed, parts, sinkonce, stored  # noqa: E402

import recipe  # noqa: E402

RECIPES = {one.name: one for one in recipe.all_recipes()}
OURS = ("SINKONCE_TARGET", "SINKONCE_LISTEN", "SINKONCE_ADMIN_LISTEN", "SINKONCE_DATA_DIR")


def request_of(line, fields, body):
    """The bytes of a request, its body in one piece."""
    kept = ["%s: %s" % field for field in fields if field[0].lower() not in ("transfer-encoding", "content-length")]
    return "\r\n".join([line, *kept, "Content-Length: %d" % len(body), "", ""]).encode("latin-1") + body


def with_new_record(data, key):
    """The same request, with a record that nobody has seen at the place of KEY's."""
    line, fields, body = parts(data)
    coding = dict((name.lower(), value) for name, value in fields).get("content-encoding")
    offset = key.rpartition("/")[2]
    new = "9" * len(offset)
    number = re.compile(r"(?<![0-9])%s(?![0-9])" % offset)
    text, count = number.subn(new, opened(body, coding).decode("latin-1"))
    assert count, "the record's offset stands nowhere in the body"
    return request_of(number.sub(new, line), fields, packed(text.encode("latin-1"), coding)), key[:-len(offset)] + new


class Test(BatchScenario):
    settings = {}

    def serve_recipe(self, name):
        """Nothing of the harness's own settings: what the recipe says, and the addresses."""
        settings = {name: value for name, value in RECIPES[name].settings().items() if name not in OURS}
        self.proxy = sinkonce.Sinkonce(self.target.url, env=settings)
        self.addCleanup(self.proxy.close)
        self.addCleanup(self.after)
        self.proxy.start()

    def answer(self, data):
        reply = self.raw(data)
        return Answer(reply.status, {field.lower(): value for field, value in reply.fields}, reply.body)

    # the forms

    def assert_success(self, request, answer, outcome, keys):
        """What the product takes as success; OUTCOME None: the target's own answer."""
        self.assertEqual((answer.status, answer.outcome), (200, outcome), answer)
        self.assertNotIn("set-cookie", answer.headers)
        if request.startswith(("es-bulk", "opensearch")):
            items = batches.items_of(answer)
            self.assertEqual(len(items), len(keys))
            self.assertTrue(all(status < 300 for _, _, status in items), items)
        elif request.startswith("splunk"):
            self.assertEqual((answer.json()["text"], answer.json()["code"]), ("Success", 0))
        elif request == "dapr-bulk":
            self.assertEqual([(one["entryId"], one["status"]) for one in answer.json()["statuses"]],
                             [(str(number), "SUCCESS") for number in range(len(keys))])
        elif outcome == "duplicate" and len(keys) > 1:
            self.assertEqual(answer.body, b"")
        else:
            self.assertEqual(answer.body, b"ok\n")

    def assert_come_again(self, request, answer, error):
        """What makes the product send it again."""
        self.assertEqual(answer.status, 503, answer)
        self.assertIn("retry-after", answer.headers)
        if request.startswith("splunk"):
            self.assertEqual((answer.json()["text"], answer.json()["code"]), ("Server is busy", 9))
        elif request.startswith("clickhouse"):
            self.assertEqual(answer.headers["x-clickhouse-exception-code"], "210")
            self.assertRegex(answer.body, rb"^Code: 210\. DB::Exception:")
        elif error:
            self.assertEqual(answer.json()["error"], error, answer)

    # the rows

    def play(self, name, request, how, keys):
        self.serve_recipe(name)
        data = stored(request)
        if how == "none":
            return self.play_keyless(request, data)
        self.target.refuse()
        self.assert_come_again(request, self.answer(data), None)
        self.target.start()
        self.assert_success(request, self.answer(data), None, keys)
        self.assertEqual([seen.body for seen in self.written()], [parts(data)[2]])
        self.assertEqual(self.arrived(), keys)
        for key in keys:
            self.assertIn(self.proxy.record_state(key), ("applied", "below_window"))
        self.assert_success(request, self.answer(data), "duplicate", keys)
        self.assertEqual(self.written(1), [])
        if len(keys) > 1:
            self.play_overlap(request, data, how, keys)
        return None

    def play_overlap(self, request, data, how, keys):
        shortest = min(len(key) for key in keys)  # the long offsets also stand in the records as amounts
        overlap, new = with_new_record(data, [key for key in keys if len(key) == shortest][-1])
        answer = self.answer(overlap)
        if how == "whole":
            self.assert_come_again(request, answer, "signed")
            self.assertEqual(self.written(1), [])
        else:
            self.assert_success(request, answer, "partial", keys)
            self.assertEqual(self.arrived(1), [new])

    def play_keyless(self, request, data):
        for count in (1, 2):
            answer = self.answer(data)
            self.assertEqual((answer.status, answer.outcome), (200, None), answer)
            self.assertEqual([seen.body for seen in self.written()], [parts(data)[2]] * count)
        self.is_journal_checked = False
        self.assert_metric("unkeyed_records_total", 2)


def add_rows():
    for name, request, is_own, how, keys in recipe.cases():
        def test(self, row=(name, request, how, keys)):
            self.play(*row)
        words = re.sub(r"\W", "_", name.rpartition(".")[0] + ("_takes_" if is_own else "_takes_the_shape_of_") + request)
        setattr(Test, "test_" + words, test)


class TestFiles(unittest.TestCase):
    def test_every_recipe_has_a_row_and_every_row_a_recipe(self):
        self.assertEqual({row[0] for row in recipe.cases()}, set(RECIPES))

    def test_every_recipe_parses_in_its_own_format(self):
        for name, one in RECIPES.items():
            with self.subTest(name):
                try:
                    documents = one.documents()
                except ImportError:
                    self.skipTest("SKIP: python3-yaml is missing")
                self.assertTrue(all(isinstance(document, dict) and document for document in documents))
                if name.endswith(".properties"):
                    self.assertLessEqual({"name", "connector.class", "tasks.max", "topics"}, set(documents[0]))

    def test_every_connector_sends_to_sinkonce_and_not_to_the_target(self):
        for name, one in RECIPES.items():
            with self.subTest(name):
                lines = [line for line in one.text.splitlines() if not line.startswith("#")]
                configured = "\n".join(lines)
                target = one.settings()["SINKONCE_TARGET"].split("//")[1]
                self.assertNotIn(target, configured)
                if name not in ("dapr.yaml",):  # its sidecar calls the port in the pod's annotation
                    self.assertRegex(configured, r"8650|sinkonce\.example")

    def test_every_setting_named_anywhere_exists(self):
        known = subprocess.run([os.environ["SINKONCE_BIN"], "config", "env"], capture_output=True, text=True, check=True)
        known = set(re.findall(r"^#(SINKONCE_[A-Z_]+)=", known.stdout, re.MULTILINE))
        texts = {name: one.text for name, one in RECIPES.items()}
        with open(os.path.join(recipe.FOLDER, "README.md"), encoding="utf-8") as file:
            texts["README.md"] = file.read()
        for name, text in texts.items():
            with self.subTest(name):
                self.assertLessEqual(set(re.findall(r"SINKONCE_[A-Z_]*[A-Z]", text)), known)

    def test_the_timeouts_in_the_comment_are_those_that_hold_and_fit_into_each_other(self):
        defaults = {"SINKONCE_WAIT": "2s", "SINKONCE_TARGET_TIMEOUT": "120s"}
        printed = subprocess.run([os.environ["SINKONCE_BIN"], "config", "env"], capture_output=True, text=True, check=True)
        for setting, value in defaults.items():
            self.assertIn("\n#%s=%s\n" % (setting, value), printed.stdout)
        for name, one in RECIPES.items():
            with self.subTest(name):
                connector, wait, target = one.timeouts()
                settings = {**defaults, **one.settings()}
                self.assertEqual(settings["SINKONCE_WAIT"], "%ds" % wait)
                self.assertEqual(settings["SINKONCE_TARGET_TIMEOUT"], "%ds" % target)
                self.assertLess(wait, connector or wait + 1)

    def test_the_index_names_every_recipe_with_its_requests(self):
        with open(os.path.join(recipe.FOLDER, "README.md"), encoding="utf-8") as file:
            rows = dict(re.findall(r"^\| \[`([^`]+)`\].*\|([^|]*)\|$", file.read(), re.MULTILINE))
        wanted = {name: set() for name in RECIPES if name != "http-sink.properties"}
        for name, request, _, _, _ in recipe.cases():
            wanted.get(name, set()).add(request)
        named = {name: set(re.findall(r"`([a-z0-9-]+)`", cell)) for name, cell in rows.items()}
        self.assertEqual(named, wanted)


add_rows()

if __name__ == "__main__":
    batches.main()
