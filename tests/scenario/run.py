#!/usr/bin/env python3
"""Runs the scenarios, two files at a time: one line each, then the sum.

    SINKONCE_BIN=… TARGET_BIN=… run.py [-j N] [NAME ...]

A NAME is a part of a file's name.  The output of a file that fails is shown whole.  Exit 0 when none failed.
"""

import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LAST_LINE = re.compile(r"^tests: (\d+) passed, (\d+) failed, (\d+) skipped", re.M)
SKIPPED = re.compile(r"^(\S+) .*skipped '(.*)'$", re.M)


def run(path):
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-B", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = LAST_LINE.search(done.stdout)
    counts = [int(number) for number in found.groups()] if found else [0, 1, 0]
    if done.returncode not in (0, 77) and counts[1] == 0:
        counts[1] = 1
    return os.path.basename(path)[:-3], counts, done.stdout, time.monotonic() - started


def files(names):
    found = sorted(glob.glob(os.path.join(HERE, "scenario_*.py")))
    return [path for path in found if not names or any(name in os.path.basename(path) for name in names)]


def main(arguments):
    workers = 2
    if arguments[:1] == ["-j"]:
        workers, arguments = int(arguments[1]), arguments[2:]
    total = [0, 0, 0]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, path) for path in files(arguments)]):
            name, counts, output, seconds = done.result()
            total = [a + b for a, b in zip(total, counts)]
            print("%-4s %s: %d passed, %d failed, %d skipped (%.1f s)" %
                  ("FAIL" if counts[1] else "ok", name, *counts, seconds), flush=True)
            for test, reason in SKIPPED.findall(output):
                print("     skipped %s: %s" % (test, reason))
            if counts[1]:
                print(output, flush=True)
    print("%d passed, %d failed, %d skipped" % tuple(total))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
