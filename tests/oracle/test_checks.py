#!/usr/bin/env python3
"""N-13: the checks themselves, on histories written by hand.  Each broken one must be called broken, for its reason."""

import os
import tempfile
import unittest

import checks
import history

KEYS = ["t/0/%d" % offset for offset in range(4)]
HASHES = {key: "h" + key for key in KEYS}


def deliver(number, *keys, said="ok", applied=None, answer="ok", **more):
    """One request that reaches the target and is answered."""
    applied = (keys if said == "ok" else ()) if applied is None else applied
    yield {"e": "send", "id": number, "keys": list(keys)}
    yield {"e": "attempt", "id": 100 + number, "keys": list(keys)}
    if applied:
        yield {"e": "apply", "id": 100 + number, "keys": {key: HASHES.get(key, "?") for key in applied}}
    yield {"e": "reply", "id": 100 + number, "r": said, **more}
    yield {"e": "answer", "id": number, "r": answer, "acked": list(keys) if answer == "ok" else [], "status": 200}


def doubtful(number, *keys, applied=()):
    return deliver(number, *keys, said="info", applied=applied, answer="fail")


def dropped(number, *keys):
    """One request that is answered from the ledger."""
    yield {"e": "send", "id": number, "keys": list(keys)}
    yield {"e": "answer", "id": number, "r": "ok", "acked": list(keys), "status": 200, "outcome": "duplicate"}


def resolved(key, is_applied=True, said="ok"):
    yield {"e": "resolve", "key": key, "applied": is_applied}
    yield {"e": "resolved", "key": key, "r": said}


def kill():
    for event in ("kill", "killed", "born", "start"):
        yield {"e": event}


def listed(applied=(), in_doubt=(), event="list"):
    states = {**dict.fromkeys(applied, "applied"), **dict.fromkeys(in_doubt, "in_doubt")}
    yield {"e": event, "doubts": list(in_doubt), "states": states}


