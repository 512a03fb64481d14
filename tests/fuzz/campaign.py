#!/usr/bin/env python3
"""Runs the libFuzzer programs of a build in turn, keeps their account, and makes committed corpora small.

  campaign.py run BUILD WORK --seconds N [--slice S] [--only NAME]   fuzz for N seconds, S seconds a turn
  campaign.py account WORK                                           CPU seconds, runs and findings of each target
  campaign.py minimise BUILD WORK [--only NAME]                      the fewest inputs that reach the same code,
                                                                     into tests/fuzz/corpus

BUILD is configured with -DSINKONCE_FUZZERS=ON -DCMAKE_BUILD_TYPE=Asan -DCMAKE_C_COMPILER=clang-14.  WORK keeps what
lives longer than a run: corpora that grow, logs, findings, account.tsv.  What it finds is in WORK/found and ends the
command with 1.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

FUZZ = pathlib.Path(__file__).resolve().parent
# libFuzzer measures its timeout by the clock on the wall, and a busy machine lets a good input wait.
COMMON = ["-timeout=120", "-rss_limit_mb=1500", "-malloc_limit_mb=300", "-print_final_stats=1", "-use_value_profile=1"]
# Inputs that no target reads further than are a waste of time.
LENGTHS = {"settings": 8192}


def targets(build, only):
    found = sorted(path for path in (build / "tests/fuzz").glob("fuzz_*") if path.is_file())
    named = {path.name.removeprefix("fuzz_"): path for path in found}
    return {name: path for name, path in named.items() if only in (None, name)}


def committed(name):
    return FUZZ / "corpus" / name


def dictionary(name):
    own = FUZZ / f"{name.split('_')[0]}.dict"
    return [f"-dict={own}"] if own.exists() else []


def waited(command, log):
    """The command's exit status and its CPU seconds."""
    with open(log, "wb") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_utime + usage.ru_stime


def one_turn(name, program, work, seconds):
    corpus, found, logs = work / "corpus" / name, work / "found" / name, work / "log"
    for folder in (corpus, found, logs):
        folder.mkdir(parents=True, exist_ok=True)
    log = logs / f"{name}.{int(time.time())}.log"
    command = [str(program), f"-max_total_time={seconds}", f"-artifact_prefix={found}/",
               f"-max_len={LENGTHS.get(name, 4096)}", *COMMON, *dictionary(name), str(corpus), str(committed(name))]
    exit_status, cpu = waited(command, log)
    text = log.read_text(errors="replace")
    runs = re.search(r"number_of_executed_units: (\d+)", text)
    covered = re.findall(r" cov: (\d+)", text)
    line = [name, int(time.time()), f"{cpu:.1f}", runs.group(1) if runs else "0", covered[-1] if covered else "0",
            exit_status]
    with open(work / "account.tsv", "a") as account:
        account.write("\t".join(map(str, line)) + "\n")
    if exit_status != 0:
        print(f"{name}: ended with {exit_status}, see {log}", flush=True)
    return exit_status == 0


def run(options):
    end, good = time.time() + options.seconds, True
    while time.time() < end:
        turn = targets(options.build, options.only)
        if not turn:
            sys.exit(f"no fuzz_* program in {options.build}/tests/fuzz")
        for name, program in turn.items():
            left = end - time.time()
            if left >= 1 and program.exists():
                good &= one_turn(name, program, options.work, int(min(options.slice, max(left, 1))))
    account(options)
    return 0 if good else 1


def account(options):
    totals = {}
    for line in (options.work / "account.tsv").read_text().splitlines():
        name, _, cpu, runs, covered, _ = line.split("\t")
        cpu_sum, run_sum, _ = totals.get(name, (0.0, 0, 0))
        totals[name] = (cpu_sum + float(cpu), run_sum + int(runs), int(covered))
    print(f"{'target':<16}{'CPU s':>10}{'runs':>14}{'edges':>8}{'findings':>10}")
    for name, (cpu, runs, covered) in sorted(totals.items()):
        findings = len(list((options.work / "found" / name).glob("*")))
        print(f"{name:<16}{cpu:>10.0f}{runs:>14}{covered:>8}{findings:>10}")
    print(f"{sum(cpu for cpu, _, _ in totals.values()) / 3600:.2f} CPU hours,"
          f" {sum(runs for _, runs, _ in totals.values())} runs")
    return 0


def merged(program, into, sources):
    """One input for each edge, however often it is passed and whatever is compared on it: hundreds, not thousands."""
    command = [str(program), "-merge=1", *COMMON, "-use_value_profile=0", "-use_counters=0", str(into),
               *map(str, sources)]
    done = subprocess.run(command, capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr.decode(errors="replace")[-2000:])


def sources_of(name, work):
    return [folder for folder in (committed(name), work / "corpus" / name) if folder.is_dir()]


def minimise(options):
    """Inputs with a name of their own stay as they are: each stands for something.  The rest is chosen anew."""
    for name, program in targets(options.build, options.only).items():
        folder = committed(name)
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if re.fullmatch(r"[0-9a-f]{40}", path.name):
                os.rename(path, (options.work / "corpus" / name).joinpath(path.name))
        with tempfile.TemporaryDirectory() as scratch:
            into = pathlib.Path(scratch)
            for path in folder.iterdir():
                shutil.copy(path, into)
            before = len(list(into.iterdir()))
            merged(program, into, sources_of(name, options.work))
            for path in sorted(into.iterdir()):
                if path.stat().st_size <= options.bytes:
                    shutil.copy(path, folder)
        chosen = list(folder.iterdir())
        print(f"{name}: {before} with a name, {len(chosen) - before} chosen,"
              f" {sum(path.stat().st_size for path in chosen)} bytes")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for call, with_build in ((run, True), (account, False), (minimise, True)):
        command = commands.add_parser(call.__name__)
        command.set_defaults(call=call)
        if with_build:
            command.add_argument("build", type=pathlib.Path)
        command.add_argument("work", type=pathlib.Path)
        command.add_argument("--only", help="one target's name")
        command.add_argument("--seconds", type=int, default=60)
        command.add_argument("--slice", type=int, default=60)
        command.add_argument("--bytes", type=int, default=512, help="inputs larger than this stay out of the corpus")
    options = parser.parse_args()
    return options.call(options)


if __name__ == "__main__":
    sys.exit(main())
