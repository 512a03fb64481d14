#!/usr/bin/env python3
"""Splunk's Event Collector with acknowledgement: received is not applied.  Until the target says true the batch is in
flight; nobody hears true before the ledger has it; ids made up here are true, and never meet the target's.
"""

import threading

import batches
from batches import BatchScenario, Reply, record, records, stored

OWN = 1 << 62


class Test(BatchScenario):
    def setUp(self):
        super().setUp()
        self.target.with_acks = True

    def acks(self, answer):
        self.assertEqual((answer.status, list(answer.json())), (200, ["acks"]), answer)
        return {int(name): value for name, value in answer.json()["acks"].items()}

    def test_an_acknowledged_batch_is_a_duplicate_with_an_id_of_ours_that_polls_true(self):
        self.serve()
        answer = self.collect(records(1, 2))
        self.assertEqual((answer.status, answer.json()), (200, {"text": "Success", "code": 0, "ackId": 0}), answer)
        self.assertEqual(self.acks(self.poll([0])), {0: False})
        self.target.acknowledge("c-1")
        self.assertEqual(self.acks(self.poll([0])), {0: True})
        self.assertEqual(self.states(1, 2), ["applied", "applied"])
        self.between()
        answer = self.collect(records(1, 2))
        own = answer.json()["ackId"]
        self.assertEqual((answer.outcome, answer.json()["text"], answer.json()["code"]), ("duplicate", "Success", 0))
        self.assertTrue(OWN <= own < 1 << 63, own)
        polls = len([seen for seen in self.target.seen if seen.is_ack_poll])
        self.assertEqual(self.acks(self.poll([own])), {own: True})
        self.assertEqual(len([seen for seen in self.target.seen if seen.is_ack_poll]), polls, "the target was asked for ours")
        another = self.collect(records(2)).json()["ackId"]
        self.assertNotEqual(another, own)
        self.assert_metric("applied_records_total", 0 if self.is_killed_between else 2)

    test_an_acknowledged_batch_is_a_duplicate_with_an_id_of_ours_that_polls_true.is_run_with_kills = True

    def test_a_batch_that_is_not_acknowledged_is_in_flight(self):
        self.serve(WAIT="50ms")
        self.collect(records(1, 2))
        for _ in range(2):
            answer = self.collect(records(2, 3))
            self.assertEqual((answer.status, answer.outcome), (503, "busy"), answer)
            self.assertEqual((answer.json()["text"], answer.json()["code"]), ("Server is busy", 9))
        self.assertEqual(self.states(1, 2, 3)[2], "absent")
        self.assertEqual(len([seen for seen in self.written() if seen.is_collector]), 1)
        self.target.acknowledge("c-1")
        self.poll([0])
        answer = self.collect(records(1, 2, 3))
        self.assertEqual((answer.outcome, answer.json()["ackId"]), ("partial", 1), answer)
        self.assertEqual(self.written()[-1].keys, ["orders/0/3"])
        self.poll([1])
        self.target.acknowledge("c-1")
        self.assertEqual(self.acks(self.poll([1])), {1: True})

    def test_a_resent_batch_waits_and_is_answered_when_the_acknowledgement_comes(self):
        self.serve(WAIT="10s")
        self.collect(records(1, 2))
        again = self.later(self.collect, records(1, 2))
        batches.wait_for(lambda: self.proxy.metric("sinkonce_http_requests_in_flight") == 1, "the resent batch inside")
        self.target.acknowledge("c-1")
        self.poll([0])
        answer = again.result()
        self.assertEqual((answer.status, answer.outcome), (200, "duplicate"), answer)
        self.assertEqual(self.acks(self.poll([answer.json()["ackId"]])), {answer.json()["ackId"]: True})

    def test_acknowledgements_that_come_compressed_are_understood(self):
        self.serve()
        self.collect(records(1, 2))
        body = batches.packed(b'{"acks":{"0":true}}', "gzip")
        fields = ["Content-Encoding: gzip", "Content-Type: application/json"]
        self.target.choose = lambda seen: Reply(body=body, fields=fields) if seen.is_ack_poll else Reply()
        answer = self.poll([0])
        self.assertEqual((answer.status, answer.body, answer.headers["content-encoding"]), (200, body, "gzip"))
        self.assertEqual(self.states(1, 2), ["applied", "applied"])

    def test_polls_that_come_compressed_are_understood_and_others_are_not_told_on(self):
        self.serve()
        own = self.collect(records(1, 2)).json()["ackId"]
        self.target.acknowledge("c-1")
        odd = {"X-Splunk-Request-Channel": "c-1", "Content-Encoding": "br"}
        self.target.choose = lambda seen: Reply(body=b'{"acks":{"0":true}}') if seen.is_ack_poll else Reply()
        answer = self.deliver(b"whatever the target understands", "/services/collector/ack", odd)
        self.assertEqual((answer.status, self.states(1, 2)), (503, ["in_flight", "in_flight"]), answer)
        packed = {"X-Splunk-Request-Channel": "c-1", "Content-Encoding": "gzip"}
        answer = self.deliver(batches.packed(b'{"acks":[%d]}' % own, "gzip"), "/services/collector/ack", packed)
        self.assertEqual((self.acks(answer), self.states(1, 2)), ({0: True}, ["applied", "applied"]))
        self.target.choose = lambda seen: Reply()
        ours = self.collect(records(1)).json()["ackId"]
        answer = self.deliver(batches.packed(b'{"acks":[0,%d]}' % ours, "gzip"), "/services/collector/ack", packed)
        self.assertEqual(self.acks(answer), {0: True, ours: True})
        self.assertEqual((self.target.seen[-1].body, self.target.seen[-1].one("content-encoding")), (b'{"acks":[0]}', None))

    def test_what_is_never_acknowledged_ends_in_doubt(self):
        self.serve(ACK_TIMEOUT="1s")
        self.collect(records(1, 2))
        batches.wait_for(lambda: self.doubts() == ["orders/0/1", "orders/0/2"], "the expiry", 20)
        answer = self.collect(records(1, 2))
        self.assertEqual((answer.status, answer.outcome, answer.json()["code"]), (503, "in-doubt", 9), answer)
        self.assertEqual(len(self.written()), 1)
        self.assert_metric("entered_in_doubt_records_total", 2)

    def test_with_policy_retry_an_expired_batch_goes_again(self):
        self.allowed_twice = ("orders/0/100", "orders/0/101")
        self.serve(ACK_TIMEOUT="1s", IN_DOUBT="retry")
        data = stored("splunk-event-gzip-chunked")
        self.assertEqual(self.raw(data).status, 200)
        batches.wait_for(lambda: len(self.doubts()) == 2, "the expiry", 20)
        self.assertEqual(self.raw(data).status, 200)
        self.assertEqual([seen.keys for seen in self.written()], [list(self.allowed_twice)] * 2)
        self.assertEqual(self.written()[0].body, self.written()[1].body)
        self.assert_metric("retried_records_total", 2)

    def test_C3_a_kill_between_the_answer_and_the_acknowledgement_leaves_a_doubt(self):
        self.serve()
        self.collect(records(1, 2))
        self.proxy.kill()
        self.proxy.start()
        self.assertEqual(self.doubts(), ["orders/0/1", "orders/0/2"])
        self.target.acknowledge("c-1")
        self.assertEqual(self.acks(self.poll([0])), {0: True})  # it is the target's own id and answer
        self.assertEqual(self.collect(records(1)).status, 503)

    def test_an_orderly_end_leaves_a_doubt_too(self):
        self.serve()
        self.collect(records(1, 2))
        self.assertEqual(self.proxy.stop(), 0)
        self.proxy.start()
        self.assertEqual(self.doubts(), ["orders/0/1", "orders/0/2"])

    def test_an_orderly_end_waits_for_what_expired_just_before_it(self):
        self.serve(ACK_TIMEOUT="1s", COMMIT_DELAY="1s")
        self.collect(records(1, 2))
        def is_expired():
            with open(self.proxy.log) as log:
                return "never acknowledged" in log.read()
        batches.wait_for(is_expired, "the expiry", 20)
        self.assertEqual(self.proxy.stop(), 0)  # a second before the doubt is on the disk
        self.proxy.start()
        self.assertEqual(self.doubts(), ["orders/0/1", "orders/0/2"])

    def test_D1_a_connector_that_is_killed_leaves_its_batch_to_the_expiry(self):
        self.serve(ACK_TIMEOUT="1s", WAIT="50ms")
        held = threading.Event()
        self.addCleanup(held.set)
        self.target.next(Reply(held=held))
        wire = batches.Wire(self.proxy.port)
        wire.send(batches.post_bytes(batches.events(records(1, 2)), "X-Splunk-Request-Channel: dead\r\n",
                                     "/services/collector/event"))
        self.wait_held()
        wire.reset()
        held.set()
        batches.wait_for(lambda: self.doubts() == ["orders/0/1", "orders/0/2"], "the expiry", 20)
        self.assertEqual(self.collect(records(1, 2), "new").status, 503)

    def test_polls_mix_ids_of_ours_and_of_the_target(self):
        self.serve()
        self.collect(records(1))
        self.target.acknowledge("c-1")
        self.poll([0])
        own = self.collect(records(1)).json()["ackId"]
        theirs = self.collect(records(2)).json()["ackId"]
        answer = self.poll([own, theirs, 77])
        self.assertEqual(self.acks(answer), {own: True, theirs: False, 77: False})
        self.assertEqual(batches.json.loads(self.target.seen[-1].body), {"acks": [theirs, 77]})
        self.target.acknowledge("c-1")
        self.assertEqual(self.acks(self.poll([77, own, theirs])), {own: True, theirs: True, 77: False})
        self.assertEqual(self.state(2), "applied")

    def test_channels_are_apart(self):
        self.serve(WAIT="50ms")
        self.collect(records(1), "a")
        self.collect(records(2), "b")
        self.target.acknowledge("b")
        self.assertEqual(self.acks(self.poll([0], "a")), {0: False})
        self.assertEqual(self.acks(self.poll([0], "b")), {0: True})
        self.assertEqual(self.state(2), "applied")
        self.assertEqual(self.collect(records(1), "b").status, 503)
        self.target.acknowledge("a")
        self.poll([0], "a")
        self.assertEqual(self.state(1), "applied")

    def test_the_channel_may_stand_in_the_url(self):
        self.serve()
        path = "/services/collector/event?channel=c-9"
        self.target.next(Reply(body=b'{"text":"Success","code":0,"ackId":5}'))
        self.assertEqual(self.deliver(batches.events(records(1, 2)), path).json()["ackId"], 5)
        self.target.acks["c-9"] = {5: True}
        answer = self.deliver(b'{"acks":[5]}', "/services/collector/ack?channel=c-9", {"X-Splunk-Request-Channel": "c-9"})
        self.assertEqual(self.acks(answer), {5: True})
        self.assertEqual(self.states(1, 2), ["applied", "applied"])

    def test_without_a_channel_nothing_is_made_up(self):
        self.serve()
        body = batches.events(records(1, 2))
        self.deliver(body, "/services/collector/event")
        answer = self.deliver(body, "/services/collector/event")
        self.assertEqual((answer.outcome, answer.json()), ("duplicate", {"text": "Success", "code": 0}), answer)

    def test_a_target_that_fails_on_a_poll_is_passed_on_and_asked_again(self):
        self.serve(CONNECT_RETRIES="0")
        self.collect(records(1))
        self.target.choose = lambda seen: Reply(status=503, body=b"{}") if seen.is_ack_poll else Reply()
        self.assertEqual(self.poll([0]).status, 503)
        self.target.choose = lambda seen: Reply(cut="answer", end="rst") if seen.is_ack_poll else Reply()
        self.assertEqual(self.poll([0]).status, 503)
        self.target.choose = lambda seen: Reply()
        self.target.acknowledge("c-1")
        self.assertEqual(self.acks(self.poll([0])), {0: True})
        self.assertEqual(self.state(1), "applied")

    def test_an_error_of_the_collector_is_no_success(self):
        self.serve()
        self.target.next(Reply(body=b'{"text":"Invalid token","code":4}', applied=False))
        answer = self.collect(records(1, 2))
        self.assertEqual((answer.status, answer.outcome), (503, "in-doubt"), answer)
        self.target.next(Reply(status=400, body=b'{"text":"No data","code":5}'))
        answer = self.collect(records(3, 4))
        self.assertEqual((answer.status, answer.json()["code"], self.states(3, 4)), (400, 5, ["absent", "absent"]))

    def test_a_server_that_counts_anew_leaves_the_first_batch_in_doubt(self):
        self.serve()
        self.target.next(Reply(ack_id=0), Reply(ack_id=0))
        self.collect(records(1))
        self.collect(records(2))
        batches.wait_for(lambda: self.doubts() == ["orders/0/1"], "the doubt", 20)
        self.target.acknowledge("c-1")
        self.assertEqual(self.acks(self.poll([0])), {0: True})
        self.assertEqual(self.states(1, 2), ["in_doubt", "applied"])

    def test_an_observer_forwards_and_counts_without_a_doubt(self):
        self.is_journal_checked = False
        self.serve(MODE="observe")
        self.collect(records(1, 2))
        self.target.acknowledge("c-1")
        self.assertEqual(self.acks(self.poll([0])), {0: True})
        self.collect(records(2, 3))
        self.target.acknowledge("c-1")
        self.assertEqual(self.acks(self.poll([1])), {1: True})
        self.assertEqual([seen.keys for seen in self.written() if seen.is_collector],
                         [["orders/0/1", "orders/0/2"], ["orders/0/2", "orders/0/3"]])
        self.assert_metric("would_drop_records_total", 1)
        self.assert_metric("records_total", 4)
        self.assert_metric("entered_in_doubt_records_total", 0)

    def test_many_batches_wait_side_by_side(self):
        self.serve()
        for number in range(200):
            self.collect([record(2 * number), record(2 * number + 1)])
        self.target.acknowledge("c-1")
        self.assertEqual(self.acks(self.poll(list(range(200)))), dict.fromkeys(range(200), True))
        self.assertEqual(self.states(0, 399), ["applied", "applied"])
        self.assert_metric("applied_records_total", 400)


if __name__ == "__main__":
    batches.main()
