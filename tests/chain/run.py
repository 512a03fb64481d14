#!/usr/bin/env python3
"""Chains on a real Kafka broker with real Connect workers.

    run.py [--bin SINKONCE] [--target TARGET] [--work FOLDER] CHAIN...

Chains:
  source   an exactly-once source and a transactional producer with aborted transactions, a sink worker that reads
           what is committed, sinkonce, the target; source worker, sink worker and sinkonce are killed
  oauth    a sink worker that logs in with tokens shorter than the flow (SASL/OAUTHBEARER): it authenticates again and
           again on the same connection (KIP-368), the broker cuts expired connections, and is killed and started again
  compare  six targets under the same faults, and what each holds then, as a table (compare.py; some minutes)

Prints one line of figures a chain, or the table.  Exit 0: all held; 1: some did not; 77: skipped, with the reason.
"""

import argparse
import os
import shutil
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(FOLDER, os.pardir, name) for name in ("e2e", "support")]

import compare
import kafka
import oauth
import source
from flow import Broken


def play_compare(cluster):
    rows, problems = compare.play(cluster, cluster.work)
    compare.print_table(rows)
    if problems:
        raise Broken("; ".join(problems))
    return [("targets", len(rows))]


CHAINS = {"source": source.play, "oauth": oauth.play, "compare": play_compare}


def run(chains, work, logs):
    """Play CHAINS one after the other on one broker; how many did not hold."""
    cluster = kafka.Cluster(work, logs, **oauth.broker())
    failed = 0
    try:
        cluster.start()
        for name in chains:
            started = time.monotonic()
            try:
                figures = ", ".join("%s %s" % figure for figure in CHAINS[name](cluster))
                print("%s: ok (%.0f s): %s" % (name, time.monotonic() - started, figures), flush=True)
            except (Broken, TimeoutError, RuntimeError) as problem:
                failed += 1
                print("%s: FAILED (%.0f s): %s" % (name, time.monotonic() - started, problem), flush=True)
            cluster.end_workers()
    finally:
        cluster.close()
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("SINKONCE_BIN"), help="sinkonce; default: SINKONCE_BIN")
    parser.add_argument("--target", default=os.environ.get("TARGET_BIN"), help="the target; default: TARGET_BIN")
    parser.add_argument("--work", default=os.path.join(os.getcwd(), "chain-work"), help="jars, classes and logs")
    parser.add_argument("chains", nargs="+", choices=sorted(CHAINS), metavar="CHAIN")
    arguments = parser.parse_args()
    if not (arguments.bin and arguments.target):
        parser.error("--bin and --target, or SINKONCE_BIN and TARGET_BIN, are needed")
    os.environ.update(SINKONCE_BIN=arguments.bin, TARGET_BIN=arguments.target)
    work = os.path.abspath(arguments.work)
    logs = os.path.join(work, "chain-logs")
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs)
    try:
        failed = run(arguments.chains, work, logs)
    except kafka.Missing as reason:
        print("skipped: %s" % reason)
        return 77
    print("%d passed, %d failed; logs in %s" % (len(arguments.chains) - failed, failed, logs))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
