"""What the image must do once it is built: I-02 to I-06, H-00.  Started by run.sh, with DOCKER_HOST set.

Containers share the host's network, because the daemon of the test has no bridge; ports are free ones on 127.0.0.1.
"""

import http.server
import json
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import sinkonce  # noqa: E402

IMAGE = "sinkonce:ci"
UID = 65532
EX_TEMPFAIL = 75  # sysexits.h: the ledger is locked


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
    def __init__(self, name, target, volume):
        self.name, self.port, self.admin_port = name, sinkonce.free_port(), sinkonce.free_port()
        docker("run", "-d", "--name", name, "--network", "host", "--read-only", "--cap-drop", "ALL", "--security-opt",
               "no-new-privileges", "-v", volume + ":/var/lib/sinkonce", "-e",
               "SINKONCE_TARGET=http://127.0.0.1:%d" % target.server_port, "-e", "SINKONCE_LISTEN=127.0.0.1:%d" % self.port,
               "-e", "SINKONCE_ADMIN_LISTEN=127.0.0.1:%d" % self.admin_port, IMAGE)

    def inspect(self):
        return json.loads(docker("inspect", self.name))[0]

    def state(self):
        return self.inspect()["State"]

    def logs(self):
        done = docker("logs", self.name, is_checked=False)
        return done.stdout + done.stderr

    def wait_healthy(self):
        def is_healthy():
            state = self.state()
            if not state["Running"]:
                raise RuntimeError("%s ended with %d: %s" % (self.name, state["ExitCode"], self.logs()))
            return state["Health"]["Status"] == "healthy"
        sinkonce.wait_for(is_healthy, self.name + " to be healthy", seconds=60, every=0.2)

    def post(self, offset):
        return sinkonce.request(self.port, "POST", "/orders", sinkonce.record("orders", 0, offset),
                                {"Content-Type": "application/json"})

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
    second.wait_healthy()
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


def check_libevent():
    version = docker("run", "--rm", "--network", "none", "--entrypoint", "dpkg-query", IMAGE, "-W", "-f", "${Version}",
                     "libevent-core-2.1-7")
    fixed = "2.1.12-stable-8+deb12u1"
    assert subprocess.run(["dpkg", "--compare-versions", version, "ge", fixed]).returncode == 0, version
    print("ok   H-00 libevent %s" % version)


def main():
    target = Target()
    volume = "ledger"
    docker("volume", "create", volume)
    first = Container("sinkonce-first", target, volume)
    check_health(first)
    check_confinement(first)
    status, _, _ = first.post(7)
    assert status == 201, status
    check_stop(first)
    first.remove()
    second = check_ledger_survives(target, volume)
    check_lock(target, volume)
    second.remove()
    check_libevent()
    print("     %s bytes in the image" % docker("image", "inspect", "-f", "{{.Size}}", IMAGE))


if __name__ == "__main__":
    main()
