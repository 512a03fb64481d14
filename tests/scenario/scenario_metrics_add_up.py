#!/usr/bin/env python3
"""Every record is counted once and under its end; every name is there from the start, with 0."""

import re

import harness

NAMES = """applied_records_total duplicate_records_total rejected_records_total not_sent_records_total busy_records_total
conflict_records_total unkeyed_records_total records_total would_drop_records_total below_window_records_total first_sight_total
in_doubt_records in_doubt_oldest_timestamp_seconds in_doubt_total in_doubt_resolved_total http_requests_total
http_request_duration_seconds overhead_duration_seconds http_requests_in_flight http_refused_total client_aborts_total
batch_records target_attempts_total target_responses_total target_errors_total target_duration_seconds
target_connects_total target_last_success_timestamp_seconds ledger_used_bytes ledger_max_bytes
ledger_created_timestamp_seconds ledger_commits_total ledger_intervals ledger_errors_total build_info mode""".split()
PROCESS = "process_cpu_seconds_total process_resident_memory_bytes process_open_fds process_start_time_seconds".split()
SAMPLE = re.compile(r'^[a-z_]+(\{[a-z_]+="[^"\\]*"(,[a-z_]+="[^"\\]*")*\})? [-+0-9.eEInfNa]+$')


class Test(harness.Scenario):
    def text(self):
        status, text = self.proxy.admin("GET", "/metrics")
        self.assertEqual(status, 200)
        return text

    def test_every_metric_of_the_table_is_there_from_the_start(self):
        self.serve()
        typed = dict(re.findall(r"^# TYPE (\S+) (\S+)$", self.text(), re.M))
        missing = [name for name in ["sinkonce_" + name for name in NAMES] + PROCESS if name not in typed]
        self.assertEqual(missing, [])
        self.assertEqual([n for n, kind in typed.items() if (kind == "counter") != n.endswith("_total")], [])

    def test_each_line_is_well_formed_and_each_name_has_its_help_and_type_once(self):
        self.serve()
        self.send(1)
        names, samples = [], []
        for line in self.text().splitlines():
            if line.startswith("# TYPE "):
                names.append(line.split()[2])
            elif not line.startswith("#"):
                self.assertRegex(line, SAMPLE)
                samples.append(line.rsplit(" ", 1)[0])
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(samples), len(set(samples)))

    def test_the_parts_of_records_total_are_told_apart(self):
        self.serve(WAIT="0", IDENTITY="body")
        self.send(1)                                             # applied
        self.send(1)                                             # duplicate
        self.target.set(status=400, next=1)
        self.send(2)                                             # rejected
        self.target.set(cut="answer", end="rst", next=1)
        self.send(3)                                             # entered in doubt
        self.send(3)                                             # busy
        self.assertEqual(self.send(1, other=1).status, 503)      # conflict
        self.proxy.post("/in", b"no coordinates")                # unkeyed
        self.target.refuse()
        self.target.drop()
        self.send(4, "other")                                    # not sent
        for part, count in (("applied", 1), ("duplicate", 1), ("rejected", 1), ("entered_in_doubt", 1), ("busy", 1),
                            ("conflict", 1), ("unkeyed", 1), ("not_sent", 1)):
            self.assert_metric(part + "_records_total", count)
        self.assert_metric("records_total", 8)
        self.target.listen()

    def test_requests_are_counted_by_method_and_status(self):
        self.serve()
        self.send(1)
        self.send(1)
        self.target.set(status=404, next=1)
        self.proxy.send("GET", "/x")
        now = self.proxy.metrics()
        self.assertEqual(now['sinkonce_http_requests_total{method="POST",code="200"}'], 2)
        self.assertEqual(now['sinkonce_http_requests_total{method="GET",code="404"}'], 1)
        self.assert_metric("target_attempts_total", 2)
        self.assertGreaterEqual(now["sinkonce_ledger_commits_total"], 2)


if __name__ == "__main__":
    harness.main()
