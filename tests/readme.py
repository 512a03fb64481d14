"""What the READMEs say is there: the settings table, the targets of links, the paths in the text.

    python3 tests/readme.py          compare; exit 1 when something differs or is missing
    python3 tests/readme.py --write  put the table that `sinkonce config docs` prints into the README
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- settings:begin (sinkonce config docs) -->\n", "<!-- settings:end -->\n"
LINK = re.compile(r'(?:\]\(|(?:src|srcset)=")([^)\s"]+)')
PATH = re.compile(r"(?<![\w./-])(?:conf|tests|proxy|store|include)/[\w./-]*\w")


def texts():
    """The Markdown files that are ours: not what a build has fetched."""
    return [path for path in sorted(ROOT.rglob("*.md")) if not re.match(r"build|\.", str(path.relative_to(ROOT)))]


def anchors(text):
    """The fragments of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_link_good(path, link):
    name, _, fragment = link.partition("#")
    target = path.parent / name if name else path
    if not target.exists():
        return False
    return not fragment or fragment in anchors(target.read_text(encoding="utf-8"))


def dangling():
    for path in texts():
        text = path.read_text(encoding="utf-8")
        for link in LINK.findall(text):
            if "://" not in link and not is_link_good(path, link):
                yield "%s: the link %s leads nowhere" % (path.relative_to(ROOT), link)
        for name in sorted(set(PATH.findall(text))):
            if not (ROOT / name).exists() and not (path.parent / name).exists():
                yield "%s: there is no %s" % (path.relative_to(ROOT), name)


printed = subprocess.run([os.environ["SINKONCE_BIN"], "config", "docs"], check=True, capture_output=True, text=True).stdout
head, rest = README.read_text(encoding="utf-8").split(BEGIN)
table, tail = rest.split(END)
if "--write" in sys.argv:
    README.write_text(head + BEGIN + printed + END + tail, encoding="utf-8")
    table = printed
wrong = list(dangling())
if table != printed:
    wrong.append("README.md: the settings table differs from `sinkonce config docs`; run tests/readme.py --write")
if wrong:
    sys.exit("\n".join(wrong))
