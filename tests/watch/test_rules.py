#!/usr/bin/env python3
"""The alerts: well formed, each with a test that goes red without it, each explained in the runbook; the dashboard's form."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import watched
import harness

RUNBOOK_PARTS = ["**Meaning.**", "**Confirm.**", "**Do.**", "**Do not**"]
PANEL_TYPES = {"stat", "timeseries"}
UNITS = {"short", "s", "bytes", "ops", "reqps", "percentunit"}  # ids of Grafana's unit list


def promtool(*arguments, folder=watched.FOLDER):
    return subprocess.run(["promtool", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def rule_tests():
    """{alert: a file with its test alone}"""
    head, *parts = re.split(r"^(?=  - name: )", watched.text_of(watched.RULES_TEST), flags=re.M)
    return {part.split()[2]: head + part for part in parts}


@unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (package prometheus)")
class TestRules(unittest.TestCase):
    def test_promtool_finds_nothing(self):
        for arguments in (["check", "rules", watched.RULES], ["check", "config", "--syntax-only", "scrape.yml"],
                          ["test", "rules", watched.RULES_TEST]):
            done = promtool(*arguments)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_each_alert_has_a_test_that_is_red_without_it(self):
        rules, tests = watched.text_of(watched.RULES), rule_tests()
        self.assertEqual(sorted(tests), sorted(watched.alerts()))
        with tempfile.TemporaryDirectory() as folder:
            for alert in watched.alerts():
                silent = re.sub(r"(?s)(- alert: %s\n +expr: ).*?(\n +(for|labels):)" % alert, r"\1vector(0) > 1\2", rules)
                self.assertNotEqual(silent, rules)
                for name, text in ((watched.RULES, silent), (watched.RULES_TEST, tests[alert])):
                    with open(os.path.join(folder, os.path.basename(name)), "w") as file:
                        file.write(text)
                done = promtool("test", "rules", os.path.basename(watched.RULES_TEST), folder=folder)
                self.assertNotEqual(done.returncode, 0, alert + " is silent, and no test says so")
                self.assertIn(alert, done.stdout)

    def test_each_alert_says_what_and_how_bad_and_where_to_read_on(self):
        for alert, part in watched.alerts().items():
            self.assertRegex(part, r"severity: (critical|warning|info)\b", alert)
            self.assertRegex(part, r'summary: ".+"\n', alert)
            self.assertRegex(part, r'description: ".+"\n', alert)
            self.assertIn('runbook_url: "README.md#%s"' % alert.lower(), part)


class TestRunbook(unittest.TestCase):
    def test_each_alert_has_its_section_and_no_section_is_left_over(self):
        self.assertEqual(sorted(watched.runbook()), sorted(watched.alerts()))

    def test_each_section_says_what_it_means_how_to_confirm_what_to_do_and_what_not(self):
        for alert, section in watched.runbook().items():
            places = [section.find(part) for part in RUNBOOK_PARTS]
            self.assertNotIn(-1, places, "%s lacks one of %s" % (alert, RUNBOOK_PARTS))
            self.assertEqual(places, sorted(places), alert)


class TestDashboard(unittest.TestCase):
    def test_panels_are_whole(self):
        ids = [panel["id"] for panel in watched.dashboard()["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in watched.panels():
            with self.subTest(panel["title"]):
                self.assertIn(panel["type"], PANEL_TYPES)
                self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS)
                self.assertTrue(panel["description"].endswith("."))
                self.assertEqual(panel["datasource"]["uid"], "${datasource}")
                names = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(names), len(set(names)))

    def test_no_panel_covers_another_or_leaves_the_grid(self):
        taken = {}
        for panel in watched.dashboard()["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])):
                self.assertEqual(taken.setdefault(cell, panel["title"]), panel["title"])

    def test_variables_and_uid_are_those_that_links_rely_on(self):
        dashboard = watched.dashboard()
        self.assertEqual(dashboard["uid"], "sinkonce")
        self.assertEqual([v["name"] for v in dashboard["templating"]["list"]], ["datasource", "job", "instance"])

    def test_what_alerts_compare_and_the_runbook_names_is_shown(self):
        shown = {name for _, expression in watched.expressions() for name in watched.METRIC.findall(expression)}
        compared = {name for part in watched.alerts().values() for name in watched.METRIC.findall(part.split("labels:")[0])}
        self.assertEqual(sorted(compared - shown), [])
        for name in watched.METRIC.findall(watched.text_of(watched.RUNBOOK)):  # its greps know beginnings only
            self.assertTrue(any(one.startswith(name) for one in shown), name)

    def test_alerts_that_panels_point_at_exist(self):
        for panel in watched.panels():
            for alert in re.findall(r"\bSinkonce\w+", panel["description"]):
                self.assertIn(alert, watched.alerts(), panel["title"])


if __name__ == "__main__":
    harness.main()
