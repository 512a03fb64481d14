#!/usr/bin/env python3
"""Negative controls: a harness that cannot fail proves nothing.

    run.py          the quick ones
    run.py --all    every one
    run.py N-03     those of one id

Each row names a promise, the program in which it is broken (-DSINKONCE_BREAK=NAME builds all of it so), and the harness
that watches over it: it must be green on the whole program and red on the broken one.  Needs SINKONCE_BUILD_DIR.
"""

import os
import subprocess
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("SINKONCE_BUILD_DIR", "build/Release")
SKIPPED = 77


def path_of(program, promise=None):
    """The whole program, or the one without PROMISE."""
    whole = {"sinkonce": "proxy", "test_images": "tests/crash", "chaos": "tests/scenario", "test_http1_chunk": "tests/proxy",
             "target": "tests/support", "fail_nth.so": "tests/torture"}
    if promise is None:
        return os.path.join(BUILD, whole[program], program)
    return os.path.join(BUILD, "tests/controls", "%s_without_%s" % (program, promise))


class Scenario:
    """Tests of a scenario whose names contain ONLY."""

    def __init__(self, name, only):
        self.name, self.only = name, only

    def command(self, promise):
        return [sys.executable, "-B", os.path.join(TESTS, "scenario", self.name + ".py")], {
            "SINKONCE_BIN": path_of("sinkonce", promise), "TARGET_BIN": path_of("target"), "ONLY": self.only}

    @staticmethod
    def is_red(code, output):
        last = [line.split() for line in output.splitlines() if line.startswith("tests: ")]
        if not last or last[-1][1] == last[-1][3] == "0":
            raise ValueError("no test ran")
        return last[-1][3] != "0"

    def __str__(self):
        return "%s %s" % (self.name, self.only)


class Program:
    """A test program of its own."""

    def __init__(self, name, **env):
        self.name, self.env = name, env

    def command(self, promise):
        return [path_of(self.name, promise)], self.env

    @staticmethod
    def is_red(code, output):
        return code != 0

    def __str__(self):
        return self.name


class Torture(Program):
    """F-10, over some calls of the story."""

    def __init__(self, *arguments, runs):
        super().__init__("torture", SINKONCE_TORTURE_RUNS=str(runs), FAIL_NTH_LIB=path_of("fail_nth.so"))
        self.arguments = list(arguments)

    def command(self, promise):
        return [sys.executable, "-B", os.path.join(TESTS, "torture", "run.py")] + self.arguments, {
            **self.env, "SINKONCE_BIN": path_of("sinkonce", promise)}

    def __str__(self):
        return "torture " + " ".join(self.arguments)


# id, promise that is broken, harness, is it one of the quick ones
CONTROLS = [
    ("N-01", "DEDUP", Scenario("scenario_a_duplicate_is_dropped", "test_C6_Z_11"), True),
    ("N-01", "DEDUP", Scenario("scenario_batch_overlaps", "half_known_batches_of_every_pattern_as_json_array"), False),
    ("N-02", "PREREQ_GUARD", Scenario("scenario_target_answers_decide", "test_C_03"), True),
    ("N-02", "PREREQ_GUARD", Program("chaos"), True),
    ("N-03", "NOSYNC", Program("test_images", SINKONCE_IMAGES="200"), True),
    ("N-04", "RESULT_COMMIT", Program("test_images", SINKONCE_IMAGES="400"), False),
    ("N-04", "RESULT_COMMIT", Scenario("scenario_the_disk_is_waited_for", "test_P4_F_06"), True),
    ("N-05", "INTENT_COMMIT", Program("test_images", SINKONCE_IMAGES="400"), False),
    ("N-05", "INTENT_COMMIT", Scenario("scenario_the_disk_is_waited_for", "test_P4_F_03"), True),
    ("N-06", "HEAD_COMPLETE", Scenario("scenario_target_answers_decide", "test_A3_C_10"), True),
    ("N-06", "HEAD_COMPLETE", Program("chaos"), False),
    ("N-07", "BODY_BYTES", Scenario("scenario_requests_pass_as_they_came", "test_C_33_a_request"), True),
    ("N-08", "DUPLICATE_LENGTH", Scenario("scenario_malformed_requests_are_refused", "what_is_refused"), True),
    ("N-09", "LEAK", Torture("--moment", "start", runs=8), True),
    ("N-10", "ALLOCATION", Torture("--moment", "serve", "--calls", "calloc", runs=1200), False),
    ("N-11", "SPLIT", Program("test_http1_chunk"), True),
    ("N-12", "RECOVERY", Scenario("scenario_a_doubt_is_held_until_it_is_resolved", "test_C3_F_04"), True),
]


def run(harness, promise):
    """(is it red, output)"""
    command, env = harness.command(promise)
    done = subprocess.run(command, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    if done.returncode == SKIPPED:
        raise ValueError("it was skipped")
    return harness.is_red(done.returncode, done.stdout), done.stdout


def verdict(promise, harness):
    """What is wrong with the control, or None; and the output that shows it."""
    output = ""
    try:
        is_red, output = run(harness, None)
        if is_red:
            return "not green on the whole program", output
        is_red, output = run(harness, promise)
        return (None if is_red else "stayed green"), output
    except (OSError, ValueError) as error:
        return str(error), output


def check_checker():
    """N-13: the checker itself, on histories written by hand."""
    done = subprocess.run([sys.executable, "-B", os.path.join(TESTS, "support", "test_checker.py")], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return (None if done.returncode == 0 else "a broken history passed"), done.stdout


def main(arguments):
    wanted = [word for word in arguments if word != "--all"]
    chosen = [row[:3] for row in CONTROLS if (row[0] in wanted if wanted else row[3] or "--all" in arguments)]
    if not wanted or "N-13" in wanted:
        chosen.append(("N-13", None, "the checker on histories written by hand"))
    is_good = bool(chosen)
    for control, promise, harness in chosen:
        started = time.monotonic()
        wrong, output = verdict(promise, harness) if promise else check_checker()
        print("%-4s %s without %s: %s: %s, %.0f s" % ("FAIL" if wrong else "ok", control, promise or "a true history", harness,
                                                    wrong or "red", time.monotonic() - started), flush=True)
        if wrong:
            is_good = False
            print(output)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
