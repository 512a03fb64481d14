#!/usr/bin/env python3
"""Negative controls: scenarios against programs in which one promise is broken on purpose must go red.

SINKONCE_BROKEN_DIR is the folder of the programs sinkonce_without_NAME, SINKONCE_BIN the whole program, which must be
green on the same tests; TARGET_BIN is the counting target.
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# id, promise that is broken, scenario, which of its tests
CONTROLS = [
    ("N-01", "DEDUP", "scenario_a_duplicate_is_dropped", "test_C6_Z_11"),
    ("N-02", "PREREQ_GUARD", "scenario_target_answers_decide", "test_C_03"),
    ("N-05", "INTENT_COMMIT", "scenario_the_disk_is_waited_for", "test_P4_F_03"),
    ("N-06", "HEAD_COMPLETE", "scenario_target_answers_decide", "test_A3_C_10"),
    ("N-08", "DUPLICATE_LENGTH", "scenario_malformed_requests_are_refused", "what_is_refused"),
    ("N-01", "DEDUP", "scenario_batch_overlaps", "test_Z_05_half_known_batches_of_every_pattern_as_json_array"),
    ("N-01", "DEDUP", "scenario_batch_storm", "seed_1"),
    ("N-12", "RECOVERY", "scenario_batch_storm", "seed_1"),
    ("N-12", "RECOVERY", "scenario_a_doubt_is_held_until_it_is_resolved", "test_C3_F_04"),
]


def run(binary, scenario, only):
    """(tests that passed, tests that failed, output)"""
    env = {**os.environ, "SINKONCE_BIN": binary, "ONLY": only}
    done = subprocess.run([sys.executable, "-B", os.path.join(HERE, scenario + ".py")], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    last = [line.split() for line in done.stdout.splitlines() if line.startswith("tests: ")]
    return (int(last[-1][1]), int(last[-1][3]), done.stdout) if last else (0, 0, done.stdout)


def verdict(promise, scenario, only):
    """What is wrong with the control, or None; and the output that shows it."""
    broken = os.path.join(os.environ["SINKONCE_BROKEN_DIR"], "sinkonce_without_" + promise)
    if not os.path.exists(broken):
        return "there is no %s" % broken, ""
    passed, failed, output = run(os.environ["SINKONCE_BIN"], scenario, only)
    if failed or not passed:
        return "not green on the whole program", output
    _, failed, output = run(broken, scenario, only)
    return (None if failed else "stayed green"), output


def main():
    is_good = True
    for control, promise, scenario, only in CONTROLS:
        wrong, output = verdict(promise, scenario, only)
        print("%-4s %s without %s: %s" % ("FAIL" if wrong else "ok", control, promise, wrong or "red"), flush=True)
        if wrong:
            is_good = False
            print(output)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