class Checks(unittest.TestCase):
    def kinds(self, *parts, policy="hold"):
        events = [{"e": "produce", "keys": HASHES}, {"e": "policy", "name": policy}]
        for part in parts:
            events += [part] if isinstance(part, dict) else list(part)
        return [kind for kind, _, _ in checks.check(events).breaches]

    def test_a_clean_history_is_good(self):
        self.assertEqual(self.kinds(deliver(1, *KEYS), dropped(2, *KEYS), listed(KEYS), listed(KEYS, event="end")), [])

    def test_N_13_one_duplicate(self):
        self.assertEqual(self.kinds(deliver(1, KEYS[0]), deliver(2, KEYS[0]), listed(KEYS[:1])),
                         ["sent again after it was acknowledged", "applied twice"])

    def test_N_13_a_duplicate_of_one_that_was_never_acknowledged(self):
        self.assertEqual(self.kinds(deliver(1, KEYS[0], answer="fail"), deliver(2, KEYS[0], answer="fail"), listed(KEYS[:1])),
                         ["applied twice"])

    def test_N_13_one_loss(self):
        self.assertEqual(self.kinds(dropped(1, KEYS[0]), listed(KEYS[:1])),
                         ["acknowledged and not applied", "lost: called applied"])

    def test_N_13_a_loss_that_nobody_was_told_of(self):
        self.assertEqual(self.kinds(listed(KEYS[:1])), ["lost: called applied"])

    def test_N_13_one_swap(self):
        self.assertEqual(self.kinds(deliver(1, KEYS[1]), deliver(2, KEYS[0]), listed(KEYS[:2])), ["out of order"])

    def test_N_13_an_order_broken_inside_of_one_request(self):
        self.assertEqual(self.kinds(deliver(1, KEYS[0], KEYS[2], KEYS[1]), listed(KEYS[:3])), ["out of order"])

    def test_offsets_are_ordered_as_numbers_and_within_their_partition(self):
        for name in ("t/0/9", "t/0/10", "t/1/0"):
            HASHES[name] = None
            self.addCleanup(HASHES.pop, name)
        good = [deliver(1, "t/0/9", "t/0/10"), deliver(2, "t/1/0"), listed(["t/0/9", "t/0/10", "t/1/0"])]
        self.assertEqual(self.kinds(*good), [])

    def test_what_was_given_up_or_refused_alone_has_no_order(self):
        skip = {"e": "skip", "keys": KEYS[:1]}
        self.assertEqual(self.kinds(skip, deliver(1, KEYS[1]), deliver(2, KEYS[0]), listed(KEYS[:2])), [])
        self.assertEqual(self.kinds(deliver(1, *KEYS[:2], applied=KEYS[1:2], answer="fail", keys={KEYS[0]: "fail"}),
                                    deliver(2, KEYS[0]), listed(KEYS[:2])), [])

    def test_what_was_assumed_may_be_applied_late_and_then_has_no_order(self):
        """Seed 1121: a request that a kill left behind at the target, which took its time with it."""
        late = {"e": "apply", "id": 101, "keys": {KEYS[0]: HASHES[KEYS[0]]}}
        sent = [{"e": "send", "id": 1, "keys": [KEYS[0]]}, {"e": "attempt", "id": 101, "keys": [KEYS[0]]}, *kill()]
        told = [{"e": "answer", "id": 1, "r": "info", "acked": []}, *dropped(2, KEYS[0])]
        after = [*deliver(3, KEYS[1]), late, listed(KEYS[:2])]
        policy = {"e": "policy", "name": "assume-applied"}
        self.assertEqual(self.kinds(policy, *sent, *told, *after), [])
        self.assertEqual(self.kinds(*sent, *told, *after), ["acknowledged and not applied"])

    def test_N_13_one_changed_body(self):
        HASHES["t/0/9"] = "right"
        events = list(deliver(1, "t/0/9"))
        events[2]["keys"]["t/0/9"] = "wrong"
        self.assertEqual(self.kinds(*events, listed(["t/0/9"])), ["body changed"])
        del HASHES["t/0/9"]

    def test_N_13_one_silent_doubt(self):
        self.assertEqual(self.kinds(doubtful(1, KEYS[0]), listed()), ["unknown and not listed"])
        self.assertEqual(self.kinds(doubtful(1, KEYS[0], applied=KEYS[:1]), listed()),
                         ["applied, and neither known nor listed", "unknown and not listed"])
        self.assertEqual(self.kinds(doubtful(1, KEYS[0], applied=KEYS[:1]), listed(KEYS[:1])), ["unknown and not listed"])

    def test_N_13_what_the_target_has_and_the_ledger_does_not(self):
        self.assertEqual(self.kinds(deliver(1, KEYS[0], answer="fail"), listed()), ["applied, and neither known nor listed"])

    def test_N_13_one_false_doubt(self):
        self.assertEqual(self.kinds(deliver(1, KEYS[0], said="fail", answer="fail"), listed(in_doubt=KEYS[:1])),
                         ["listed and not unknown"])
        self.assertEqual(self.kinds(deliver(1, KEYS[0]), listed(in_doubt=KEYS[:1])), ["in doubt and acknowledged"])
        self.assertEqual(self.kinds(listed(in_doubt=["t/0/77"])), ["in doubt and never produced"])

    def test_a_doubt_that_is_listed_and_then_resolved(self):
        self.assertEqual(self.kinds(doubtful(1, KEYS[0]), listed(in_doubt=KEYS[:1])), [])
        late = [doubtful(1, KEYS[0], applied=KEYS[:1]), resolved(KEYS[0]), dropped(2, KEYS[0]), listed(KEYS[:1])]
        self.assertEqual(self.kinds(*late), [])
        again = [doubtful(1, KEYS[0]), resolved(KEYS[0], False), deliver(2, KEYS[0]), listed(KEYS[:1])]
        self.assertEqual(self.kinds(*again), [])
        self.assertEqual(self.kinds(doubtful(1, KEYS[0]), resolved(KEYS[0], said="fail"), listed()), ["unknown and not listed"])

    def test_N_13_a_doubt_that_was_resolved_and_is_still_listed(self):
        self.assertEqual(self.kinds(doubtful(1, KEYS[0]), resolved(KEYS[0], False), listed(in_doubt=KEYS[:1])),
                         ["listed and not unknown"])

    def test_N_13_a_doubt_that_is_sent_again_or_acknowledged_without_a_decision(self):
        self.assertEqual(self.kinds(doubtful(1, KEYS[0]), deliver(2, KEYS[0]), listed(KEYS[:1])),
                         ["sent again while in doubt"])
        self.assertEqual(self.kinds(doubtful(1, KEYS[0], applied=KEYS[:1]), dropped(2, KEYS[0]), listed(KEYS[:1])),
                         ["acknowledged while in doubt"])

    def test_the_policy_retry_may_send_a_doubt_again_and_nothing_else(self):
        again = [doubtful(1, KEYS[0], applied=KEYS[:1]), deliver(2, KEYS[0]), listed(KEYS[:1])]
        self.assertEqual(self.kinds(*again, policy="retry"), [])
        self.assertEqual(self.kinds(deliver(1, KEYS[0]), deliver(2, KEYS[0]), listed(KEYS[:1]), policy="retry"),
                         ["sent again after it was acknowledged", "applied twice"])

    def test_a_retry_that_is_refused_leaves_the_doubt_about_the_first_sending(self):
        def again(number):
            return deliver(number, KEYS[0], said="fail", answer="fail")
        first = list(doubtful(1, KEYS[0], applied=KEYS[:1]))
        self.assertEqual(self.kinds(first, again(2), listed(in_doubt=KEYS[:1]), policy="retry"), [])
        self.assertEqual(self.kinds(first, again(2), listed(), policy="retry"),
                         ["applied, and neither known nor listed", "unknown and not listed"])
        self.assertEqual(self.kinds(first, again(2), again(3), listed(in_doubt=KEYS[:1]), policy="retry"), [])
        self.assertEqual(self.kinds(first, again(2), deliver(3, KEYS[0]), listed(KEYS[:1]), policy="retry"), [])
        self.assertEqual(self.kinds(deliver(1, KEYS[0], answer="fail"), again(2), listed(), policy="retry"),
                         ["applied, and neither known nor listed"])

    def test_the_policy_assume_applied_may_lose_a_doubt_and_nothing_else(self):
        self.assertEqual(self.kinds(doubtful(1, KEYS[0]), dropped(2, KEYS[0]), listed(KEYS[:1]), policy="assume-applied"), [])
        self.assertEqual(self.kinds(dropped(2, KEYS[0]), listed(KEYS[:1]), policy="assume-applied"),
                         ["acknowledged and not applied", "lost: called applied"])

    def test_a_kill_leaves_open_what_the_target_had_not_answered(self):
        sent = [{"e": "send", "id": 1, "keys": KEYS[:1]}, {"e": "attempt", "id": 2, "keys": KEYS[:1]}]
        self.assertEqual(self.kinds(*sent, kill(), listed(in_doubt=KEYS[:1])), [])
        self.assertEqual(self.kinds(*sent, kill(), listed()), ["unknown and not listed"])
        self.assertEqual(self.kinds(sent[0], kill(), listed(in_doubt=KEYS[:1])), [])
        self.assertEqual(self.kinds(kill(), deliver(1, KEYS[0], said="fail", answer="fail"), listed(in_doubt=KEYS[:1])),
                         ["listed and not unknown"])

    def test_a_replay_sends_once_more_and_not_twice(self):
        replay = {"e": "replay", "keys": KEYS[:1]}
        self.assertEqual(self.kinds(deliver(1, KEYS[0]), replay, deliver(2, KEYS[0]), listed(KEYS[:1])), [])
        self.assertEqual(self.kinds(deliver(1, KEYS[0]), replay, deliver(2, KEYS[0]), deliver(3, KEYS[0]), listed(KEYS[:1])),
                         ["sent again after it was acknowledged", "applied twice"])

    def test_N_13_a_record_that_nobody_produced(self):
        self.assertEqual(self.kinds(deliver(1, "t/0/77"), listed()), ["sent and never produced"])

    def test_N_13_an_answer_that_no_connector_may_see(self):
        strange = [{**event, "status": 502} if event["e"] == "answer" else event for event in dropped(1)]
        self.assertEqual(self.kinds(*strange), ["a status that no connector may see"])

    def test_N_13_a_record_that_is_missing_in_the_end(self):
        self.assertEqual(self.kinds(deliver(1, *KEYS[:3]), listed(KEYS[:3]), listed(KEYS[:3], event="end")),
                         ["lost", "offered and never acknowledged", "not applied in the end"])

    def test_the_program_reads_a_file_and_a_file_keeps_the_order(self):
        with tempfile.TemporaryDirectory() as folder:
            writer = history.History(os.path.join(folder, "history"))
            for event in (*deliver(1, KEYS[0]), *listed(KEYS[:1])):
                fields = dict(event)
                writer.write(fields.pop("e"), **fields)
            writer.close()
            self.assertEqual([event["e"] for event in history.read(writer.path)],
                             ["send", "attempt", "apply", "reply", "answer", "list"])


if __name__ == "__main__":
    unittest.main()
