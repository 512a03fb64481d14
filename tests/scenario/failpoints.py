"""What the scenarios on the program with failpoints share: at which points it kills itself, and how it is led there.

SINKONCE_FAILPOINTS_BIN names the program.
"""

import os
import unittest

BINARY = os.environ.get("SINKONCE_FAILPOINTS_BIN")

# point, id of the crash row, whether the target has what is new, the state of that after the restart
POINTS = [
    ("before_intent", "C1 F-01", False, "absent"),
    ("after_intent", "C2 F-02", False, "in_doubt"),
    ("mid_send", "C3 F-03", False, "in_doubt"),
    ("after_send", "C3 F-04", True, "in_doubt"),
    ("after_response", "C4 F-05", True, "in_doubt"),
    ("after_result", "C5 F-06", True, "applied"),
    ("before_reply", "C5 F-07", True, "applied"),
]


@unittest.skipUnless(BINARY, "SINKONCE_FAILPOINTS_BIN is not set")
class Mortal:
    """Beside a Scenario, and before it: its sinkonce has failpoints."""

    def serve(self, **settings):
        os.environ["SINKONCE_BIN"], plain = BINARY, os.environ["SINKONCE_BIN"]
        try:
            super().serve(**settings)
        finally:
            os.environ["SINKONCE_BIN"] = plain

    def start_with(self, point):
        """Start anew, to die at POINT."""
        os.environ["FAILPOINT"] = point + ":abort"
        try:
            self.proxy.kill()
            self.proxy.start()
        finally:
            del os.environ["FAILPOINT"]

    def die_at(self, point, call, *arguments):
        """CALL leads an exchange there, and gets no answer; then all goes on without a failpoint."""
        self.start_with(point)
        self.assertIsNone(self.later(call, *arguments).result(), "the connection ends without an answer")
        self.assertEqual(self.proxy.process.wait(), -9)
        self.proxy.start()


def add_tests(kind, method, *leading, name=""):
    """A test of KIND per point: METHOD with LEADING, the point, whether the target has it, the state."""
    for point, row, is_applied, state in POINTS:
        def test(self, point=point, is_applied=is_applied, state=state):
            getattr(self, method)(*leading, point, is_applied, state)
        setattr(kind, "test_%s_%skilled_%s_it_is_%s" % (row.replace(" ", "_").replace("-", "_"), name, point, state), test)
