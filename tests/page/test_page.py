#!/usr/bin/env python3
"""The page in headless Chromium, before a real instance and the counting target: one test per story of stories.mjs.

Skipped (77) with a reason where Node, Chromium or playwright-core is missing.  PAGE_WORK is a folder that is kept: for
playwright-core, and for the pictures of the last run.
"""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "scenario"))

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "scenario", "drill"))

import drill  # noqa: E402
import harness  # noqa: E402
from harness import sinkonce  # noqa: E402

WORK = os.environ.get("PAGE_WORK") or os.path.join(HERE, "work")
BYTES_MAX = 100 * 1024
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def skip(reason):
    print("SKIP: %s" % reason)
    sys.exit(harness.EXIT_SKIPPED)


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return skip("no chromium")


def install():
    """playwright-core in WORK, as package.json names it."""
    if not shutil.which("node"):
        skip("no node")
    os.makedirs(WORK, exist_ok=True)
    if not os.path.isdir(os.path.join(WORK, "node_modules", "playwright-core")):
        if not shutil.which("npm"):
            skip("playwright-core is not there, and no npm to install it")
        shutil.copy(os.path.join(HERE, "package.json"), WORK)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=WORK,
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            skip("npm could not install playwright-core: %s" % done.stderr.strip().splitlines()[-1:])
    # Node looks for packages beside the importing file.
    shutil.copy(os.path.join(HERE, "stories.mjs"), WORK)


class Story(harness.Scenario):
    def run_story(self, story, settings=None, **more):
        if self.proxy is None:
            self.serve(**settings or {})
        env = {**os.environ, "CHROMIUM": chromium(), "ADMIN": "http://127.0.0.1:%d" % self.proxy.admin_port,
               "DATA": self.proxy.url, "CONTROL": "http://127.0.0.1:%d" % self.target.control_port, "PICTURES": WORK}
        return subprocess.run(["node", os.path.join(WORK, "stories.mjs"), story], env={**env, **more},
                              capture_output=True, text=True, timeout=240)

    def tell(self, story, **settings):
        """One story of stories.mjs, from an empty ledger to its end."""
        done = self.run_story(story, settings)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + sinkonce._tail(self.proxy.log))


class Test(Story):
    def test_from_the_alert_to_resolved_and_the_connector_goes_on(self):
        self.tell("alert_to_resolved")
        self.assertEqual([self.applied(offset) for offset in (3, 4, 5)], [1, 1, 1])

    def test_a_target_that_gives_no_success_is_what_needs_a_person(self):
        self.tell("target_down")

    def test_many_doubts_are_resolved_by_filter_once_their_number_is_typed(self):
        self.tell("many")

    def test_a_conflict_is_decided(self):
        self.is_journal_checked = False  # a topic that was created anew writes other records under the same keys
        self.tell("conflict")

    def test_a_partition_seen_first_in_its_middle_is_accepted(self):
        self.tell("first_sight", FIRST_SIGHT="hold")

    def test_a_replay_window_is_opened_used_and_closed(self):
        self.allowed_twice = (harness.key("orders", 0, 1),)
        self.tell("replay")
        self.assertEqual([self.applied(offset) for offset in (0, 1)], [1, 2])

    def test_the_tester_explains_and_keeps_every_digit(self):
        self.tell("tester")
        self.assertEqual(self.target.lines(), [])

    def test_the_whole_way_by_keyboard_alone(self):
        self.tell("keyboard")

    def test_the_mode_is_changed_connectors_are_drained_and_records_are_forgotten(self):
        self.is_journal_checked = False  # observe and forgetting let records through again
        self.tell("control")

    def test_a_refused_change_asks_for_the_token_and_keeps_it_in_memory_only(self):
        self.tell("token")

    def test_an_instance_that_does_not_answer_is_said_and_found_again(self):
        self.tell("silence")

    def test_long_names_huge_offsets_and_many_partitions_fit_on_every_screen(self):
        self.tell("looks")

    def test_conflicts_beyond_the_first_page_are_decided(self):
        self.is_journal_checked = False  # topics that were created anew
        self.tell("many_conflicts")

    def test_more_partitions_than_one_answer_tells_are_paged_through(self):
        self.tell("pages")

    def test_a_hidden_page_asks_nothing(self):
        self.tell("hidden")

    def test_texts_from_outside_stay_text(self):
        self.tell("texts")

    def test_the_files_are_few_small_and_known_to_the_browser(self):
        self.serve()
        total = 0
        for path, kind in (("/", "text/html"), ("/app.js", "text/javascript"), ("/app.css", "text/css")):
            status, fields, body = sinkonce.request(self.proxy.admin_port, "GET", path)
            self.assertEqual((status, fields["content-type"]), (200, kind + "; charset=utf-8"))
            self.assertEqual(fields["content-security-policy"], POLICY)
            self.assertEqual(fields["x-content-type-options"], "nosniff")
            total += len(body)
            for given in (fields["etag"], 'W/%s' % fields["etag"], '"other", %s' % fields["etag"], "*"):
                status, again, none = sinkonce.request(self.proxy.admin_port, "GET", path, headers={"If-None-Match": given})
                self.assertEqual((status, again["etag"], none), (304, fields["etag"], b""))
            self.assertEqual(sinkonce.request(self.proxy.admin_port, "GET", path, headers={"If-None-Match": '"x"'})[0], 200)
            status, head, none = sinkonce.request(self.proxy.admin_port, "HEAD", path)
            self.assertEqual((status, head["content-length"], none), (200, str(len(body)), b""))
            self.assertEqual(sinkonce.request(self.proxy.admin_port, "POST", path, b"{}")[0], 405)
        self.assertLess(total, BYTES_MAX)

    def test_nothing_is_parsed_as_markup_and_nothing_comes_from_elsewhere(self):
        folder = os.path.join(HERE, "..", "..", "proxy", "page")
        forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|"
                               r"localStorage|sessionStorage|document\.cookie|\bstyle=|\son\w+=")
        for name in ("index.html", "app.js", "app.css"):
            with open(os.path.join(folder, name)) as file:
                text = file.read()
            self.assertEqual(forbidden.findall(text), [], name)
            addresses = set(re.findall(r"https?://[^\s\"']+|@import|url\(", text)) - {"http://www.w3.org/2000/svg"}
            self.assertEqual(addresses, set(), name)


