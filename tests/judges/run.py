#!/usr/bin/env python3
"""The real clients as judges of bulk answers: each sends its requests through sinkonce to a bulk target that counts.

    run.py [--bin SINKONCE] [--work FOLDER] [--direct] CLIENT...

Clients: elasticsearch7, elasticsearch7-compatible, elasticsearch9, opensearch3 (Judge.java has the scenarios); node runs
a real OpenSearch node as target, with a data stream.  --direct leaves sinkonce out: duplicates must then be seen, and
the run must fail.  SINKONCE_BIN names the binary when --bin does not.

Exit 0: every demand held; 1: some did not; 77: skipped, with the reason.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "support"))

import sinkonce

import bulk_node
from bulk_target import BulkTarget

# Maven profile, class, arguments behind the usual ones, what the target says it is.
CLIENTS = {
    "elasticsearch7": ("elasticsearch7", "Elasticsearch7", (), "es7"),
    "elasticsearch7-compatible": ("elasticsearch7", "Elasticsearch7", ("compatible",), "es7"),
    "elasticsearch9": ("elasticsearch9", "Elasticsearch9", (), "es9"),
    "opensearch3": ("opensearch3", "OpenSearch3", (), "opensearch"),
}
SKIPPED = 77


class Skip(Exception):
    """Something that the judges need is not here."""


def run_tool(command, log, what):
    with open(log, "ab") as out:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=500).returncode
    if code != 0:
        raise Skip("%s; see %s" % (what, log))


def jars_of(profile, work):
    """The folder with the jars of PROFILE, from Maven Central."""
    for tool in ("java", "javac", "mvn"):
        if not shutil.which(tool):
            raise Skip("there is no %s here" % tool)
    folder = os.path.join(work, profile, "jars")
    if not os.path.exists(os.path.join(folder, "complete")):
        os.makedirs(folder, exist_ok=True)
        run_tool(["mvn", "-q", "-B", "-f", os.path.join(FOLDER, "pom.xml"), "-P" + profile,
                  "dependency:copy-dependencies", "-DoutputDirectory=" + folder],
                 os.path.join(work, profile, "maven.log"), "Maven could not bring the jars of " + profile)
        open(os.path.join(folder, "complete"), "w").close()
    return folder


def compile_judge(profile, names, work):
    """The class path with NAMES compiled."""
    jars, classes = jars_of(profile, work), os.path.join(work, profile, "classes")
    os.makedirs(classes, exist_ok=True)
    sources = [os.path.join(FOLDER, "sinkonce", "judges", name + ".java") for name in names]
    compiled = subprocess.run(["javac", "-nowarn", "-proc:none", "-d", classes, "-cp", os.path.join(jars, "*")] + sources,
                              capture_output=True, text=True, timeout=300)
    if compiled.returncode != 0:
        raise RuntimeError("a judge does not compile:\n" + compiled.stderr)
    return classes + os.pathsep + os.path.join(jars, "*")


def judge(name, is_direct, binary, work):
    profile, main, more, product = CLIENTS[name]
    class_path = compile_judge(profile, ("Judge", main), work)
    with BulkTarget(product) as target:
        proxy = None if is_direct else sinkonce.Sinkonce(target.url, binary=binary).start()
        try:
            ended = subprocess.run(["java", "-Xmx256m", "-cp", class_path, "sinkonce.judges." + main,
                                    proxy.url if proxy else target.url, target.url, "orders-" + name, *more],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   timeout=300)
            sys.stdout.write("".join(line for line in ended.stdout.splitlines(True) if not line.startswith("SLF4J")))
            if proxy and (proxy.in_doubt() or proxy.stop() != 0):
                print("FAILED  records are in doubt, or sinkonce did not end well")
                return False
        finally:
            if proxy:
                proxy.close()
    return ended.returncode == 0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", default=os.environ.get("SINKONCE_BIN") or "sinkonce")
    options.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "sinkonce-judges"))
    options.add_argument("--direct", action="store_true")
    options.add_argument("clients", nargs="+", choices=sorted(CLIENTS) + ["node"])
    chosen = options.parse_args()
    has_failed = False
    for name in chosen.clients:
        print("--- " + name)
        sys.stdout.flush()
        try:
            if name == "node":
                class_path = compile_judge("node", ("Node",), chosen.work)
                holds = bulk_node.judge(class_path, chosen.direct, chosen.bin, os.path.join(chosen.work, "opensearch"))
            else:
                holds = judge(name, chosen.direct, chosen.bin, chosen.work)
        except Skip as why:
            print("skipped: %s" % why)
            return SKIPPED
        has_failed = has_failed or not holds
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
