#!/usr/bin/env python3
"""Makes a table of gcovr's JSON: per file what is reached, and why the rest is not.

  report.py [--write] coverage.json     --write: into README.md, between its marks

A branch that no test takes belongs to the first row of REASONS whose pattern is found in its line's text.
"""

import collections
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = re.compile(r"(?<=<!-- coverage -->\n).*?(?=<!-- end of coverage -->)", re.S)

# word for the table, files, what stands in the line, the reason
REASONS = [
    ("switch", r"^store/", r"^\s*switch \(", "a value that the enumeration does not have"),
    ("memory", r".", r"NULL|NO_MEMORY|no_memory|_grow\(|grow\(|_new\(|alloc|_keep\(|_add\(",
     "an allocation that fails at a moment of its own, or the way on behind one: test_failing and F-10 fail each place that allocates,"
     " at its first and its last call"),
    ("disk", r"store/(backup|env|rows_lmdb|ledger|ledger_batch|offline|store|owed)\.c", r".",
     "a failure that needs a moment of its own: test_failing fails each place that calls the system or LMDB, and a second call behind"
     " a commit that failed; L-01 to L-17 and F-20 cause those that matter"),
    ("damage", r"store/(verify|restore|dump|pairs|format|line|applied|questions.*|replies|replays|opens|partitions|forget|audit|claims|machine|chunk|marks|waiters|settle|firsts)\.c",
     r"read|rows_|row|key_is_of|count|> |>= |<= |!= |== |is_|!", "a row or a line that only damage makes, or a place of the intervals that no history meets:"
     " test_planted and test_damage make many, fuzz_store_damage and fuzz_store_rows the others"),
    ("guard", r".", r"byte_count (>|==|<)|_count (>|==)|sizeof|_MAX|max", "a bound that callers keep today; it stays, so that the function can be read alone"),
]
OTHER = "other"


def reason_of(name, text):
    for word, files, pattern, _ in REASONS:
        if re.search(files, name) and re.search(pattern, text):
            return word
    return OTHER


class File:
    def __init__(self, data):
        self.name = data["file"]
        source = (ROOT / self.name).read_text().splitlines()
        lines = [line for line in data["lines"] if not line.get("gcovr/noncode")]
        branches = [(line["line_number"], branch) for line in lines for branch in line["branches"]]
        self.lines, self.lines_met = len(lines), sum(line["count"] > 0 for line in lines)
        self.branches, self.branches_met = len(branches), sum(branch["count"] > 0 for _, branch in branches)
        self.left = collections.Counter()
        self.left_lines = collections.defaultdict(set)
        for number, branch in branches:
            if branch["count"] == 0:
                word = reason_of(self.name, source[number - 1])
                self.left[word] += 1
                self.left_lines[word].add(number)

    def row(self):
        words = ", ".join("%d %s" % (count, word) for word, count in sorted(self.left.items()))
        return "| `%s` | %s | %s | %s |" % (self.name, percent(self.lines_met, self.lines),
                                            percent(self.branches_met, self.branches), words)


def percent(part, whole):
    return "%.1f %%" % (100 * part / whole) if whole else ""


def total(files, word):
    lines, met = sum(one.lines for one in files), sum(one.lines_met for one in files)
    branches, branches_met = sum(one.branches for one in files), sum(one.branches_met for one in files)
    return "| **%s** | %s | %s | %d of %d branches |" % (word, percent(met, lines), percent(branches_met, branches),
                                                         branches_met, branches)


def table(files):
    rows = ["| File | Lines | Branches | Branches that are left |", "|---|---|---|---|"]
    for word, folder in (("store/", "store/"), ("deciders", "proxy/")):
        some = [one for one in files if one.name.startswith(folder) and one.branches > 0]
        rows += [one.row() for one in some] + [total(some, word)]
    return "\n".join(rows) + "\n"


def main():
    arguments = [one for one in sys.argv[1:] if one != "--write"]
    data = json.loads(pathlib.Path(arguments[0]).read_text())
    files = [File(one) for one in sorted(data["files"], key=lambda one: one["file"])]
    print(table(files))
    for one in files:
        if one.left_lines[OTHER]:
            print("%s: other: %s" % (one.name, ", ".join(map(str, sorted(one.left_lines[OTHER])))))
    if "--write" in sys.argv[1:]:
        readme = HERE / "README.md"
        words = "".join("* *%s*: %s\n" % (word, words) for word, _, _, words in REASONS)
        readme.write_text(TABLE.sub(lambda _: table(files) + "\n" + words, readme.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
