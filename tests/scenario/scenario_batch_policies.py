#!/usr/bin/env python3
"""Doubts, first sights, limits and decisions when batches come: one record holds the whole request, and once it is decided the
rest goes on as it should.
"""

import batches
from batches import BatchScenario, Reply, array, bulk, record, records


class Test(BatchScenario):
    def doubt(self, *offsets, applied=False, topic="orders"):
        self.target.next(Reply(cut="answer", end="rst", applied=applied))
        self.assert_own(self.deliver(array(records(*offsets, topic=topic))), 503, "in-doubt", "in-doubt")

    def test_retry_sends_the_doubtful_with_the_new_in_the_order_of_the_request(self):
        self.allowed_twice = ["orders/0/3"]
        self.serve(IN_DOUBT="retry")
        self.deliver(array(records(2)))
        self.doubt(3, applied=True)
        self.between()
        answer = self.deliver(array(records(1, 2, 3, 4)))
        self.assertEqual((answer.status, answer.outcome), (200, "partial"), answer)
        self.assertEqual(self.written()[-1].keys, ["orders/0/1", "orders/0/3", "orders/0/4"])
        self.assertEqual(self.doubts(), [])
        self.assert_metric("retried_records_total", 1)

    test_retry_sends_the_doubtful_with_the_new_in_the_order_of_the_request.is_run_with_kills = True

    def test_retry_that_never_leaves_gives_the_doubt_back(self):
        self.serve(IN_DOUBT="retry", CONNECT_RETRIES="0", TARGET_IDLE="0")
        self.doubt(3, applied=True)
        self.target.refuse()
        self.assert_own(self.deliver(array(records(3, 4))), 503, "refused", "target-unreachable")
        self.assertEqual((self.states(3, 4), self.doubts()), (["in_doubt", "absent"], ["orders/0/3"]))

    def test_a_retry_that_is_refused_leaves_the_doubt_about_the_first_sending(self):
        self.serve(IN_DOUBT="retry")
        self.doubt(3, applied=True)
        for status in (503, 409, 429):
            self.target.next(Reply(status=status))
            self.assertEqual(self.deliver(array(records(3, 4))).status, status)
            self.between()
            self.assertEqual((self.states(3, 4), self.doubts()), (["in_doubt", "absent"], ["orders/0/3"]))
        self.restart(IN_DOUBT="hold")
        self.assert_own(self.deliver(array(records(3, 4))), 503, "in-doubt", "in-doubt")

    test_a_retry_that_is_refused_leaves_the_doubt_about_the_first_sending.is_run_with_kills = True

    def test_assume_applied_drops_the_doubtful_and_sends_the_rest(self):
        self.serve(IN_DOUBT="assume-applied")
        self.doubt(2, 3, applied=True)
        answer = self.deliver(array(records(1, 2, 3, 4)))
        self.assertEqual((answer.status, answer.outcome), (200, "partial"), answer)
        self.assertEqual(self.written()[-1].keys, ["orders/0/1", "orders/0/4"])

    def test_a_person_decides_half_of_a_doubtful_batch(self):
        self.serve()
        self.doubt(1, 2, 3, 4, applied={"orders/0/1", "orders/0/3"})
        for doubt in self.doubts():
            self.assert_own(self.deliver(array(records(1, 2, 3, 4, 5))), 503, "in-doubt", "in-doubt")
            self.assertEqual(self.proxy.resolve(doubt, self.target.count(doubt) > 0)[0], 200)
            self.between()
        answer = self.deliver(array(records(1, 2, 3, 4, 5)))
        self.assertEqual((answer.status, answer.outcome), (200, "partial"), answer)
        self.assertEqual(self.written()[-1].keys, ["orders/0/2", "orders/0/4", "orders/0/5"])

    test_a_person_decides_half_of_a_doubtful_batch.is_run_with_kills = True

    def test_a_first_sight_that_is_held_holds_the_whole_batch(self):
        self.serve(FIRST_SIGHT="hold")
        mixed = [record(0, "fresh"), record(40), record(1, "fresh")]
        self.assert_own(self.deliver(array(mixed)), 503, "conflict", "conflict")
        self.assertEqual((self.written(), self.state(0, "fresh")), ([], "absent"))
        (row,) = self.proxy.conflicts()
        self.assertEqual(self.proxy.decide(row["id"], "new-topic")[0], 200)
        self.between()
        answer = self.deliver(array(mixed))
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(self.written()[0].body, array(mixed))

    test_a_first_sight_that_is_held_holds_the_whole_batch.is_run_with_kills = True

    def test_Z_01_a_topic_created_again_stops_the_batch_until_it_is_decided(self):
        self.is_journal_checked = False
        self.serve()
        self.deliver(array(records(0, 1, 2)))
        fresh = array(records(0, 1, 2, 3, new=True))
        self.assert_own(self.deliver(fresh), 503, "conflict", "conflict")
        self.assertEqual(len(self.written()), 1)
        for row in self.proxy.conflicts():
            self.proxy.decide(row["id"], "new-topic")
        self.assertEqual(self.deliver(fresh).status, 200)
        self.assertEqual(self.written()[1].body, fresh)

    def test_more_doubts_than_allowed_stop_batches_with_new_records_only(self):
        self.serve(IN_DOUBT_MAX="2")
        self.deliver(array(records(50, 51)))
        self.doubt(1, 2, 3, topic="other")
        self.assert_own(self.deliver(array(records(50, 52))), 503, "busy", "too-many-in-doubt")
        self.assertEqual(self.state(52), "absent")
        self.assertEqual(self.deliver(array(records(50, 51))).outcome, "duplicate")

    def test_S1_a_full_ledger_sends_nothing_of_a_batch(self):
        self.serve(LEDGER_MAX="1MiB")
        topic = 0
        while True:
            answer = self.deliver(array([record(3 * n, "t%d" % topic, partition) for n in range(10) for partition in range(20)]))
            if answer.status != 200:
                break
            topic += 1
            self.assertLess(topic, 1000)
        self.assert_own(answer, 503, "refused", "ledger-full")
        self.assertEqual(len(self.written()), topic)
        self.assertEqual(self.deliver(array([record(0, "t0", 0), record(3, "t0", 0)])).outcome, "duplicate")

    def test_mode_off_passes_everything(self):
        self.is_journal_checked = False
        self.serve(MODE="off")
        for _ in range(2):
            self.assertEqual(self.deliver(bulk(records(1, 2)), "/_bulk").status, 200)
        self.assertEqual([seen.body for seen in self.written()], [bulk(records(1, 2))] * 2)

    def test_C_10_a_target_that_comes_back_during_the_connect_gets_the_batch_once(self):
        self.serve(CONNECT_RETRIES="0", TARGET_IDLE="0")
        self.target.refuse()
        for _ in range(3):
            self.assert_own(self.deliver(array(records(1, 2))), 503, "refused", "target-unreachable")
        self.target.start()
        self.assertEqual(self.deliver(array(records(1, 2))).status, 200)
        self.assertEqual(self.arrived(), ["orders/0/1", "orders/0/2"])

    def test_an_answer_without_items_for_a_lonely_delete_is_told_as_lost(self):
        """What has no coordinates is in no ledger; its answer cannot be told in the words of the whole request."""
        self.is_journal_checked = False
        self.serve()
        data = batches.stored("es-bulk-delete")
        self.raw(data)
        self.target.next(Reply(body=b"nothing that fits"))
        reply = self.raw(data)
        self.assertEqual((reply.status, batches.json.loads(reply.body)["error"]), (503, "target-lost"), reply)
        self.assertEqual(self.raw(data).status, 200)

    def test_pipelined_batches_are_answered_in_their_order(self):
        self.serve(WAIT="10s")
        with batches.Wire(self.proxy.port) as wire:
            bodies = [array(records(*range(n, n + 3))) for n in range(20)]
            wire.send(b"".join(batches.post_bytes(body) for body in bodies))
            self.assertEqual([wire.final().status for _ in bodies], [200] * 20)
        self.assertEqual(sorted(self.arrived()), sorted("orders/0/%d" % n for n in range(22)))


if __name__ == "__main__":
    batches.main()
