"""What the image must do once it is built: I-02 to I-08, H-00.  Started by run.sh, with DOCKER_HOST set.

Containers share the host's network, because the daemon of the test has no bridge; ports are free ones on 127.0.0.1.
"""

import http.server
import json
import os
import subprocess
import sys
import tarfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import sinkonce  # noqa: E402

IMAGE = "sinkonce:ci"
UID = 65532
EX_TEMPFAIL = 75  # sysexits.h: the ledger is locked
# The first builds with the fixes of September 2026, by release of Debian (pitfalls of libevent: CVE-2026-63379 and on).
LIBEVENT_FIXED = {"12": "2.1.12-stable-8+deb12u1", "13": "2.1.13-stable-1~deb13u1"}


def docker(*arguments, is_checked=True):
    done = subprocess.run(["/usr/bin/docker", *arguments], capture_output=True, text=True, timeout=120)
    if is_checked and done.returncode != 0:
        raise RuntimeError("docker %s: %s" % (" ".join(arguments), done.stderr))
    return done.stdout.strip() if is_checked else done


class Target(http.server.ThreadingHTTPServer):
    """Counts the writes."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), TargetHandler)
        self.bodies = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class TargetHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Container:
    def __init__(self, name, target, volume, *limits):
        self.name, self.port, self.admin_port = name, sinkonce.free_port(), sinkonce.free_port()
        # The target by its name: the image has no resolver but glibc's own.
        docker("run", "-d", "--name", name, "--network", "host", "--read-only", "--cap-drop", "ALL", "--security-opt",
               "no-new-privileges", *limits, "-v", volume + ":/var/lib/sinkonce", "-e",
               "SINKONCE_TARGET=http://localhost:%d" % target.server_port, "-e", "SINKONCE_LISTEN=127.0.0.1:%d" % self.port,
               "-e", "SINKONCE_ADMIN_LISTEN=127.0.0.1:%d" % self.admin_port, IMAGE)

    def inspect(self):
        return json.loads(docker("inspect", self.name))[0]

    def state(self):
        return self.inspect()["State"]

    def logs(self):
        done = docker("logs", self.name, is_checked=False)
        return done.stdout + done.stderr

    def running_state(self):
        state = self.state()
        if not state["Running"]:
            raise RuntimeError("%s ended with %d: %s" % (self.name, state["ExitCode"], self.logs()))
        return state

    def wait_healthy(self):
        sinkonce.wait_for(lambda: self.running_state()["Health"]["Status"] == "healthy", self.name + " to be healthy",
                          seconds=60, every=0.2)

    def wait_ready(self):
        """Sooner than Docker asks for the first time."""
        def is_ready():
            self.running_state()
            try:
                return sinkonce.request(self.admin_port, "GET", "/readyz")[0] == 200
            except OSError:
                return False
        sinkonce.wait_for(is_ready, self.name + " to be ready", seconds=60, every=0.1)

    def post(self, first, last=None):
        body = b"\n".join(sinkonce.record("orders", 0, offset) for offset in range(first, (last or first) + 1))
        return sinkonce.request(self.port, "POST", "/orders", body, {"Content-Type": "application/json"})

    def remove(self):
        docker("rm", "-f", self.name)


def status_of(pid):
    with open("/proc/%d/status" % pid) as status:
        return dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)


def check_confinement(container):
    pid = container.state()["Pid"]
    status = status_of(pid)
    assert status["Uid"].split()[0] == str(UID), status["Uid"]
    assert status["NSpid"].split()[-1] == "1", status["NSpid"]
    assert int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0, status["CapEff"]
    with open("/proc/%d/mounts" % pid) as mounts:
        root = next(line.split() for line in mounts if line.split()[1] == "/")
    assert "ro" in root[3].split(","), root
    print("ok   I-02 uid %d, pid 1, read-only root, no capabilities" % UID)
    print("     %s resident when idle (anonymous: %s), %s threads" % (status["VmRSS"].strip(), status["RssAnon"].strip(),
                                                                     status["Threads"]))


def check_health(container):
    test = container.inspect()["Config"]["Healthcheck"]["Test"]
    assert test[0] == "CMD", test  # the exec form: no shell
    container.wait_healthy()
    print("ok   I-03 healthy by %s" % " ".join(test[1:]))


def check_stop(container):
    """Docker itself kills after the second that is allowed: then the code is 137."""
    docker("stop", "-t", "1", container.name)
    state = container.state()
    assert state["ExitCode"] == 0, "exit code %d: %s" % (state["ExitCode"], container.logs())
    print("ok   I-04 SIGTERM ends it with 0 within a second")


def check_ledger_survives(target, volume):
    """The container of I-02 to I-04 has applied record 7 and is gone; its successor must know that."""
    second = Container("sinkonce-second", target, volume)
    second.wait_ready()
    status, headers, _ = second.post(7)
    assert status in (200, 201), status
    assert headers.get("sinkonce-outcome") == "duplicate", headers
    assert len(target.bodies) == 1, len(target.bodies)
    print("ok   I-05 the ledger survives the container")
    return second


def check_lock(target, volume):
    third = Container("sinkonce-third", target, volume)
    code = int(docker("wait", third.name))
    assert code == EX_TEMPFAIL, "exit code %d: %s" % (code, third.logs())
    third.remove()
    print("ok   I-06 a second container on the same volume refuses to start")


def limit_in_force(pid, controller, *files):
    """What the kernel keeps the process to; Docker may have dropped what it was asked for."""
    with open("/proc/%d/cgroup" % pid) as groups:
        for _, controllers, path in (line.rstrip("\n").split(":", 2) for line in groups):
            folder = "/sys/fs/cgroup" + ("/" + controller if controllers else "") + path
            for file in files:
                if controllers in ("", controller) and os.path.exists(os.path.join(folder, file)):
                    with open(os.path.join(folder, file)) as limit:
                        return limit.read().strip()
    return None


def check_small(container):
    """Docker's own look at its health, which needs threads and memory of its own inside, comes after the writes."""
    container.wait_healthy()
    for first in range(0, 20000, 1000):
        status, _, body = container.post(first, first + 999)
        assert status == 201, (status, body[:200])
    _, headers, _ = container.post(0, 999)
    assert headers.get("sinkonce-outcome") == "duplicate", headers
    def checks():
        return [check["End"] for check in container.running_state()["Health"]["Log"]]
    before = checks()[-1]
    sinkonce.wait_for(lambda: checks()[-1] != before, "another look at its health", seconds=60, every=0.2)
    state = container.running_state()
    assert state["Health"]["Status"] == "healthy" and state["Health"]["FailingStreak"] == 0, state["Health"]
    assert not state["OOMKilled"], state
    limits = (limit_in_force(state["Pid"], "memory", "memory.max", "memory.limit_in_bytes"),
              limit_in_force(state["Pid"], "pids", "pids.max"))
    assert limits == (str(32 << 20), "16"), limits
    print("ok   I-07 healthy with 32 MiB and 16 processes, 20,000 records later (peak %s)"
          % status_of(state["Pid"])["VmHWM"].strip())


