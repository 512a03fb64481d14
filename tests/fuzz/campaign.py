#!/usr/bin/env python3
"""Runs the libFuzzer programs of a build in turn, keeps their account, and makes committed corpora small.

  campaign.py run BUILD WORK --seconds N [--slice S] [--only NAME]   fuzz for N seconds, S seconds a turn
  campaign.py account WORK [--write]                                 CPU seconds, runs and findings of each target
  campaign.py reach BUILD WORK [--only NAME]                         the functions that a target is for and never calls
  campaign.py cost BUILD WORK [--only NAME]                          the input of each target that takes the most time
                                                                     for its length
  campaign.py minimise BUILD WORK [--only NAME]                      the fewest inputs that reach the same code,
                                                                     into tests/fuzz/corpus

BUILD is configured with -DSINKONCE_FUZZERS=ON -DCMAKE_BUILD_TYPE=Asan -DCMAKE_C_COMPILER=clang-14, and made by
`ninja fuzzers`; that of `reach` with -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang-14
-DCMAKE_C_FLAGS="-fprofile-instr-generate -fcoverage-mapping", that of `cost` as for a release, both made by
`ninja corpora`.  WORK keeps what lives longer
than a run: corpora that grow, logs, findings, account.tsv.  What it finds is in WORK/found and ends the command with 1.

A turn is one line of WORK/account.tsv: target, time, CPU seconds, runs, edges, exit status; one that ends by itself with
another status than 0 is a finding.  The account of all campaigns so far is tests/fuzz/account.tsv: `account` shows it
with the turns of WORK that it does not hold yet, and with --write it takes them in and renews the sum in
tests/README.md.  WORK/counted holds how many lines of WORK/account.tsv are in it: none is counted twice, also while a
campaign adds more.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

FUZZ = pathlib.Path(__file__).resolve().parent
ROOT = FUZZ.parent.parent
COLUMNS = ("target", "CPU seconds", "runs", "edges", "findings")
SUM = re.compile(r"[\d.]+ CPU hours, [\d,]+ million runs")
# libFuzzer measures its timeout by the clock on the wall, and a busy machine lets a good input wait.
COMMON = ["-timeout=120", "-rss_limit_mb=1500", "-malloc_limit_mb=300", "-print_final_stats=1", "-use_value_profile=1"]
# Inputs that a target does not read to their end are a waste of time; a stored bitmap has 8,193 bytes.
LENGTHS = {"settings": 8192, "store_chunk": 10000, "store_claims": 2048, "batch": 100}


def targets(build, only):
    found = sorted(path for path in (build / "tests/fuzz").glob("fuzz_*") if path.is_file())
    named = {path.name.removeprefix("fuzz_"): path for path in found}
    return {name: path for name, path in named.items() if only in (None, name)}


def committed(name):
    return FUZZ / "corpus" / name


def dictionary(name):
    """That of its name, else that of its family: http1.dict serves http1_head."""
    for word in (name, name.split("_")[0]):
        if (FUZZ / f"{word}.dict").exists():
            return [f"-dict={FUZZ / word}.dict"]
    return []


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


class Row:
    """What one target has done.  Findings and edges of the earliest campaigns were not kept: None."""

    def __init__(self, cpu=0, runs=0, edges=0, findings=0):
        self.cpu, self.runs, self.edges, self.findings = cpu, runs, edges, findings

    def add(self, cpu, runs, edges, exit_status):
        self.cpu += float(cpu)
        self.runs += int(runs)
        self.edges = int(edges) or self.edges
        self.findings += int(exit_status) > 0

    def cells(self):
        return f"{self.cpu:.0f}", str(self.runs), *("-" if n is None else str(n) for n in (self.edges, self.findings))


def read_account():
    rows = {}
    for line in (FUZZ / "account.tsv").read_text().splitlines()[1:]:
        name, *cells = line.split("\t")
        rows[name] = Row(*(None if cell == "-" else int(cell) for cell in cells))
    return rows


def write_account(rows):
    lines = [COLUMNS] + [(name, *row.cells()) for name, row in sorted(rows.items())]
    (FUZZ / "account.tsv").write_text("".join("\t".join(line) + "\n" for line in lines))


def sum_of(rows):
    hours, runs = sum(row.cpu for row in rows.values()) / 3600, sum(row.runs for row in rows.values())
    return f"{hours:.2f} CPU hours, {runs / 1e6:,.0f} million runs"


def uncounted(work):
    """The turns that the account does not hold yet, and how many lines it will hold with them."""
    mark = work / "counted"
    # A line that is being written has no end yet.
    lines = (work / "account.tsv").read_text().split("\n")[:-1]
    counted = int(mark.read_text()) if mark.exists() else 0
    return [line.split("\t") for line in lines[counted:]], len(lines)


def account(options):
    rows = read_account()
    turns, line_count = uncounted(options.work)
    for name, _, *figures in turns:
        rows.setdefault(name, Row()).add(*figures)
    if options.write:
        write_account(rows)
        (options.work / "counted").write_text(f"{line_count}\n")
        readme = ROOT / "tests/README.md"
        readme.write_text(SUM.sub(sum_of(rows), readme.read_text(), count=1))
    for name, *cells in [COLUMNS] + [(name, *row.cells()) for name, row in sorted(rows.items())]:
        print(f"{name:<16}{cells[0]:>12}{cells[1]:>14}{cells[2]:>8}{cells[3]:>10}")
    print(sum_of(rows))
    return 0


# ---- reach

# What each target is for: files, or functions of them, where it is more or less than the file of its own name.  What a
# file does beside it (starting, timers, its own doors to the loop) is left to the tests of the file.
FILES = {
    "admin": "(admin.*|explain):(?!admin_(tick|event_note|credentials_set)|on_|answer_no_memory|refuse_ledger|warn_of_end|is_loopback)",
    "batch": "(identify.*|plan|batch_answer|bulk_answer|dapr_answer):(?!identifier_free)",
    "batch_answer": "(dapr_answer|splunk_answer):(?!dapr_is_bulk|splunk_success)|batch_answer:acks",
    "bulk_answer": "(bulk_answer|json_walk):",
    "cli_answer": "cli_(list|print|change|client|health):(?!second_sleep|cli_print_lines)",
    "coding": "coding:(?!coding_of)",
    "exchange": "(conn|exchange|answer|split|ack_poll|acks|pass|reply|reply_head):(?!tls_|handshake_|on_handshake)",
    "http1_head": "http1(_fields)?:(?!.*response|take_status_line|http1_field_)",
    "http1_response": "http1:(.*response|take_status_line|note_response_length)",
    "identify": "(identify.*|plan|locator):(?!identifier_free|.*parse|.*_deinit|.*list)",
    "probe": "prober_(context|judge|template):",
    "restore": "(restore|line):",
    "settings": "(settings.*|locator):(?!.*_(match|take|set)$|print_docs_row|required_or_default|settings_print_|print_cell)",
    "store_chunk": "chunk:",
    "store_claims": "(claims|settle|opens|applied|marks|waiters|owed|partitions|replays|forget|machine|firsts):(?!.*restore)",
    "store_damage": "(verify|dump|questions.*):",
    "store_rows": "format:",
    "upstream": "upstream_(request|response|idle):(?!upstream_queue|tls_)",
}


def functions_of(program, profile):
    """{(file, function): how often it was called}; those of headers belong to whoever includes them."""
    done = subprocess.run(["llvm-cov-14", "export", program, f"-instr-profile={profile}", "-skip-expansions"],
                          check=True, capture_output=True)
    calls = {}
    for function in json.loads(done.stdout)["data"][0]["functions"]:
        path = pathlib.Path(function["filenames"][0])
        if path.suffix == ".c" and path.parent.name in ("proxy", "store"):
            key = path.stem, function["name"].split(":")[-1]
            calls[key] = max(calls.get(key, 0), function["count"])
    return calls


def called(program, name, work, scratch):
    for number, folder in enumerate(sources_of(name, work)):
        done = subprocess.run([program, folder], stdout=subprocess.DEVNULL,
                              env={**os.environ, "LLVM_PROFILE_FILE": f"{scratch}/{number}.profraw"})
        if done.returncode != 0 and any(folder.iterdir()):
            sys.exit(f"{program} {folder} ended with {done.returncode}")
    profile = f"{scratch}/all.profdata"
    subprocess.run(["llvm-profdata-14", "merge", "-o", profile, *pathlib.Path(scratch).glob("*.profraw")], check=True)
    return functions_of(program, profile)


def corpora(build, only):
    found = sorted((build / "tests/fuzz").glob("corpus_*"))
    programs = {path.name.removeprefix("corpus_"): path for path in found if path.is_file()}
    return {name: path for name, path in programs.items() if only in (None, name)}


def reach(options):
    for name, program in corpora(options.build, options.only).items():
        with tempfile.TemporaryDirectory() as scratch:
            calls = called(program, name, options.work, scratch)
        wanted = FILES.get(name, f"{name}:")
        own = {key: count for key, count in calls.items() if re.match(wanted, ":".join(key))}
        never = sorted(f"{file}.c:{function}" for (file, function), count in own.items() if count == 0)
        print(f"{name}: {len(own) - len(never)} of {len(own)} functions", *never, sep="\n    ")
    return 0


# ---- cost

COST = re.compile(r"^(.*), (\d+) bytes, (\d+) us$", re.M)


def cost(options):
    """Twice each, because the first input of all pays for what is prepared once.  Short inputs are no measure."""
    for name, program in corpora(options.build, options.only).items():
        costs = {}
        for folder in sources_of(name, options.work) * 2:
            done = subprocess.run([program, folder], capture_output=True, text=True, errors="replace")
            for path, size, spent in COST.findall(done.stdout):
                costs[path] = min(costs.get(path, (1 << 60,)), (int(spent), int(size)))
        worst = max(costs, key=lambda path: costs[path][0] / max(costs[path][1], 64), default=None)
        if worst:
            spent, size = costs[worst]
            print(f"{name:<16}{spent / max(size, 64):>10.1f} us a byte{size:>8} bytes  {pathlib.Path(worst).name}")
    return 0


# ---- corpora

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
    for call, with_build in ((run, True), (account, False), (reach, True), (cost, True), (minimise, True)):
        command = commands.add_parser(call.__name__)
        command.set_defaults(call=call)
        if with_build:
            command.add_argument("build", type=pathlib.Path)
        command.add_argument("work", type=pathlib.Path)
        command.add_argument("--only", help="one target's name")
        command.add_argument("--seconds", type=int, default=60)
        command.add_argument("--slice", type=int, default=60)
        command.add_argument("--bytes", type=int, default=512, help="inputs larger than this stay out of the corpus")
        command.add_argument("--write", action="store_true", help="into tests/fuzz/account.tsv and tests/README.md")
    options = parser.parse_args()
    return options.call(options)


if __name__ == "__main__":
    sys.exit(main())
