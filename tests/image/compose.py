"""conf/compose: the whole file is valid, and what can run here of it runs.  Started by run.sh, with DOCKER_HOST set.

No image can be pulled and the daemon has no bridge.  So sinkonce, the target and Debian's Prometheus share one network of
their own, without a way out, in which they find each other by the names that the file uses; requests are made inside it
(nsenter).  Published ports do not go together with that, and an override file cannot take them away: the part that runs
is made of the file here.
"""

import json
import os
import subprocess
import sys
import tempfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import sinkonce  # noqa: E402

WHOLE = os.path.join(ROOT, "conf", "compose", "compose.yaml")
NETWORK = "sinkonce"  # the service whose network the others share
IMAGES = {"sinkonce": "sinkonce:ci", "target": "sinkonce-sample-target:ci", "prometheus": "prometheus:ci"}
RECORDS = 20


def run(*command, stdin=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, input=stdin)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stderr))
    return done.stdout


def part_of(whole):
    """What can run here."""
    with open(whole) as text:
        services = yaml.safe_load(text)["services"]
    part = {name: dict(services[name], image=image, network_mode="service:" + NETWORK) for name, image in IMAGES.items()}
    for service in part.values():
        service.pop("build", None)
        service.pop("ports", None)
    part[NETWORK].update(network_mode="none", extra_hosts=["%s:127.0.0.1" % name for name in IMAGES])
    return {"services": part, "volumes": {"ledger": {}, "prometheus": {}}}


part_file = tempfile.NamedTemporaryFile("w", suffix=".json")


def compose(*arguments):
    return run("docker-compose", "-p", "sinkonce-ci", "--project-directory", os.path.dirname(WHOLE), "-f", part_file.name,
               *arguments)


class Network:
    """The one in which the services are."""

    def __init__(self):
        container = compose("ps", "-q", "sinkonce").strip()
        self.pid = run("/usr/bin/docker", "inspect", "-f", "{{.State.Pid}}", container).strip()

    def ask(self, url, body=None):
        posting = ["-H", "Content-Type: application/json", "--data-binary", "@-"] if body is not None else []
        return run("nsenter", "-t", self.pid, "-n", "curl", "-sS", "-f", "--max-time", "30", *posting, "http://127.0.0.1:" + url,
                   stdin=body)

    def answers(self, url):
        try:
            return self.ask(url)
        except RuntimeError:
            return None


def check_whole():
    run("docker-compose", "-f", WHOLE, "config", "-q")
    print("ok   compose: the whole file is valid")


def applied(network):
    return json.loads(network.ask("9001/stats"))["applied"]


def check_once(network):
    batch = json.dumps([json.loads(sinkonce.record("orders", 0, offset)) for offset in range(RECORDS)])
    for _ in range(2):
        network.ask("8650/orders", batch)
        assert applied(network) == RECORDS, applied(network)
    print("ok   compose: %d records, delivered twice, are applied once" % RECORDS)


def check_watched(network):
    """Prometheus finds sinkonce, and has read the rules."""
    def value(query):
        answer = network.answers("9090/api/v1/query?query=" + query)
        result = json.loads(answer)["data"]["result"] if answer else []
        return result[0]["value"][1] if result else None
    sinkonce.wait_for(lambda: value("up%7Bjob%3D%22sinkonce%22%7D") == "1", "Prometheus to reach sinkonce", seconds=60, every=0.5)
    sinkonce.wait_for(lambda: value("sum(sinkonce_duplicate_records_total)") == str(RECORDS), "the duplicates to be counted",
                      seconds=60, every=0.5)
    groups = json.loads(network.ask("9090/api/v1/rules"))["data"]["groups"]
    assert groups and all(rule["health"] != "err" for group in groups for rule in group["rules"]), groups
    print("ok   compose: Prometheus sees %d duplicates and %d rules" % (RECORDS, sum(len(group["rules"]) for group in groups)))


def main():
    check_whole()
    json.dump(part_of(WHOLE), part_file)
    part_file.flush()
    compose("up", "-d")
    network = Network()
    sinkonce.wait_for(lambda: network.answers("8651/readyz"), "sinkonce to be ready", seconds=60, every=0.2)
    sinkonce.wait_for(lambda: network.answers("9001/stats"), "the target to listen", seconds=60, every=0.2)
    check_once(network)
    check_watched(network)
    compose("down", "-v")


if __name__ == "__main__":
    main()