class Drill(Story, drill.Drill):
    def test_doubts_caused_by_resets_are_found_and_resolved_by_the_page_alone(self):
        self.cause()
        truth = [(topic, partition, str(offset), self.look_into_the_target(topic, partition, offset))
                 for topic, partition, offset in drill.APPLIED + drill.NOT_APPLIED]
        self.assertEqual([row[:2] for row in truth if row[3]], [record[:2] for record in drill.APPLIED])
        done = self.run_story("drill", TRUTH=json.dumps(truth))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        print(done.stdout, end="", flush=True)
        self.check_over()


class Controls(Story):
    """Stories go red on a page that is broken on purpose: what is replaced in its script, and by what."""

    is_journal_checked = False
    broken = {
        "a number rounded": ("tester", "text.replace(TOKENS, ", "text.replace(/$^/, "),
        "a resolution turned round": ("alert_to_resolved", "{ resolution, reason });\n            return",
                                      "{ resolution: \"not-applied\", reason });\n            return"),
        "no number asked": ("many", "words.count !== undefined && at", "false && at"),
        "text as markup": ("texts", "node.textContent = text", "node.innerHTML = text"),
        "the wrong mode": ("control", "call(\"PUT\", \"/mode\", { mode, reason })", "call(\"PUT\", \"/mode\", { mode: \"off\", reason })"),
        "focus lost": ("keyboard", "if (lost) focusOn(list);", ""),
        "polled while hidden": ("hidden", "document.visibilityState === \"visible\"", "true"),
        "a file from elsewhere": ("tester", "    start();\n})", "    fetch(\"http://127.0.0.1:9/\").catch(() => 0);\n    start();\n})"),
    }


def _add_controls():
    for name, (story, right, wrong) in Controls.broken.items():
        def test(self, story=story, right=right, wrong=wrong):
            done = self.run_story(story, BROKEN=json.dumps([right, wrong]), PATIENCE_MS="5000")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            if os.environ.get("SHOW"):
                print(done.stderr)
        setattr(Controls, "test_goes_red_on_" + name.replace(" ", "_"), test)


_add_controls()

if __name__ == "__main__":
    if os.environ.get("SINKONCE_BIN") is None:
        sys.exit("SINKONCE_BIN and TARGET_BIN name the programs")
    chromium()
    install()
    harness.main()
