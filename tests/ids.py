#!/usr/bin/env python3
"""Every id of a trap, a harness or a promise is tested, or the table says why not.

  ids.py            checks ids.tsv: each id once, each test that it names is there, each id that a test names is known
  ids.py --untested the ids without a test, and why

A reference is a file below tests/ and words that stand in it: a function's name, or the id of a row.
"""

import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent
ID = re.compile(r"(?:[CHLJRFZIN]-\d\d|[ACDS]\d)")
# As tests spell it in their names: test_C_01_..., test_c01_c04_..., test_Z_05_...
NAMED = re.compile(r"(?:void|def) test_(\w+)")
IN_A_NAME = re.compile(r"(?:(?<=_)|^)([CHLJRFZIN])_?(\d\d)(?=_|$)", re.I)


def rows():
    for number, line in enumerate((TESTS / "ids.tsv").read_text().splitlines(), 1):
        if not line.startswith("#"):
            yield number, line.split("\t")


def is_there(reference):
    name, _, words = reference.partition(":")
    path = TESTS / name
    return bool(words) and path.is_file() and re.search(r"(?<![A-Za-z0-9])%s" % re.escape(words), path.read_text()) is not None


def mistakes_of(number, cells, known):
    if len(cells) != 3 or not all(cells):
        return ["line %d: three cells, none of them empty" % number]
    name, _, tests = cells
    wrong = [] if ID.fullmatch(name) else ["line %d: %s is no id" % (number, name)]
    if name in known:
        wrong.append("line %d: %s stands here twice" % (number, name))
    known.add(name)
    if tests.startswith("none:"):
        return wrong + ([] if tests[5:].strip() else ["%s: neither a test nor a reason" % name])
    return wrong + ["%s: no such test: %s" % (name, one) for one in tests.split("; ") if not is_there(one)]


def named_ids():
    """{id: a file} of all ids that tests carry in their names."""
    found = {}
    for path in sorted(TESTS.rglob("*")):
        if path.suffix in (".c", ".py") and path.is_file():
            for name in NAMED.findall(path.read_text()):
                for letter, digits in IN_A_NAME.findall(name):
                    found["%s-%s" % (letter.upper(), digits)] = path.relative_to(TESTS)
    return found


def main():
    if sys.argv[1:] == ["--untested"]:
        for _, (name, words, tests) in rows():
            if tests.startswith("none:"):
                print("%-5s %s\n      %s" % (name, words, tests[5:].strip()))
        return 0
    known, wrong = set(), []
    for number, cells in rows():
        wrong += mistakes_of(number, cells, known)
    wrong += ["%s is named by a test in %s and unknown to ids.tsv" % (name, path)
              for name, path in named_ids().items() if name not in known]
    untested = sum(cells[2].startswith("none:") for _, cells in rows())
    print("\n".join(wrong + ["%d ids, %d of them without a test, %d mistakes" % (len(known), untested, len(wrong))]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