def check_versions():
    """Every package of the image by name and version, and libevent with the fixes that it needs."""
    lines = docker("run", "--rm", "--network", "none", IMAGE, "--version", "--verbose").splitlines()
    packages = dict(line.split(" ")[1:] for line in lines if line.startswith("package "))
    versions = dict(line.split(" ")[:2] for line in lines)
    label = json.loads(docker("inspect", IMAGE))[0]["Config"]["Labels"]["org.opencontainers.image.version"]
    assert versions["sinkonce"] == label, (versions["sinkonce"], label)
    for name in ("base-files", "ca-certificates", "libc6", "libjansson4", "liblmdb0", "libxxhash0", "libzstd1", "zlib1g"):
        assert packages.get(name, "?") != "?", (name, packages)
    libevent = next(version for name, version in packages.items() if name.startswith("libevent-core-"))
    assert libevent.startswith(versions["libevent"]), (libevent, versions["libevent"])
    print("ok   I-08 %d packages, each with its version; program and label say %s" % (len(packages), label))
    fixed = LIBEVENT_FIXED[packages["base-files"].split(".")[0]]
    assert subprocess.run(["dpkg", "--compare-versions", libevent, "ge", fixed]).returncode == 0, libevent
    print("ok   H-00 libevent %s" % libevent)


def check_contents():
    """One program and what it loads: no shell, no package manager, nothing that changes its user."""
    container = docker("create", IMAGE)
    export = subprocess.Popen(["/usr/bin/docker", "export", container], stdout=subprocess.PIPE)
    with tarfile.open(fileobj=export.stdout, mode="r|") as files:
        # Empty ones are what Docker mounts something over: /etc/hosts, /dev/console.
        programs = [(file.name, file.mode) for file in files if file.isfile() and file.size > 0 and file.mode & 0o111]
    assert export.wait() == 0
    docker("rm", container)
    strange = [name for name, mode in programs if ".so" not in name and name != "usr/local/bin/sinkonce" or mode & 0o6000]
    assert not strange, strange
    print("     no other program in it; %s bytes" % docker("image", "inspect", "-f", "{{.Size}}", IMAGE))


def main():
    target, small_target = Target(), Target()
    for volume in ("ledger", "small-ledger"):
        docker("volume", "create", volume)
    first = Container("sinkonce-first", target, "ledger")
    small = Container("sinkonce-small", small_target, "small-ledger", "--memory", "32m", "--pids-limit", "16")
    check_health(first)
    check_confinement(first)
    status, _, _ = first.post(7)
    assert status == 201, status
    check_stop(first)
    first.remove()
    second = check_ledger_survives(target, "ledger")
    check_lock(target, "ledger")
    second.remove()
    check_small(small)
    small.remove()
    check_versions()
    check_contents()


if __name__ == "__main__":
    main()
