#!/usr/bin/env python3
"""What must hold of a history (history.py); a key is topic/partition/offset.

    checks.py HISTORY        prints the figures and the breaches; exit 0 when there are none, 1 otherwise

Of each key the checks keep what nobody but the target and the driver has said:
    must   an attempt ended without a proof, and nothing has resolved it since: it has to be listed in doubt
    may    something happened around it (a kill, a cut connection, a late answer): it can be in doubt, or not
What is neither may not be listed; what the target applied is applied or listed, always.

Events, in the order of the lines:
    produce keys{key: hash}   policy name                         what the run is about
    send id keys              answer id r acked[] status [outcome] [ms]   the driver: r info means that no answer came
    skip keys                                                     given up: its order is lost
    attempt id keys           apply id keys{key: hash}            the target: a request was read; it took effect
    reply id r keys{key: r} [late]                                the target is about to say so; keys: where r differs
    probe key said                                                the target was asked: yes, no, unclear
    kill, killed              about to die, dead
    born, start               about to start, ready
    trouble / over            anything that can leave an outcome open for what is sent in between
    resolve key applied       resolved key r                      a person decides, by the target's journal
    forget keys               replay keys                         may be sent again, once each
    loose / strict            mode observe or off, and enforce again
    list doubts[] states{key: state}                              the ledger at rest
    end doubts[] states{}                                         the same after all has been offered again
"""

import sys
from collections import Counter

import history

LATE_MS = 350  # of a target's time-out of 800 ms: a slower answer can have come too late
STATUSES = {200, 201, 503}  # of sinkonce, and those below that the target may give
REFUSALS = {400, 404, 409, 422, 429, 501}


class Key:
    """What is known of one record."""

    def __init__(self):
        self.count = self.allowed = self.attempts = self.sent_freely = 0
        self.must = self.may = self.acked = self.offered = self.free = self.assumed = False
        self.is_reopened = self.is_forgotten = self.was_must = False
        self.resolving = None  # how often it had been sent when a person began to resolve it
        self.is_loose = False  # its order is not asked for


