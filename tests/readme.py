"""The README's settings table is the one that `sinkonce config docs` prints.

    python3 tests/readme.py          compare; exit 1 when they differ
    python3 tests/readme.py --write  put the printed table into the README
"""

import os
import subprocess
import sys

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "README.md")
BEGIN, END = "<!-- settings:begin (sinkonce config docs) -->\n", "<!-- settings:end -->\n"

printed = subprocess.run([os.environ["SINKONCE_BIN"], "config", "docs"], check=True, capture_output=True, text=True).stdout
with open(README, encoding="utf-8") as file:
    text = file.read()
head, rest = text.split(BEGIN)
table, tail = rest.split(END)
if "--write" in sys.argv:
    with open(README, "w", encoding="utf-8") as file:
        file.write(head + BEGIN + printed + END + tail)
elif table != printed:
    sys.exit("README.md: the settings table differs from `sinkonce config docs`; run tests/readme.py --write")
