#!/usr/bin/env python3
"""SINKONCE_SPLIT=record: each record of a batch in a request of its own, in order within its partition, partitions side by
side up to a bound.  One doubtful answer leaves one record in doubt, and what follows in its partition waits.
"""

import json
import threading
import unittest

import batches
import disk
import harness
from batches import BatchScenario, Reply, array, bulk, lines, record, records

PARTITIONS = 6


class Test(BatchScenario):
    settings = {"SPLIT": "record"}

    def mixed(self, count=4, topic="orders"):
        """COUNT records of each partition, interleaved."""
        return [record(offset, topic, partition) for offset in range(count) for partition in range(PARTITIONS)]

    def test_each_record_goes_alone_and_bare(self):
        self.serve()
        some = records(1, 2, 3)
        answer = self.deliver(array(some), headers={"X-Own": "1"})
        self.assertEqual((answer.status, answer.outcome, answer.body), (200, "applied", b""), answer)
        self.assertEqual([seen.body for seen in self.written()], some)
        self.assertEqual({(seen.line, seen.one("x-own"), seen.one("content-type")) for seen in self.written()},
                         {("POST /in", "1", "application/json")})
        self.assertEqual(self.deliver(array(some)).outcome, "duplicate")
        self.assertEqual(len(self.written()), 3)

    test_each_record_goes_alone_and_bare.is_run_with_kills = True

    def shape(self, name, build, path, settings):
        self.serve(**settings)
        some = records(1, 2, 3, topic=name)
        self.assertEqual(self.deliver(build(some), path).status, 200)
        sent = {"json_array": lambda one: one, "ndjson": lambda one: one + b"\n", "concat": lambda one: one,
                "separated": lambda one: one, "envelope": lambda one: batches.envelope([one]), "bulk": None}[name]
        if sent is None:  # a bulk is one request by nature
            self.assertEqual([seen.body for seen in self.written()], [bulk(some)])
        else:
            self.assertEqual([seen.body.rstrip(b"\n") for seen in self.written()], [sent(one).rstrip(b"\n") for one in some])

    def test_order_is_kept_in_each_partition_and_the_parallelism_is_bounded(self):
        self.serve(SPLIT_PARALLEL="3", TARGET_CONNECTIONS="64")
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.target.choose = lambda seen: Reply(held=gate)
        running = self.later(self.deliver, array(self.mixed()))
        self.wait_held(3)
        self.assertEqual({one.rsplit("/", 1)[1] for one in self.arrived()}, {"0"})
        gate.set()
        self.assertEqual(running.result().status, 200)
        self.assertLessEqual(self.target.most_active, 3)
        self.assert_in_order(PARTITIONS * 4)

    def assert_in_order(self, count):
        """Of what took effect."""
        journal = [line[:2] for line in self.target.lines()]
        self.assertEqual(len(journal), count)
        self.assertEqual(batches.checker.out_of_order(one for one, _ in journal), [])

    def test_one_partition_is_strictly_one_after_the_other(self):
        self.serve(SPLIT_PARALLEL="16")
        self.deliver(array(records(*range(40))))
        self.assertEqual(self.target.most_active, 1)
        self.assertEqual(self.arrived(), ["orders/0/%d" % n for n in range(40)])

    def fail_at(self, key, reply):
        self.target.choose = lambda seen: reply if key in seen.keys else Reply()

    def test_the_first_refusal_stops_the_rest_of_its_partition_only(self):
        self.serve()
        self.fail_at("orders/2/1", Reply(status=429, body=b"slow down", fields=["Retry-After: 7"]))
        answer = self.deliver(array(self.mixed()))
        self.assertEqual((answer.status, answer.body, answer.headers["retry-after"]), (429, b"slow down", "7"), answer)
        self.assertEqual([self.state(n, "orders", 2) for n in range(4)], ["applied", "absent", "absent", "absent"])
        for partition in (0, 1, 3, 4, 5):
            self.assertEqual([self.state(n, "orders", partition) for n in range(4)], ["applied"] * 4)
        self.assert_metric("rejected_records_total", 1)
        self.assert_metric("not_sent_records_total", 2)
        self.target.choose = lambda seen: Reply()
        count = len(self.written())
        self.assertEqual(self.deliver(array(self.mixed())).status, 200)
        self.assertEqual([seen.keys for seen in self.written(count)], [["orders/2/1"], ["orders/2/2"], ["orders/2/3"]])
        self.assert_in_order(PARTITIONS * 4)

    def test_A2_A3_one_doubtful_answer_leaves_one_record_in_doubt(self):
        self.serve(TARGET_TIMEOUT="2s")
        for number, reply in enumerate((Reply(cut="answer", end="rst"), Reply(status=500), Reply(cut="head"))):
            topic = "t%d" % number
            self.fail_at(topic + "/1/2", reply)
            answer = self.deliver(array(self.mixed(topic=topic)))
            self.assert_own(answer, 503, "in-doubt", "in-doubt")
            self.assertEqual(answer.json()["records"], [{"topic": topic, "partition": 1, "offset": 2}])
            self.assertEqual(self.doubts()[-1], topic + "/1/2")
            self.assertEqual(len(self.doubts()), number + 1)
            self.assertEqual(self.state(3, topic, 1), "absent")
        (doubt,) = self.proxy.in_doubt("t0")
        self.assertNotEqual(doubt["detail"], "")
        self.assert_logged({"event": "record.in_doubt", "topic": "t0", "partition": 1, "offset": 2, "total": 1,
                            "records": 4 * PARTITIONS, "detail": doubt["detail"]})
        self.target.choose = lambda seen: Reply()
        for doubt in self.doubts():
            self.proxy.resolve(doubt, self.target.count(doubt) > 0)
        for number in range(3):
            self.assertEqual(self.deliver(array(self.mixed(topic="t%d" % number))).status, 200)
        self.assert_in_order(3 * PARTITIONS * 4)

    def test_C3_a_kill_in_the_middle_leaves_in_doubt_what_was_on_its_way(self):
        self.serve(SPLIT_PARALLEL="2")
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.target.choose = lambda seen: Reply(held=gate) if seen.keys[0].endswith("/2") else Reply()
        self.later(self.deliver, array(self.mixed()))
        self.wait_held(2)
        on_its_way = {seen.keys[0] for seen in self.written() if seen.keys[0].endswith("/2")}
        self.proxy.kill()
        gate.set()
        self.target.choose = lambda seen: Reply()
        self.proxy.start()
        done = {line[0] for line in self.target.lines()} - on_its_way
        self.assertTrue(on_its_way <= set(self.doubts()), (on_its_way, self.doubts()))
        self.assertFalse(done & set(self.doubts()), "what was done is known")
        for doubt in self.doubts():
            self.proxy.resolve(doubt, self.target.count(doubt) > 0)
        self.assertEqual(self.deliver(array(self.mixed())).status, 200)
        self.assert_in_order(PARTITIONS * 4)

    def test_answer_rules(self):
        """All applied: an empty success; one alone was new: its own answer; a refusal before a doubt is told as the doubt."""
        self.serve()
        self.target.choose = lambda seen: Reply(status=201, body=b"made " + seen.keys[0].encode())
        self.assertEqual(self.deliver(array(records(1, 2))).body, b"")
        answer = self.deliver(array(records(1, 2, 3)))
        self.assertEqual((answer.status, answer.body), (201, b"made orders/0/3"), answer)
        statuses = {"a/0/1": 400, "b/0/1": 500}
        self.target.choose = lambda seen: Reply(status=statuses.get(seen.keys[0], 200))
        self.assert_own(self.deliver(array([record(1, "a"), record(1, "b"), record(1, "c")])), 503, "in-doubt", "in-doubt")
        self.assertEqual([self.state(1, topic) for topic in "abc"], ["absent", "in_doubt", "applied"])
        answer = self.deliver(array([record(1, "a"), record(1, "c")]))
        self.assertEqual((answer.status, answer.body), (400, b"no\n"), answer)

    def test_a_single_record_is_not_split(self):
        self.serve()
        self.assertEqual(self.deliver(record(1)).body, b"ok\n")
        self.assertEqual(self.deliver(array(records(2))).status, 200)
        self.assertEqual(self.written()[1].keys, ["orders/0/2"])

    def test_the_target_goes_away_in_the_middle(self):
        self.serve(CONNECT_RETRIES="0", TARGET_IDLE="0")
        def choose(seen):
            if "orders/0/2" in seen.keys:
                self.target.refuse()
            return Reply(fields=["Connection: close"])
        self.target.choose = choose
        answer = self.deliver(array(records(*range(6))))
        self.assertEqual(answer.status, 503, answer)
        self.assert_logged({"event": "target.error", "cause": "connect"})
        self.assertEqual(self.doubts(), [])
        self.assertEqual(self.states(*range(6)), ["applied"] * 3 + ["absent"] * 3)

    def test_each_part_carries_its_own_key_and_the_coding_of_the_batch(self):
        self.serve(KEY_HEADER="Idempotency-Key", STRIP="on", SCOPE="s")
        self.is_journal_checked = False
        body = batches.packed(array(records(1, 2)), "gzip")
        self.raw(batches.post_bytes(body, "Content-Encoding: gzip\r\nIdempotency-Key: forged\r\n"))
        self.assertEqual([(seen.one("idempotency-key"), seen.one("content-encoding")) for seen in self.written()],
                         [("s/orders/0/1", "gzip"), ("s/orders/0/2", "gzip")])
        self.assertEqual([json.loads(seen.opened) for seen in self.written()],
                         [{"amt": 9007199254740993, "id": 1}, {"amt": 9007199254740993, "id": 2}])

    def test_a_signed_batch_is_not_split(self):
        self.serve()
        body = array(records(1, 2))
        self.raw(batches.post_bytes(body, "webhook-signature: x\r\n"))
        self.assertEqual([seen.body for seen in self.written()], [body])

    def test_known_records_are_left_out(self):
        self.serve()
        self.deliver(array(records(1, 3)))
        self.deliver(lines(records(0, 1, 2, 3, 4)))
        self.assertEqual(self.arrived(), ["orders/0/%d" % n for n in (1, 3, 0, 2, 4)])

    def test_elements_without_coordinates_go_too(self):
        self.serve()
        body, plain = array([b'{"x":1}', record(1), b'{"x":2}']), [b'{"x":1}', b'{"x":2}']
        self.assertEqual(self.deliver(body).status, 200)
        self.assertEqual(sorted(seen.body for seen in self.written()), sorted([*plain, record(1)]))
        answer = self.deliver(body)  # the record is known, the others cannot be
        self.assertEqual((answer.status, answer.outcome), (200, "applied"), answer)
        self.assertEqual([seen.body for seen in self.written(3)], plain)

    def test_the_failure_of_an_element_without_coordinates_is_told(self):
        """Whoever hears of success would not send it again."""
        body = array([record(1), b'{"x":1}', b'{"x":2}'])
        replies = [(Reply(status=500, body=b"broken"), 500), (Reply(status=422, body=b"not this"), 422),
                   (Reply(cut="answer", end="rst"), 503), (Reply(status=302), 503)]
        self.serve()
        for reply, status in replies:
            self.target.choose = lambda seen: Reply() if seen.keys[0] else reply
            for _ in range(2):  # beside a new record, and beside a known one
                answer = self.deliver(body)
                self.assertEqual(answer.status, status, answer)
                self.assertEqual(answer.body, reply.body if status == reply.status else answer.body)
        self.assertEqual(self.states(1), ["applied"])

    @unittest.skipIf(harness.is_sanitized(), "a sanitizer keeps what was freed")
    def test_what_parts_took_is_not_kept(self):
        """A part on its way takes 7 KiB and its answer; one that is waiting or over next to nothing."""
        self.serve(SPLIT_PARALLEL="64", TARGET_CONNECTIONS="64")
        some = [record(offset, "orders", partition) for offset in range(20) for partition in range(200)]
        self.assertEqual(self.deliver(array(some), timeout=60).outcome, "applied")
        self.assertLess(harness.rss_kib(self.proxy.process.pid, "VmHWM"), 27 << 10)
        self.target.choose = lambda seen: Reply(body=bytes(1 << 20))
        self.assertEqual(self.deliver(array(records(*range(64), topic="large"))).outcome, "applied")
        self.assertLess(harness.rss_kib(self.proxy.process.pid, "VmHWM"), 40 << 10)


class Disk(disk.Scenario, BatchScenario):
    def test_P5_nothing_more_is_sent_once_a_result_cannot_be_written(self):
        self.serve(SPLIT="record")
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.target.choose = lambda seen: Reply(held=gate) if "orders/0/2" in seen.keys else Reply()
        running = self.later(self.deliver, array(records(*range(9))))
        self.wait_held()
        self.break_disk()
        gate.set()
        self.assert_own(running.result(), 503, "refused", "ledger-failed")
        self.assertEqual(self.arrived(), ["orders/0/0", "orders/0/1", "orders/0/2"])
        self.mend_disk()
        place = "/records?topic=orders&partition=0&offset=2"
        batches.wait_for(lambda: self.proxy.admin("GET", place)[0] == 200, "the ledger", harness.PATIENCE)
        self.assertEqual(self.states(2, 3), ["applied", "absent"])
        self.assertEqual(self.deliver(array(records(*range(9)))).status, 200)
        self.assertEqual(self.arrived(), ["orders/0/%d" % n for n in range(9)])


for shape_ in batches.SHAPES:
    def one_shape(self, shape=shape_):
        self.shape(*shape)
    setattr(Test, "test_parts_of_" + shape_[0], one_shape)


if __name__ == "__main__":
    batches.main()
