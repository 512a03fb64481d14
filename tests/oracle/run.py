#!/usr/bin/env python3
"""F-00, the exactly-once oracle.

    SINKONCE_BIN=… [DISK_FAULT_LIB=…] run.py [--seed N | --seeds A-B] [--jobs J] [--minutes M] [--results FILE]

Each seed is a run of its own: connectors, a target and a nemesis (plan.py says which), and the checks of checks.py at its
end.  Without --seed and --seeds: the seeds of every build.  A seed that breaks something keeps its folder and prints the
command that runs it again.  With --results each seed adds a line to FILE, and seeds that stand there are left out: a
thousand seeds can be run in slices: run.py --seeds 1-1000 --jobs 3 --minutes 20 --results FILE.
--red: the program is broken on purpose; succeed at the first seed that says so.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = list(range(1, 21))  # of every build
SECONDS_MAX = 120


def run_seed(seed, folder):
    """In a process of its own: (figures, what is wrong)."""
    import checks
    import history
    import world
    from plan import Plan
    one = world.World(Plan(seed), folder)
    try:
        one.run()
        error = None
    except Exception as problem:  # reported as a result
        error = "%s: %s" % (type(problem).__name__, problem)
        import traceback
        traceback.print_exc()
    finally:
        one.close()
    done = checks.check(history.read(one.history.path))
    found = list(done.lines())[1:] + ([error] if error else [])
    return dict(done.figures), found, bool(done.breaches)


def child(seed, folder):
    figures, found, is_breach = run_seed(seed, folder)
    print("result " + json.dumps({"seed": seed, "wrong": found, "is_breach": is_breach, "figures": figures}), flush=True)
    os._exit(1 if found else 0)  # threads of the target may still wait


def start(seed, given):
    """One seed, from the outside: its result."""
    folder, began = tempfile.mkdtemp(prefix="sinkonce-oracle-%d-" % seed, dir=given.work), time.monotonic()
    command = [sys.executable, "-B", os.path.abspath(__file__), "--child", folder, "--seed", str(seed)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
        output = done.stdout
    except subprocess.TimeoutExpired as over:
        output = (over.stdout or b"").decode(errors="replace") if isinstance(over.stdout, bytes) else over.stdout or ""
    lines = [line for line in output.splitlines() if line.startswith("result ")]
    result = json.loads(lines[-1][7:]) if lines else {
        "seed": seed, "wrong": ["no result: " + output[-2000:]], "is_breach": False, "figures": {}}
    result.update(seconds=round(time.monotonic() - began, 1), folder=folder)
    if result["wrong"] and not given.red:
        with open(os.path.join(folder, "output"), "w") as file:
            file.write(output)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def say(result):
    figures = " ".join("%s=%d" % pair for pair in result["figures"].items())
    print("%-4s seed %d (%.1f s) %s" % ("FAIL" if result["wrong"] else "ok", result["seed"], result["seconds"], figures), flush=True)
    for line in result["wrong"]:
        print("     " + line, flush=True)
    if result["wrong"]:
        print("     again: %s --seed %d      kept: %s" % (os.path.abspath(__file__), result["seed"], result["folder"]), flush=True)


def known(path):
    if not path or not os.path.exists(path):
        return []
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def wanted(given):
    if given.seed is not None:
        return [given.seed]
    if given.seeds:
        first, _, last = given.seeds.partition("-")
        return list(range(int(first), int(last or first) + 1))
    import world
    return SEEDS[:8] if world.harness.is_sanitized() else SEEDS


def run_all(given):
    done_before = known(given.results)
    skipped = {result["seed"] for result in done_before}
    left = iter([seed for seed in wanted(given) if seed not in skipped])
    ends_at = time.monotonic() + given.minutes * 60 if given.minutes else None
    results, running = list(done_before), set()
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        while True:
            is_over = (ends_at and time.monotonic() > ends_at) or (given.red and any(one["is_breach"] for one in results))
            while len(running) < given.jobs and not is_over:
                seed = next(left, None)
                if seed is None:
                    break
                running.add(pool.submit(start, seed, given))
            if not running:
                return results
            finished, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for one in finished:
                results.append(one.result())
                say(results[-1])
                if given.results:
                    with open(given.results, "a") as out:
                        out.write(json.dumps(results[-1]) + "\n")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int)
    for name in ("seeds", "results", "work", "child"):
        parser.add_argument("--" + name)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--red", action="store_true")
    given = parser.parse_args(arguments)
    if given.child:
        child(given.seed, given.child)
    seeds = wanted(given)
    print("seeds %d to %d" % (seeds[0], seeds[-1]) if len(seeds) > 1 else "seed %d" % seeds[0], flush=True)
    results = run_all(given)
    total = Counter()
    for result in results:
        total.update(result["figures"])
    broken = [result["seed"] for result in results if result["wrong"]]
    print("%d seeds, %d broken %s: %s" % (len(results), len(broken), broken[:20] if broken else "",
                                        " ".join("%s=%d" % pair for pair in total.items())), flush=True)
    if given.red:
        return 0 if any(result["is_breach"] for result in results) else 1
    return 1 if broken or not results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