class Checks:
    def __init__(self):
        self.keys, self.hashes, self.policy = {}, {}, "hold"
        self.sends, self.ghosts, self.attempts = {}, [], {}
        self.troubles = 0
        self.is_dead = self.has_assumed = False
        self.is_loose = False
        self.breaches, self.figures, self.applications = [], Counter(), []

    def breach(self, kind, key, line):
        self.breaches.append((kind, key, line))

    def of(self, keys):
        for key in keys:
            if key not in self.keys:
                self.keys[key] = Key()
            yield key, self.keys[key]

    def run(self, events):
        for number, event in enumerate(events, 1):
            getattr(self, "on_" + event["e"])(event, number)
        return self

    # the run

    def on_produce(self, event, _):
        self.hashes.update(event["keys"])
        self.figures["records"] += len(event["keys"])
        for _ in self.of(event["keys"]):
            pass

    def on_policy(self, event, _):
        self.policy = event["name"]
        self.has_assumed |= self.policy == "assume-applied"

    def on_wrong(self, event, line):
        self.breach(event["kind"], event["what"], line)

    # the driver

    def on_send(self, event, _):
        self.sends[event["id"]] = event["keys"]
        self.figures["requests"] += 1
        for _, key in self.of(event["keys"]):
            key.offered = True
            key.may |= self.troubles > 0
            key.free |= self.is_loose

    def on_answer(self, event, line):
        keys = self.sends.pop(event["id"])
        if event["r"] == "info":
            self.ghosts.append(keys)  # it may still run in there
        if event["r"] == "info" or event.get("ms", 0) > LATE_MS:
            self.trouble_of(keys)
        status = event.get("status")
        is_free = any(key.free for _, key in self.of(keys))
        if status is not None and status not in STATUSES | REFUSALS and not is_free:
            self.breach("a status that no connector may see", status, line)
        if event.get("outcome") in ("conflict", "unkeyed") and not is_free:
            self.breach("an outcome that none of these has", event["outcome"], line)
        for name, key in self.of(event["acked"]):
            if key.free or self.is_assumed(key):
                pass
            elif key.count == 0:
                self.breach("acknowledged and not applied", name, line)
            elif key.must and not key.is_forgotten:
                self.breach("acknowledged while in doubt", name, line)
            key.acked = True
            key.must = key.may = False

    def is_assumed(self, key):
        """The policy calls a doubt applied when it comes again: counted, a possible loss."""
        key.assumed |= self.has_assumed and (key.must or key.may)
        return key.assumed

    def on_skip(self, event, _):
        for _, key in self.of(event["keys"]):
            key.is_loose = True

    def trouble_of(self, keys):
        for _, key in self.of(keys):
            key.may = True

    def trouble_of_all(self):
        for keys in [*self.sends.values(), *self.ghosts]:
            self.trouble_of(keys)

    # the target

    def on_attempt(self, event, line):
        self.attempts[event["id"]] = [] if self.is_dead else event["keys"]
        self.figures["attempts"] += 1
        for name, key in self.of(event["keys"]):
            key.attempts += 1
            key.may |= self.troubles > 0
            if name not in self.hashes:
                self.breach("sent and never produced", name, line)
            if key.free:
                continue
            if key.acked and not self.take_leave(key):
                self.breach("sent again after it was acknowledged", name, line)
            if key.must and self.policy != "retry" and not (self.has_assumed and self.take_leave(key)):
                self.breach("sent again while in doubt", name, line)
            if key.must or (key.may and self.policy == "retry"):
                key.allowed += 1
                key.is_reopened = key.must
                self.figures["retried"] += key.must
                key.may, key.must = True, False
            key.must |= self.is_dead  # nobody will read the answer

    @staticmethod
    def take_leave(key):
        if key.sent_freely == 0:
            return False
        key.sent_freely -= 1
        key.acked, key.may = False, True
        return True

    def on_apply(self, event, line):
        for name, key in self.of(event["keys"]):
            key.count += 1
            # nothing waits for what may be assumed, and the target may take its time with it
            key.is_loose |= self.has_assumed and (key.assumed or key.must or key.may)
            self.figures["applied"] += 1
            self.applications.append(name)
            if key.count > 1:
                self.figures["duplicates"] += 1
            if key.count > 1 + key.allowed and not key.free:
                self.breach("applied twice", name, line)
            if self.hashes.get(name) not in (None, event["keys"][name]) and not key.free:
                self.breach("body changed", name, line)

    def on_reply(self, event, _):
        special = event.get("keys", {})
        for name, key in self.of(self.attempts.pop(event["id"])):
            said = special.get(name, event["r"])
            key.is_loose |= bool(special)
            if said == "info":
                key.must = True
                self.figures["unknown"] += 1
            key.may |= bool(event.get("late"))
            key.must |= key.is_reopened and said == "fail"  # that says nothing about the first sending
            key.is_reopened = False

    def on_probe(self, event, _):
        for _, key in self.of([event["key"]]):
            if event["said"] != "unclear" and key.must:
                key.must, key.may = False, True

    # the nemesis

    def on_kill(self, event, _):
        self.figures["kills"] += 1
        self.troubles += 1
        self.trouble_of_all()

    def on_killed(self, event, _):
        self.is_dead = True
        for keys in self.attempts.values():
            for _, key in self.of(keys):
                key.must = True  # an intent on the disk, and nobody left to read the answer
        self.attempts = {number: [] for number in self.attempts}
        self.trouble_of_all()

    def on_born(self, event, _):
        self.is_dead, self.ghosts = False, []

    def on_start(self, event, _):
        self.troubles -= 1

    def on_trouble(self, event, _):
        self.figures["troubles"] += 1
        self.troubles += 1
        self.trouble_of_all()

    def on_over(self, event, _):
        self.troubles -= 1

    def on_loose(self, event, _):
        self.is_loose = True
        for keys in [*self.sends.values(), *self.ghosts]:
            for _, key in self.of(keys):
                key.free = True

    def on_strict(self, event, _):
        self.is_loose = False

    # the operator

    def on_resolve(self, event, _):
        for _, key in self.of([event["key"]]):
            key.resolving = key.attempts
            key.was_must, key.must = key.must, False
            key.may = True

    def on_resolved(self, event, _):
        for _, key in self.of([event["key"]]):
            if event["r"] == "ok" and key.resolving == key.attempts:
                key.may = False
            elif event["r"] == "fail" and key.resolving == key.attempts:
                key.must = key.was_must
            self.figures["resolved"] += event["r"] == "ok"

    def on_forget(self, event, _):
        for _, key in self.of(event["keys"]):
            key.allowed += 1
            key.sent_freely += 1
            key.is_forgotten = True
            key.is_loose |= key.count == 0  # one that was assumed may only now be sent

    on_replay = on_forget

    # at rest

    def on_list(self, event, line):
        listed = set(event["doubts"])
        self.figures["doubts"] += len(listed)
        for name, key in self.of(self.hashes):
            state = event["states"].get(name, "absent")
            if not key.free:
                self.check_state(name, key, state, name in listed, line)
        for name in listed - set(self.hashes):
            self.breach("in doubt and never produced", name, line)
        self.check_order(line)

    def check_state(self, name, key, state, is_listed, line):
        if is_listed != (state == "in_doubt"):
            self.breach("the list and the record differ", name, line)
        if key.count > 0 and state == "absent" and not key.is_forgotten:
            self.breach("applied, and neither known nor listed", name, line)
        if key.count == 0 and state == "applied" and not self.is_assumed(key):
            self.breach("lost: called applied", name, line)
        if is_listed and key.acked and not key.is_forgotten:
            self.breach("in doubt and acknowledged", name, line)
        elif key.must and not is_listed and self.policy != "assume-applied":
            self.breach("unknown and not listed", name, line)
        elif is_listed and not key.must and not key.may and not key.is_forgotten:
            self.breach("listed and not unknown", name, line)
            self.figures["unexplained"] += 1
        if not is_listed and not key.acked and key.count == 0 and not key.offered:
            self.figures["never_offered"] += 1

    def check_order(self, line):
        highest, seen = {}, set()
        for name in self.applications:
            key, (partition, _, offset) = self.keys[name], name.rpartition("/")
            if key.is_loose or key.free or name in seen or name not in self.hashes:
                continue
            seen.add(name)
            if int(offset) < highest.get(partition, -1):
                self.breach("out of order", name, line)
            highest[partition] = max(highest.get(partition, -1), int(offset))

    def on_end(self, event, line):
        """Everything was offered once more to a healthy target, and a person had resolved every doubt."""
        for name, key in self.of(self.hashes):
            if key.count == 0 and not key.assumed and not key.free:
                self.figures["lost"] += 1
                self.breach("lost", name, line)
            if not key.acked:
                self.breach("offered and never acknowledged", name, line)
            if event["states"].get(name) != "applied" and not key.free:
                self.breach("not applied in the end", name, line)
        for name in event["doubts"]:
            self.breach("in doubt in the end", name, line)

    def lines(self):
        yield "%s %s" % ("BROKEN" if self.breaches else "ok", " ".join("%s=%d" % pair for pair in self.figures.items()))
        kinds = {}
        for kind, key, line in self.breaches:
            kinds.setdefault(kind, []).append("%s (line %d)" % (key, line))
        for kind, found in kinds.items():
            yield "  %s: %s%s" % (kind, ", ".join(found[:5]), " and %d more" % (len(found) - 5) if len(found) > 5 else "")


def check(events):
    return Checks().run(events)


if __name__ == "__main__":
    done = check(history.read(sys.argv[1]))
    print("\n".join(done.lines()))
    sys.exit(1 if done.breaches else 0)
