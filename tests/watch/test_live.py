#!/usr/bin/env python3
"""A real Prometheus scrapes a real sinkonce: every rule and every panel finds data, no name is one that does not exist."""

import json
import os
import re
import shutil
import tempfile
import unittest
import urllib.parse

import watched
import harness
import sinkonce
from sinkonce import wait_for

CONFIG = """global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: sinkonce
    static_configs: [{targets: ["127.0.0.1:%d"]}]
"""
# Without probes in the settings there is nothing to divide or to draw a quantile of: NaN, or no sample, is right.
THRESHOLD = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(bool\s+)?[0-9.]+(e[+-][0-9]+)?\s*$")


class Prometheus:
    def __init__(self, scraped_port):
        self.folder = tempfile.mkdtemp(prefix="sinkonce-prometheus-")
        self.port = sinkonce.free_port()
        config = os.path.join(self.folder, "prometheus.yml")
        with open(config, "w") as file:
            file.write(CONFIG % (watched.RULES, scraped_port))
        self.process = sinkonce.Process(
            ["prometheus", "--config.file", config, "--storage.tsdb.path", os.path.join(self.folder, "data"),
             "--web.listen-address", "127.0.0.1:%d" % self.port, "--log.level", "warn"],
            os.path.join(self.folder, "log"))

    def get(self, path):
        status, _, body = sinkonce.request(self.port, "GET", path)
        answer = json.loads(body)
        if status != 200:
            raise RuntimeError("%s: %s" % (path, answer))
        return answer["data"]

    def query(self, expression):
        """[(labels, value)]"""
        data = self.get("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        return [(row["metric"], float(row["value"][1])) for row in data["result"]]

    def scrapes(self):
        try:
            found = self.query('count_over_time(sinkonce_build_info[5m])')
        except (OSError, RuntimeError, ValueError):
            return 0
        return found[0][1] if found else 0

    def close(self):
        self.process.end()
        shutil.rmtree(self.folder, ignore_errors=True)


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
class TestLive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = watched.World()
        cls.addClassCleanup(cls.world.__exit__)
        cls.prometheus = Prometheus(cls.world.proxy.admin_port)
        cls.addClassCleanup(cls.prometheus.close)
        logs = [cls.prometheus.process.log]
        for number in range(1, 4):
            cls.world.everything(number)
            wait_for(lambda: cls.prometheus.scrapes() > 2 * number, "%d scrapes" % (2 * number), 60, logs)
        wait_for(lambda: cls.prometheus.query("sinkonce:records:rate5m"), "the rules to be evaluated", 60, logs)

    def rules(self, kind):
        return [rule for group in self.prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]
                if rule["type"] == kind]

    def assert_data(self, expression, name):
        found = self.prometheus.query(expression)
        self.assertTrue(found, "%s: no data for %s" % (name, expression))
        self.assertTrue(any(value == value for _, value in found), "%s: only NaN for %s" % (name, expression))

    def test_the_rules_are_healthy_and_record_something(self):
        for rule in self.rules("recording"):
            self.assertEqual(rule["health"], "ok", rule)
            self.assert_data(rule["name"], rule["name"])

    def test_what_each_alert_compares_is_there(self):
        for rule in self.rules("alerting"):
            self.assertEqual(rule["health"], "ok", rule)
            for part in re.split(r"\s+(?:and|or)\s+", rule["query"]):
                if not part.startswith("absent("):
                    self.assert_data(THRESHOLD.sub("", part), rule["name"])

    def test_the_alerts_of_what_has_happened_are_on(self):
        active = {alert["labels"]["alertname"] for alert in self.prometheus.get("/api/v1/alerts")["alerts"]}
        self.assertLessEqual({"SinkonceInDoubt", "SinkonceConflict", "SinkonceUnkeyed"}, active)
        self.assertFalse({"SinkonceDown", "SinkonceLedgerFailing", "SinkonceLedgerFull", "SinkonceNotEnforcing"} & active)

    def test_annotations_are_sentences_with_their_values_filled_in(self):
        for alert in self.prometheus.get("/api/v1/alerts")["alerts"]:
            self.assertNotIn("error", alert["annotations"]["summary"].lower().split(":")[0])
            self.assertNotRegex(alert["annotations"]["summary"], r"[{}]|<no value>")

    def test_each_panel_of_the_dashboard_finds_data(self):
        for title, expression in watched.expressions():
            with self.subTest(title):
                self.assert_data(expression, title)

    def test_the_variables_of_the_dashboard_find_values(self):
        self.assertEqual(self.prometheus.get("/api/v1/label/job/values"), ["sinkonce"])
        self.assertEqual(len(self.prometheus.get("/api/v1/label/instance/values")), 1)

    def test_no_name_in_rules_dashboard_and_runbook_is_one_that_does_not_exist(self):
        known = watched.metric_names(self.world.proxy)
        known |= {watched.SUFFIX.sub("", name) for name in known}
        texts = [watched.text_of(watched.RULES)] + [expression for _, expression in watched.expressions()]
        texts += re.findall(r"`(sinkonce_[a-z_]+)`", watched.text_of(watched.RUNBOOK))
        for text in texts:
            for name in watched.METRIC.findall(text):
                self.assertIn(name, known)


if __name__ == "__main__":
    harness.main()
