#!/usr/bin/env python3
"""The whole path: a real Kafka broker and a real Connect worker, sinkonce, and a counting target.

    run.py [--bin SINKONCE] [--target TARGET] [--work FOLDER] [--scenario a,b] [--control-only]

Scenarios, each with its control run without sinkonce where that can show duplicates:
  a  a plain run
  b  the target is slower than the connector's time-out
  c  the Connect worker is killed in mid-flow and started again
  d  sinkonce is killed in mid-flow and started again, twice
  e  connections are reset after, and before, the target has applied
  f  the topic is deleted and created again
  g  JSON arrays (Z-05, Z-06, A2, A3): slow answers, the worker killed, batches cut anew, connections reset
  h  lines (Z-05, Z-06, A2, A3): the same
  i  bulk requests (A8 too): the same, and items refused

Prints a table, and why a scenario failed.  Exit 0: all held; 1: some did not; 77: skipped, with the reason.
"""

import argparse
import os
import shutil
import sys
import time

import kafka
from sinkonce import wait_for

import checker
from flow import Broken, Flow, demand

BATCH_RECORDS = 6000
POLLS = (200, 60)  # records that the worker takes at once: a restart changes from one to the other


class Row:
    """One line of the table."""

    TITLES = ("scenario", "produced", "requests", "dup. without", "dup. with", "in doubt", "lost", "seconds")

    def __init__(self, name, guarded, control):
        figures = guarded.report().figures if guarded else {}
        without = control.report().figures["duplicates"] if control else "-"
        lost = figures.get("lost", "-")
        requests = guarded.target.stats()["requests"] if guarded else control.target.stats()["requests"]
        self.cells = [name, len((guarded or control).produced()), requests, without, figures.get("duplicates", "-"),
                      len(guarded.doubts_seen) if guarded else "-", lost, 0]


