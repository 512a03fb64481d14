#!/usr/bin/env python3
"""A batch is never the same batch again: what is known of it is cut out, the rest goes on as a whole request of its shape,
whatever the boundaries, the shape or the order in which batches come back.
"""

import threading

import batches
from batches import BatchScenario, Reply, array, bulk, envelope, lines, record, records, stored, wait_for
from harness import PATIENCE

ORDERS_100_TO_103 = ["orders/0/100", "orders/0/101", "orders/0/102", "orders/0/103"]


class Test(BatchScenario):
    def test_Z_05_a_moved_boundary_sends_only_what_is_new_as_a_valid_array(self):
        self.serve(IDENTITY="off")  # the two captured requests number their records differently
        self.raw(stored("aiven-batch-json-array"))
        self.between()
        reply = self.raw(stored("aiven-batch-json-array-overlap"))
        self.assertEqual((reply.status, reply.body, reply.one("sinkonce-outcome")), (200, b"ok\n", "partial"), reply)
        sent = b"[{" + batches.parts(stored("aiven-batch-json-array-overlap"))[2].split(b"},{", 1)[1]
        self.assertEqual(self.written()[1].body, sent)
        self.assertEqual(self.arrived(), ORDERS_100_TO_103)
        reply = self.raw(stored("aiven-batch-json-array-one"))
        self.assertEqual((reply.status, reply.body), (200, b""), reply)
        self.assertEqual(len(self.written()), 2)

    test_Z_05_a_moved_boundary_sends_only_what_is_new_as_a_valid_array.is_run_with_kills = True

    def test_Z_08_the_same_coordinates_in_another_shape_are_the_same_record(self):
        self.serve(IDENTITY="off")
        self.raw(stored("aiven-batch-json-array"))
        for name in ("aiven-batch-newline", "splunk-event", "es-bulk-key-ignore"):
            self.assertEqual(self.raw(stored(name)).one("sinkonce-outcome"), "duplicate", name)
        self.assertEqual(len(self.written()), 1)

    def test_the_same_bytes_in_another_shape_need_no_setting(self):
        """The mark of a record is its own bytes, not those around it."""
        self.serve()
        some = records(1, 2, 3)
        self.assertEqual(self.deliver(array(some)).status, 200)
        for body in (lines(some), batches.concat(some), array(reversed(some)), b" [ " + b" , ".join(some) + b" ]\n", some[1]):
            self.assertEqual(self.deliver(body).outcome, "duplicate", body)
        self.assertEqual(len(self.written()), 1)

    def test_another_body_under_the_same_coordinates_is_a_conflict_of_the_whole_batch(self):
        self.serve()
        self.deliver(array(records(1, 2)))
        answer = self.deliver(array([record(2, other=1), record(3)]))
        self.assert_own(answer, 503, "conflict", "conflict")
        self.assertEqual(answer.json()["records"], [{"topic": "orders", "partition": 0, "offset": 2}])
        self.assertEqual((len(self.written()), self.state(3)), (1, "absent"))

    def test_only_the_records_that_are_the_reason_are_named(self):
        """In the answer as in the log: who looks for a conflict must not be led to a record that only waits."""
        self.serve(ACCESS_LOG="all")
        self.deliver(array(records(1)))
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.target.choose = lambda seen: batches.Reply(held=gate, cut="head")
        running = self.later(self.deliver, record(2))
        self.wait_held(1)
        answer = self.deliver(array([record(2), record(1, other=1), record(3)]))
        self.assert_own(answer, 503, "conflict", "conflict")
        named = {"topic": "orders", "partition": 0, "offset": 1}
        self.assertEqual((answer.json()["records"], answer.json()["total"]), ([named], 1))
        self.assert_logged({"event": "record.conflict", **named, "total": 1, "records": 3,
                            "remedy": "say what it is: sinkonce conflicts list, or GET /conflicts"})
        gate.set()
        self.assert_own(running.result(), 503, "in-doubt", "in-doubt")
        self.target.choose = lambda seen: Reply(status=400) if seen.keys == [None] else Reply()
        self.deliver(record(1, "others"))
        self.assertEqual(self.deliver(array([record(1, "others"), b'{"x":1}'])).status, 400)
        outcomes = ["applied", "conflict", "in-doubt", "applied", "forwarded"]
        wait_for(lambda: [line["outcome"] for line in self.logged("http.access")] == outcomes, "a line for each", PATIENCE)

    def test_one_record_several_times_in_a_request_is_sent_once(self):
        self.serve()
        self.raw(stored("edge-array-repeated-record"))
        self.assertEqual(self.arrived(), ["orders/0/100", "orders/0/101"])
        for number, (name, build, path, _) in enumerate(shape for shape in batches.SHAPES if not shape[3]):
            first = 10 * number
            one, other = records(first, first + 1, topic="twice")
            self.assertEqual(self.deliver(build([one, one, other, one, other]), path).outcome, "partial", name)
            self.assertEqual(self.arrived()[-2:], ["twice/0/%d" % first, "twice/0/%d" % (first + 1)], name)

    def test_Z_06_several_topics_and_partitions_are_one_claim(self):
        self.serve()
        mixed = [record(n, topic, partition) for n in (5, 6) for topic in ("a", "b") for partition in (0, 1)]
        self.target.next(Reply(cut="answer", end="rst", applied=False))
        answer = self.deliver(array(mixed))
        self.assert_own(answer, 503, "in-doubt", "in-doubt")
        self.assertEqual(answer.json()["total"], 8)
        self.assertEqual(len(self.doubts()), 8)
        answer = self.deliver(array([record(7, "a", 0), record(5, "b", 1)]))  # one of them holds the request
        self.assert_own(answer, 503, "in-doubt", "in-doubt")
        self.assertEqual(answer.json()["records"], [{"topic": "b", "partition": 1, "offset": 5}])
        self.assertEqual(self.state(7, "a", 0), "absent")
        self.assertEqual(self.deliver(array([record(7, "c", 0), record(8, "a", 0)])).status, 200)

    def test_Z_07_gaps_and_jumps_are_nothing_special(self):
        self.serve()
        self.deliver(array(records(3, 10, 11, 500, 1000000)))
        self.deliver(array(records(2, 3, 4, 10, 12, 499, 500, 501, 999999)))
        self.assertEqual([one.rsplit("/")[-1] for one in self.arrived()],
                         ["3", "10", "11", "500", "1000000", "2", "4", "12", "499", "501", "999999"])

    def patterns(self, topic, build, path, settings):
        """All 32 subsets of five records known beforehand; the cut request has the bytes of one built from the rest."""
        self.serve(**settings)
        for pattern in range(1, 32):
            elements = records(*range(10 * pattern, 10 * pattern + 5), topic=topic)
            known = [element for number, element in enumerate(elements) if pattern >> number & 1]
            rest = [element for number, element in enumerate(elements) if not pattern >> number & 1]
            self.deliver(build(known), path)
            count = len(self.written())
            answer = self.deliver(build(elements), path)
            self.assertEqual((answer.status, answer.outcome), (200, "partial" if rest else "duplicate"), (topic, pattern))
            self.assertEqual([seen.body for seen in self.written(count)], [build(rest)] if rest else [], (topic, pattern))

    def test_C_33_what_is_kept_stays_byte_for_byte(self):
        """White space, numbers of 30 digits, order, repeated members, escapes."""
        self.serve()
        odd = [b'{ "n" : 123456789012345678901234567890 , "__topic":"odd","__partition":0,"__offset":%d,"a":1,"a":2,' % n +
               b'\t"u":"\\u00e9\xc3\xa9]},{" }' for n in range(4)]
        self.deliver(odd[1])
        self.deliver(b"\n[ " + b" ,\r\n ".join(odd) + b"  ]\t\n")
        body = self.written()[1].body
        self.assertEqual([body.count(one) for one in odd], [1, 0, 1, 1])
        self.assertTrue(body.startswith(b"\n[ ") and body.endswith(b"  ]\t\n"), body)
        self.assertEqual([value["__offset"] for value in batches.json.loads(body)], [0, 2, 3])

    def test_D2_a_batch_waits_for_the_flight_that_holds_one_of_its_records(self):
        self.serve(WAIT="10s")
        held = threading.Event()
        self.addCleanup(held.set)
        self.target.next(Reply(held=held))
        first = self.later(self.deliver, array(records(1, 2, 3)))
        self.wait_held()
        second = self.later(self.deliver, array(records(3, 4)))
        batches.wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 2, "both inside")
        self.assertEqual(self.deliver(array(records(9, partition=1))).status, 200)  # others go on
        held.set()
        self.assertEqual((first.result().outcome, second.result().outcome), (None, "partial"))
        self.assertEqual(sorted(self.arrived()), ["orders/0/%d" % n for n in (1, 2, 3, 4)] + ["orders/1/9"])

    def test_D2_at_the_deadline_the_whole_request_gets_503_and_holds_nothing(self):
        self.serve(WAIT="50ms")
        held = threading.Event()
        self.addCleanup(held.set)
        self.target.next(Reply(held=held))
        first = self.later(self.deliver, array(records(1, 2, 3)))
        self.wait_held()
        answer = self.deliver(array(records(3, 4)))
        self.assert_own(answer, 503, "busy", "in-flight")
        self.assertEqual(answer.json()["records"], [{"topic": "orders", "partition": 0, "offset": 3}])
        self.assertEqual(self.state(4), "absent")
        self.assertEqual(self.deliver(array(records(4))).status, 200)
        held.set()
        self.assertEqual(first.result().status, 200)

    def test_Z_05_crossing_batches_cannot_deadlock(self):
        """Each wants what another holds, in every direction at once."""
        self.serve(WAIT="10s")
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.target.choose = lambda seen: Reply(held=gate)
        first = [self.later(self.deliver, array(records(*range(n, n + 3)))) for n in (0, 3, 6)]
        self.wait_held(3)
        rings = [self.later(self.deliver, array(records(n % 12, (n + 4) % 12, (n + 8) % 12))) for n in range(12)]
        gate.set()
        for one in first + rings:
            self.assertEqual(one.result().status, 200)
        self.assertEqual(sorted(self.arrived()), sorted("orders/0/%d" % n for n in range(12)))

    def test_C3_F_04_a_kill_leaves_the_whole_batch_in_doubt_and_nothing_else(self):
        self.serve()
        held = threading.Event()
        self.addCleanup(held.set)
        self.deliver(array(records(1, 2)))
        self.target.next(Reply(held=held))
        self.later(self.deliver, array(records(2, 3, 4)))
        self.wait_held()
        self.proxy.kill()
        held.set()
        self.proxy.start()
        self.assertEqual(self.doubts(), ["orders/0/3", "orders/0/4"])
        self.assert_own(self.deliver(array(records(4, 5))), 503, "in-doubt", "in-doubt")
        for one in self.doubts():
            self.proxy.resolve(one, True)
        self.assertEqual(self.deliver(array(records(1, 2, 3, 4, 5))).outcome, "partial")
        self.assertEqual(self.arrived()[-1:], ["orders/0/5"])

    def test_Z_06_a_permanent_refusal_of_one_bulk_action_harms_no_other(self):
        self.serve()
        mixed = [record(1, "a"), record(1, "b"), record(2, "a", 1)]
        self.target.next(Reply(items={"b/0/1": 400}))
        answer = self.deliver(bulk(mixed), "/_bulk")
        self.assertEqual([status for _, _, status in batches.items_of(answer)], [201, 400, 201])
        self.assertEqual([self.state(1, "a"), self.state(1, "b"), self.state(2, "a", 1)], ["applied", "absent", "applied"])
        self.assert_metric("rejected_records_total", 1)
        self.assert_metric("applied_records_total", 2)

    def test_elements_without_coordinates_always_go_on(self):
        self.serve()
        for build in (array, lines, batches.concat):
            topic = build.__name__
            known = records(1, 2, topic=topic)
            body = build([b'{"x":1}', known[0], b'{"x":2}', known[1]])
            self.deliver(body)
            self.assertEqual(self.written()[-1].body, body)
            answer = self.deliver(body)
            self.assertEqual((answer.status, answer.outcome), (200, "partial"), answer)
            self.assertEqual(self.written()[-1].body, build([b'{"x":1}', b'{"x":2}']))
        self.assert_metric("unkeyed_records_total", 12)
        for status, told in ((302, 503), (404, 404)):  # nothing else went: its answer is that of the batch
            self.target.next(Reply(status=status))
            self.assertEqual(self.deliver(array([record(1, "array"), b'{"x":1}'])).status, told)

    def test_an_envelope_keeps_what_is_around_its_array(self):
        self.serve(**batches.ENVELOPE)
        self.deliver(envelope(records(2)))
        self.deliver(b' {"a":[1],"rows":[' + b", ".join(records(1, 2, 3)) + b'] , "z":{"rows":[]}}\n')
        body = self.written()[-1].body
        self.assertTrue(body.startswith(b' {"a":[1],"rows":[') and body.endswith(b'] , "z":{"rows":[]}}\n'), body)
        self.assertEqual([value["__offset"] for value in batches.json.loads(body)["rows"]], [1, 3])


for shape_ in batches.SHAPES:
    def every_pattern(self, shape=shape_):
        self.patterns(*shape)
    setattr(Test, "test_Z_05_half_known_batches_of_every_pattern_as_" + shape_[0], every_pattern)


if __name__ == "__main__":
    batches.main()
