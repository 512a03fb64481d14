#!/usr/bin/env python3
"""The exactly-once oracle: compares what was produced, what the target applied, what was acknowledged and what
sinkonce lists as in doubt.

    checker.py --journal FILE [--journal FILE ...] --produced FILE [--acked FILE] [--doubts FILE]
               [--exact-doubts FILE] [--allow-twice FILE] [--order] [--may-lack]

A record's key is topic/partition/offset.  The files:
  journal       KEY<TAB>HASH<TAB>MS, as the target writes it; several are read one after the other
  produced      one KEY a line, or KEY<TAB>HASH when the body must arrive unchanged
  acked         one KEY a line: what the connector was told is done
  doubts        the answer of GET /in-doubt, or one KEY a line
  exact-doubts  one KEY a line: the list must hold these and no others
  allow-twice   one KEY a line: sent again by a stored decision (policy retry, replay)

Demands: no key applied twice, unless allowed; none applied that was not produced; every acknowledged key applied;
every produced key applied or in doubt (with --may-lack: the run was stopped half-way, only acknowledged ones);
equal hashes; with --order, the first applications of each partition in the order of their offsets.
Prints one line of figures, and one line for each kind of breach.  Exit 0 when all holds, 1 when not, 2 for bad use.
"""

import argparse
import json
import sys
from collections import Counter


class Report:
    """What was found; each breach is (kind, [keys])."""

    def __init__(self):
        self.figures = {}
        self.breaches = []

    @property
    def is_good(self):
        return not self.breaches

    def demand(self, kind, broken):
        broken = sorted(broken, key=str)
        if broken:
            self.breaches.append((kind, broken))

    def lines(self):
        verdict = "ok" if self.is_good else "BROKEN"
        yield verdict + " " + " ".join("%s=%s" % pair for pair in self.figures.items())
        for kind, broken in self.breaches:
            more = "" if len(broken) <= 5 else " and %d more" % (len(broken) - 5)
            yield "  %s: %s%s" % (kind, ", ".join(map(str, broken[:5])), more)


def out_of_order(keys):
    """Keys whose first application came after a higher offset of their partition."""
    highest, seen, broken = {}, set(), []
    for key in keys:
        partition, _, offset = key.rpartition("/")
        if key in seen or not offset.isdigit():
            continue
        seen.add(key)
        if int(offset) < highest.get(partition, -1):
            broken.append(key)
        highest[partition] = max(highest.get(partition, -1), int(offset))
    return broken


def changed_bodies(journal, hashes):
    """Keys whose hash differs from what was produced or, where that is not known, between two applications."""
    known, broken = dict(hashes), set()
    for key, body_hash in journal:
        if known.setdefault(key, body_hash) != body_hash:
            broken.add(key)
    return broken


def check(journal, produced, acked=(), doubts=(), exact_doubts=None, allow_twice=(), in_order=False, may_lack=False):
    """JOURNAL is a list of (key, hash); PRODUCED a dictionary of key to hash or None; the rest are lists of keys."""
    report = Report()
    counts = Counter(key for key, _ in journal)
    allowed, doubtful, owed = set(allow_twice), set(doubts), set(acked if may_lack else produced)
    twice = [key for key, count in counts.items() if count > 1 and key not in allowed]
    lost = [key for key in owed if key not in counts and key not in doubtful]
    report.figures = {"produced": len(produced), "acked": len(set(acked)), "applied": sum(counts.values()),
                      "duplicates": sum(counts.values()) - len(counts), "in_doubt": len(doubtful), "lost": len(lost)}
    report.demand("applied twice", twice)
    report.demand("lost", lost)
    report.demand("acknowledged and not applied", [key for key in set(acked) if key not in counts])
    report.demand("applied and never produced", [key for key in counts if key not in produced])
    report.demand("in doubt and never produced", [key for key in doubtful if key not in produced])
    report.demand("in doubt and acknowledged", doubtful & set(acked))
    report.demand("body changed", changed_bodies(journal, {k: h for k, h in produced.items() if h}))
    if exact_doubts is not None:
        report.demand("unknown and not listed in doubt", set(exact_doubts) - doubtful)
        report.demand("listed in doubt and not unknown", doubtful - set(exact_doubts))
    if in_order:
        report.demand("out of order", out_of_order(key for key, _ in journal))
    return report


def doubt_keys(rows):
    """The keys of the rows of GET /in-doubt; a row is a run of offsets."""
    return ["%s/%d/%d" % (row["topic"], row["partition"], offset)
            for row in rows for offset in range(row["first"], row["last"] + 1)]


def read_keys(path):
    """KEY lines, or the JSON of GET /in-doubt."""
    if path is None:
        return []
    with open(path) as text:
        content = text.read()
    if content.lstrip()[:1] in ("{", "["):
        page = json.loads(content)
        return doubt_keys(page if isinstance(page, list) else page["in_doubt"])
    return [line.split("\t")[0] for line in content.splitlines() if line]


def read_journal(path):
    with open(path) as lines:
        return [tuple(line.rstrip("\n").split("\t")[:2]) for line in lines]


def read_produced(path):
    with open(path) as lines:
        pairs = (line.rstrip("\n").partition("\t") for line in lines)
        return {key: body_hash or None for key, _, body_hash in pairs if key}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--journal", action="append", required=True)
    parser.add_argument("--produced", required=True)
    for name in ("acked", "doubts", "exact-doubts", "allow-twice"):
        parser.add_argument("--" + name)
    for name in ("order", "may-lack"):
        parser.add_argument("--" + name, action="store_true")
    given = parser.parse_args(arguments)
    journal = [line for path in given.journal for line in read_journal(path)]
    exact = read_keys(given.exact_doubts) if given.exact_doubts else None
    report = check(journal, read_produced(given.produced), read_keys(given.acked), read_keys(given.doubts), exact,
                   read_keys(given.allow_twice), given.order, given.may_lack)
    print("\n".join(report.lines()))
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
