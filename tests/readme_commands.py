#!/usr/bin/env python3
"""The commands under "Five minutes" of the README, as a reader types them, show what their comments say they show.

Only what a second run beside this one would meet is another: the ports, the folders, and the programs, which are those
that SINKONCE_BIN and TARGET_BIN name, built already.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "support"))
import sinkonce  # noqa: E402

BLOCK = re.compile(r"^```(sh)?\n(.*?)^```", re.S | re.M)
PROMISED = re.compile(r"^[1-5]\d\d\b|Sinkonce-Outcome: [\w-]+")
MARK = "-- line %d"
MADE_BEFORE = ("cmake ", "ninja ")


def section():
    text = (HERE.parent / "README.md").read_text(encoding="utf-8")
    return text.partition("## Five minutes\n")[2].partition("\n## ")[0]


def renamed(text, folder):
    names = {"build/quickstart/proxy/sinkonce": os.environ["SINKONCE_BIN"],
             "build/quickstart/tests/support/target": os.environ["TARGET_BIN"],
             "/tmp/booked": folder + "/booked", "/tmp/ledger": folder + "/ledger"}
    for port in ("9000", "9001", "8650", "8651"):
        names[port] = str(sinkonce.free_port())
    for name, other in names.items():
        text = text.replace(name, other)
    listen = {"SINKONCE_LISTEN": names["8650"], "SINKONCE_ADMIN_LISTEN": names["8651"]}
    return text, {name: "127.0.0.1:" + port for name, port in listen.items()}


def run(lines, listen):
    """{number of a line: what it printed}"""
    script = "set -m; trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n" + "".join("echo '\n%s'\n%s\n" % (MARK % number, line) for number, line in enumerate(lines))
    env = {name: value for name, value in os.environ.items() if not name.startswith("SINKONCE_")}
    done = subprocess.run(["bash", "-c", script], env={**env, **listen}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    parts = re.split(r"\n-- line (\d+)\n", "\n" + done.stdout)
    return dict(zip(map(int, parts[1::2]), parts[2::2]))


def mistakes(lines, printed, example):
    for number, line in enumerate(lines):
        command, _, comment = line.partition(" # ")
        said = printed.get(number, "")
        for words in PROMISED.findall(comment.strip()):
            if words not in said:
                yield "%s: promised %s, seen:\n%s" % (command.strip(), words, said)
        if "each record once" in comment and sorted(re.findall(r"^orders/0/(\d)\t", said, re.M)) != ["1", "2", "3"]:
            yield "%s: not each record once:\n%s" % (command.strip(), said)
        if command.startswith("grep ") and not said.strip():
            yield "%s: found nothing" % command.strip()
        if "503" in comment:
            yield from differences(example, said)


def differences(example, said):
    """What EXAMPLE of an answer shows and the answer that was SAID has not."""
    head, _, body = example.strip().partition("\n\n")
    for field in head.split("\n"):
        if field not in said.replace("\r", ""):
            yield "the example of a 503 has %s, seen:\n%s" % (field, said)
    if body.strip() not in said:
        yield "the example of a 503 has the body %s, seen:\n%s" % (body, said)


def main():
    blocks = BLOCK.findall(section())
    typed = "".join(text for kind, text in blocks[1:] if kind == "sh")
    example = next(text for kind, text in blocks if not kind)
    with tempfile.TemporaryDirectory(prefix="sinkonce-readme-") as folder:
        text, listen = renamed(typed, folder)
        lines = [line for line in text.splitlines() if line and not line.startswith(MADE_BEFORE)]
        wrong = list(mistakes(lines, run(lines, listen), example))
    print("\n".join(wrong + ["%d lines, %d mistakes" % (len(lines), len(wrong))]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