class Suite:
    def __init__(self, cluster, is_control_only):
        self.cluster, self.worker = cluster, cluster.new_worker().start()
        self.is_control_only = is_control_only

    def both(self, name, play, has_control=True, **options):
        """PLAY the scenario without and with sinkonce; the row.  Without it there must be duplicates, and no loss."""
        control = guarded = None
        if has_control:
            with Flow(self.cluster, self.worker, name, False, **options) as control:
                play(control)
                report = control.report()
                demand(report.figures["lost"] == 0, "%s lost records", control.name)
                demand(report.figures["duplicates"] > 0, "%s shows no duplicate: it proves nothing", control.name)
                row = Row(name, None, control)
        if not self.is_control_only:
            with Flow(self.cluster, self.worker, name, True, **options) as guarded:
                play(guarded)
                guarded.demand_clean()
                row = Row(name, guarded, control)
        return row

    def scenario_a(self):
        def play(flow):
            flow.produce(8000)
            flow.connect()
            flow.finish()
        return self.both("a", play, has_control=False)

    def scenario_b(self):
        def play(flow):
            flow.target.set(delay=2500, every=300)
            flow.produce(3000)
            flow.connect()
            flow.finish()
            flow.demand_redelivered()
        return self.both("b", play, timeout_ms=1000, env={"SINKONCE_WAIT": "700ms"})

    def scenario_c(self):
        def play(flow):
            flow.produce(6000)
            flow.connect()
            flow.wait_applied(2000)
            self.worker.kill()
            demand(flow.applied() < 6000, "the flow was over before the kill")
            self.worker.start()
            self.worker.wait_ready()
            flow.finish()
            flow.demand_redelivered()
        return self.both("c", play)

    def scenario_d(self):
        def play(flow):
            flow.produce(5000)
            flow.connect()
            flow.wait_applied(1500)
            flow.proxy.kill()
            self.check_after_kill(flow)
            flow.wait_applied(flow.applied() + 1000)
            self.stall_all(flow)
            flow.proxy.kill()
            held = sorted(entry["key"] for entry in flow.target.faulted())
            truth = {entry["key"]: entry["applied"] for entry in flow.target.faulted()}
            demand(set(truth.values()) == {True, False}, "only one kind of doubt was made: %s", truth)
            flow.target.clear()
            flow.proxy.start()
            doubts = flow.proxy.doubt_keys()
            demand(doubts == held, "held at the kill: %s; in doubt: %s", held, doubts)
            flow.resolve_by_journal(doubts)
            flow.finish()
        return self.both("d", play, has_control=False, form="headers")

    def check_after_kill(self, flow):
        """Killed at no chosen moment: what is in doubt is on the wire, and all else is known for what it is."""
        wait_for(lambda: flow.target.stats()["open"] == 0, "the target to see the connections go")
        demand(flow.applied() < 5000, "the flow was over before the kill")
        acked, candidates = flow.acked(), flow.first_unacked()
        applied = {key for key, _ in flow.journal()}
        flow.proxy.start()
        doubts = set(flow.proxy.doubt_keys())
        demand(doubts <= candidates, "in doubt, and cannot have been on the wire: %s", doubts - candidates)
        for key in list((candidates - doubts) & applied) + sorted(acked)[-200:]:
            state = flow.proxy.record_state(key)
            demand(state == "applied", "%s was applied, is not in doubt, and is %s", key, state)
        flow.resolve_by_journal(sorted(doubts))

    def stall_all(self, flow):
        """Let every task's next request hang, each second one after its application."""
        flow.target.set(cut="answer", end="stall", apply="no", every=2)
        flow.target.add(cut="answer", end="stall")
        flow.wait(lambda: len(flow.target.held()) == len(flow.first_unacked()), "every task's request to hang",
                  every=0.1)

    def scenario_e(self):
        def play(flow):
            flow.target.set(cut="answer", end="rst", every=250)
            flow.target.add(cut="answer", end="rst", apply="no", every=400)
            flow.produce(3000)
            flow.connect()
            if not flow.proxy:
                flow.finish()
                return
            flow.finish(also=lambda: flow.resolve_by_journal(flow.proxy.doubt_keys()))
            flow.demand_doubts_exact()
            flow.demand_redelivered()
        return self.both("e", play)

    def scenario_f(self):
        with Flow(self.cluster, self.worker, "f", True) as flow:
            flow.produce(1000)
            flow.connect()
            flow.finish()
            flow.demand_clean()
            self.recreate(flow)
            flow.connect()
            flow.wait(flow.proxy.conflicts, "a conflict to be listed")
            demand(flow.applied() == 1000, "something of the new topic was sent before it was decided")
            demand(not flow.acked(), "something of the new topic was dropped silently")
            flow.finish(also=lambda: self.decide(flow))
            journal = flow.journal()
            demand(len(journal) == 2000, "applied: %d of 2000", len(journal))
            old, new = journal[:1000], journal[1000:]
            report = checker.check(new, flow.produced(), flow.acked(), in_order=True)
            demand(report.is_good, "; ".join(report.lines()))
            demand({key for key, _ in old} == {key for key, _ in new}, "the two topics do not cover each other")
            row = Row("f", flow, None)
            row.cells[1] = 2000
            row.cells[4] = 2000 - len(set(journal))
            return row

    def recreate(self, flow):
        self.worker.delete_connector(flow.name)
        wait_for(lambda: self.cluster.try_feed("delete", flow.topic), "the topic to be deleted", 60)
        for path in (flow.produced_file, flow.acked_file):
            os.rename(path, path + ".old")
        flow.produce(1000, "second")

    def decide(self, flow):
        for conflict in flow.proxy.conflicts():
            status, answer = flow.proxy.decide(conflict["id"], "new-topic")
            demand(status in (200, 404), "deciding %s: %s %s", conflict, status, answer)

    def batches(self, name, form):
        def play(flow):
            flow.target.set(delay=2500, every=15)
            flow.target.add(delay=25)
            flow.produce(BATCH_RECORDS)
            flow.connect()
            flow.wait_applied(BATCH_RECORDS // 4)
            self.kill_worker_in_flight(flow)
            self.break_off(flow)
            self.worker.start(sum(POLLS) - self.worker.max_poll_records)
            self.worker.wait_ready()
            flow.finish(also=lambda: flow.proxy and flow.resolve_by_journal(flow.proxy.doubt_keys()))
            flow.demand_cut_anew()
            flow.demand_redelivered()
            self.demand_all_faults(flow)
            if flow.proxy:
                flow.demand_doubts_exact()
                demand(flow.proxy.metric("sinkonce_batches_rewritten_total") > 0, "%s: no batch was cut", flow.name)
        return self.both(name, play, form=form, timeout_ms=1000, env={"SINKONCE_WAIT": "700ms"})

    def kill_worker_in_flight(self, flow):
        """Kill the worker while the target has applied a batch of which the connector knows nothing."""
        flow.target.set(delay=2500)
        requests = flow.target.stats()["requests"]
        flow.wait(lambda: flow.target.stats()["requests"] > requests and flow.target.held(), "a batch to be held")
        self.worker.kill()
        demand(flow.applied() < BATCH_RECORDS, "the flow was over before the kill")

    def break_off(self, flow):
        flow.target.set(cut="answer", end="rst", every=9)
        flow.target.add(cut="answer", end="rst", apply="no", every=13)
        if flow.form == "bulk":
            flow.target.add(refuse=7, every=5)
        flow.target.add(delay=2500, every=20)

    def demand_all_faults(self, flow):
        kinds = {(entry["applied"], entry["broken_off"]) for entry in flow.target.faulted()}
        wanted = {(True, False), (True, True), (False, True)} | ({(False, False)} if flow.form == "bulk" else set())
        demand(kinds == wanted, "%s: faults that were met, as (applied, broken off): %s", flow.name, kinds)

    def scenario_g(self):
        return self.batches("g", "array")

    def scenario_h(self):
        return self.batches("h", "lines")

    def scenario_i(self):
        return self.batches("i", "bulk")


def run(arguments, logs):
    cluster = kafka.Cluster(arguments.work, logs)
    rows, failures = [], []
    try:
        cluster.start()
        suite = Suite(cluster, arguments.control_only)
        suite.worker.wait_ready()
        for letter in arguments.scenario.split(","):
            started, verdict = time.monotonic(), "ok"
            try:
                suite.worker.revive()
                row = getattr(suite, "scenario_" + letter)()
                row.cells[-1] = "%.1f" % (time.monotonic() - started)
                rows.append(row.cells)
            except (Broken, TimeoutError, RuntimeError) as problem:
                failures.append((letter, problem))
                verdict = "FAILED"
            print("scenario %s: %s" % (letter, verdict), flush=True)
    finally:
        cluster.close()
    return rows, failures


def print_table(rows):
    table = [Row.TITLES] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(Row.TITLES))]
    for line in table:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", default=os.environ.get("SINKONCE_BIN"), help="sinkonce; default: SINKONCE_BIN")
    parser.add_argument("--target", default=os.environ.get("TARGET_BIN"), help="the target; default: TARGET_BIN")
    parser.add_argument("--work", default=os.path.join(os.getcwd(), "e2e-work"), help="jars, classes and logs")
    parser.add_argument("--scenario", default="a,b,c,d,e,f,g,h,i")
    parser.add_argument("--control-only", action="store_true", help="the runs without sinkonce alone")
    arguments = parser.parse_args()
    if not (arguments.target and (arguments.bin or arguments.control_only)):
        parser.error("--bin and --target, or SINKONCE_BIN and TARGET_BIN, are needed")
    os.environ.update(SINKONCE_BIN=arguments.bin or "", TARGET_BIN=arguments.target)
    arguments.work = os.path.abspath(arguments.work)
    logs = os.path.join(arguments.work, "logs")
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs)
    started = time.monotonic()
    try:
        rows, failures = run(arguments, logs)
    except kafka.Missing as reason:
        print("skipped: %s" % reason)
        return 77
    print_table(rows)
    for letter, problem in failures:
        print("scenario %s: %s" % (letter, problem))
    print("%d passed, %d failed" % (len(rows), len(failures)))
    print("%.0f s; logs in %s" % (time.monotonic() - started, logs))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
