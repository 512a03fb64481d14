"""What the scenarios with certificates share: one authority, files that are replaced in one step, and SIGHUP."""

import os
import shutil
import signal
import tempfile
import unittest

import harness
import pki
from harness import PATIENCE, sinkonce, wait_for


class AuthorityScenario(harness.Scenario):
    """Files in a folder of the test's own, with one authority for all."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not pki.is_here():
            raise unittest.SkipTest("openssl is not installed")

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="sinkonce-tls-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.ours = sinkonce.papers.authority

    def file(self, name, content=None, of=None):
        """A file of that name with CONTENT, or with what the file OF holds; its path.  It is replaced in one step."""
        path = os.path.join(self.folder, name)
        if of is not None:
            with open(of) as source:
                content = source.read()
        with open(path + ".new", "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as out:
            out.write(content)
        os.rename(path + ".new", path)
        return path

    def log(self):
        with open(self.proxy.log, errors="replace") as log:
            return log.read()

    def hangup(self, result="done"):
        """SIGHUP, and wait until it has been obeyed or refused."""
        name = 'sinkonce_reloads_total{result="%s"}' % result
        before = self.proxy.metrics()[name]
        self.proxy.process.signal(signal.SIGHUP)
        wait_for(lambda: self.proxy.metrics()[name] == before + 1, "the reload to be " + result, PATIENCE,
                 [self.proxy.log])
