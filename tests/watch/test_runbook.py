#!/usr/bin/env python3
"""Each command of the runbook, run on a sinkonce that is in the state the section speaks of.

A word in capitals stands for what an operator has read off the command before; PREPARED says what that is here.
"""

import os
import re
import shlex
import subprocess
import tempfile
import unittest

import watched
import harness

SKIPPED = re.compile(r"^dmesg\b")  # the machine's, not ours


def commands():
    """(alert, command), as they stand"""
    yield None, "sinkonce status"
    for alert, section in watched.runbook().items():
        for block in re.findall(r"```sh\n(.*?)```", section, re.S):
            for line in block.splitlines():
                yield alert, line


class TestCommands(unittest.TestCase):
    def setUp(self):
        self.world = watched.World()
        self.addCleanup(self.world.__exit__)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.symlink(os.environ["SINKONCE_BIN"], os.path.join(self.folder.name, "sinkonce"))
        self.sample = os.path.join(self.folder.name, "sample")
        with open(self.sample, "wb") as file:
            file.write(watched.record("orders", 0, 7))
        for offset in range(5):
            self.world.send("orders", offset)
        self.topics = 0

    def words_for(self, command):
        """What the words in capitals are, after the state is such that the command has something to do."""
        self.topics += 1
        topic, world = "t%d" % self.topics, self.world
        words = {"ADMIN": "127.0.0.1:%d" % world.proxy.admin_port, "SAMPLE": self.sample, "TOPIC": topic,
                 "PARTITION": "0", "OFFSET": "0", "COUNT": "1"}
        if command.startswith("sinkonce in-doubt resolve"):
            words["ID"] = str(world.doubt(topic, 0))
        elif command.startswith("sinkonce conflicts decide"):
            words["ID"] = str(world.conflict(topic))
        elif command.startswith("sinkonce replay close"):
            world.send(topic, 0)
            status, window = world.proxy.admin("POST", "/replays", {"topic": topic, "partition": 0, "from": 0, "to": 0,
                                                                    "for": "10m", "reason": "a test"})
            self.assertEqual(status, 200, window)
            words["ID"] = str(window["id"])
        else:
            world.send(topic, 0)
        return words

    def run_command(self, command):
        words = self.words_for(command)
        filled = re.sub(r"\b[A-Z]{2,}\b", lambda found: words.get(found[0], found[0]), command)
        env = {**self.world.proxy.environment(), "PATH": self.folder.name + ":" + os.environ["PATH"]}
        return subprocess.run(["bash", "-o", "pipefail", "-c", filled], env=env, capture_output=True, text=True, timeout=60)

    def test_each_command_does_what_it_says(self):
        for alert, command in commands():
            if SKIPPED.match(command) or command == "sinkonce ledger verify":
                continue
            with self.subTest(alert=alert, command=command):
                done = self.run_command(command)
                # what "check" finds while an instance runs is that the ledger is in use: also an answer
                allowed = (0, 75) if command.startswith("sinkonce check") else (0,)
                self.assertIn(done.returncode, allowed, done.stdout + done.stderr)

    def test_a_stopped_ledger_can_be_verified(self):
        self.assertIn("sinkonce ledger verify", [command for _, command in commands()])
        self.world.proxy.stop()
        done = self.world.proxy.run("ledger", "verify")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_first_word_is_a_program_that_an_operator_has(self):
        for _, command in commands():
            self.assertIn(shlex.split(command)[0], ("sinkonce", "curl", "df", "dmesg"))


if __name__ == "__main__":
    harness.main()
