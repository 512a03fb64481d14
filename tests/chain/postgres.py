"""A PostgreSQL server of its own in a folder, on a port of 127.0.0.1 and for nobody else; as root it runs as the user
that Debian's package made for it."""

import glob
import os
import pwd
import shutil
import signal
import subprocess

import sinkonce
from kafka import Missing
from sinkonce import wait_for

USER = "postgres"


def _programs():
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not folders or shutil.which("psql") is None:
        raise Missing("no PostgreSQL (Debian's package postgresql)")
    return folders[-1]


class Postgres:
    def __init__(self, folder):
        self.programs = _programs()
        self.log = folder + ".log"
        self.port = sinkonce.free_port()
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        prefix = []
        if os.getuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(folder, user.pw_uid, user.pw_gid)
            prefix = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]
        made = subprocess.run(prefix + [self.programs + "/initdb", "-D", folder, "-A", "trust", "-U", USER, "--no-sync",
                                        "--locale=C.UTF-8"], cwd="/", capture_output=True, text=True, timeout=120)
        if made.returncode != 0:
            raise RuntimeError("initdb: " + made.stderr)
        if prefix:  # a change of the user forgets the order to die with us
            prefix += ["--pdeathsig", "KILL"]
        self.process = sinkonce.Process(
            prefix + [self.programs + "/postgres", "-D", folder, "-p", str(self.port), "-k", "",
                      "-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB"], self.log, cwd="/")
        wait_for(lambda: self._psql("SELECT 1").returncode == 0, "PostgreSQL to listen", 60, [self.log], every=0.2)

    def _psql(self, statement):
        return subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
                               "-p", str(self.port), "-U", USER, "-d", "postgres", "-c", statement],
                              capture_output=True, text=True, timeout=60)

    def ask(self, statement):
        """The rows, each a list of texts."""
        answer = self._psql(statement)
        if answer.returncode != 0:
            raise RuntimeError("psql: " + answer.stderr)
        return [line.split("|") for line in answer.stdout.splitlines()]

    def close(self):
        if self.process.is_running():
            self.process.signal(signal.SIGINT)  # ends its sessions too
            self.process.wait(30)
