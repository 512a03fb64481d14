#!/usr/bin/env python3
"""What the target says of a batch decides per record, and what the connector is told has an answer for each record that it
sent: bulk items, Dapr's entries, the Event Collector's success.
"""

import json

import batches
from batches import BatchScenario, Reply, action, array, bulk, items_of, record, records, stored

IDS = ["orders+0+%d" % n for n in range(100, 110)]


class Bulk(BatchScenario):
    def post(self, elements, kind="index", query=""):
        return self.deliver(bulk(elements, kind), "/_bulk" + query)

    def test_A8_only_the_action_that_failed_is_sent_again(self):
        self.serve()
        self.target.next(Reply(items={"orders/0/101": 429}))
        reply = self.raw(stored("es-bulk-key-ignore"))
        answer = batches.Answer(reply.status, dict((k.lower(), v) for k, v in reply.fields), reply.body)
        self.assertEqual(items_of(answer), [("index", IDS[0], 201), ("index", IDS[1], 429)])
        self.assertEqual((answer.outcome, self.states(100, 101)), (None, ["applied", "absent"]))
        self.between()
        reply = self.raw(stored("es-bulk-key-ignore"))
        answer = batches.Answer(reply.status, dict((k.lower(), v) for k, v in reply.fields), reply.body)
        self.assertEqual(items_of(answer), [("index", IDS[0], 200), ("index", IDS[1], 201)])
        self.assertEqual((answer.outcome, answer.json()["errors"]), ("partial", False))
        self.assertEqual(self.written()[1].body, b"".join(batches.parts(stored("es-bulk-key-ignore"))[2].splitlines(True)[2:]))

    test_A8_only_the_action_that_failed_is_sent_again.is_run_with_kills = True

    def test_a_delete_without_coordinates_goes_alone_and_its_item_stands_in_the_middle(self):
        self.is_journal_checked = False
        self.serve()
        for _ in range(2):
            reply = self.raw(stored("es-bulk-delete"))
        answer = batches.Answer(reply.status, dict((k.lower(), v) for k, v in reply.fields), reply.body)
        self.assertEqual(items_of(answer), [("index", "k0", 200), ("delete", "k1", 200), ("index", "k2", 200)])
        self.assertEqual([element.action[0] for element in self.written()[1].elements], ["delete"])
        self.assertEqual([item["index"]["_version"] for item in answer.json()["items"][::2]], [100, 102])

    def test_A8_statuses_of_items_decide_one_by_one(self):
        self.serve()
        statuses = {"orders/0/100": 201, "orders/0/101": 400, "orders/0/102": 409, "orders/0/103": 429, "orders/0/104": 503}
        self.target.next(Reply(items=statuses))
        answer = self.post(records(*range(100, 105)))
        self.assertEqual([status for _, _, status in items_of(answer)], [201, 400, 409, 429, 503])
        self.assertEqual(self.states(*range(100, 105)), ["applied"] + ["absent"] * 4)
        self.assertTrue(answer.json()["errors"])
        answer = self.post(records(*range(99, 106)))
        self.assertEqual([one for one, *_ in map(lambda k: k.rsplit("/", 1)[1:], self.written()[1].keys)],
                         ["99", "101", "102", "103", "104", "105"])
        self.assertEqual([status for _, _, status in items_of(answer)], [201, 200, 201, 201, 201, 201, 201])

    def said(self, *items, errors="false"):
        return ('{"took":3, "errors" :%s,"items":[%s]}\n' % (errors, ",".join(items))).encode()

    def test_A8_an_answer_that_denies_an_error_of_its_own_items_is_told_with_it(self):
        good = '{"index":{"_index":"orders","_id":"a","status":201}}'
        bad = '{"index":{"_index":"orders","_id":"b","status":429,"error":{"type":"rejected","reason":"\\u00e9"}}}'
        self.serve()
        self.target.next(Reply(body=self.said(good, bad), applied={"orders/0/100"}))
        answer = self.post(records(100, 101))
        self.assertEqual((answer.body, answer.outcome), (self.said(good, bad, errors="true"), "refused"))
        self.assertEqual(self.states(100, 101), ["applied", "absent"])
        for errors in ("true", "false"):  # what holds together passes as it came
            self.target.next(Reply(body=self.said(bad if errors == "true" else good, errors=errors), applied=errors == "false"))
            answer = self.post(records(102))
            self.assertEqual((answer.body, answer.outcome), (self.said(bad if errors == "true" else good, errors=errors), None))

    def test_A8_an_item_that_was_refused_without_an_error_is_not_told_as_delivered(self):
        self.serve()
        items = ['{"index":{"_index":"orders","_id":"%s","status":%d}}' % one for one in (("a", 201), ("b", 429))]
        self.target.next(Reply(body=self.said(*items), applied={"orders/0/100"}))
        self.assert_own(self.post(records(100, 101)), 503, "refused", "redirected")
        self.assertEqual(self.states(100, 101), ["applied", "absent"])
        self.assertEqual([status for _, _, status in items_of(self.post(records(100, 101)))], [200, 201])

    def test_an_item_of_500_is_in_doubt_and_the_others_are_known(self):
        self.serve()
        self.target.next(Reply(items={"orders/0/101": 500}))
        answer = self.post(records(100, 101, 102))
        self.assert_own(answer, 503, "in-doubt", "in-doubt")
        self.assertEqual((self.doubts(), self.states(100, 102)), (["orders/0/101"], ["applied", "applied"]))
        self.assertEqual(self.proxy.in_doubt()[0]["detail"], "the target's 2xx proves nothing of it")
        self.proxy.resolve("orders/0/101", False)
        answer = self.post(records(100, 101, 102))
        self.assertEqual([status for _, _, status in items_of(answer)], [200, 201, 200])
        self.assertEqual(self.written()[1].keys, ["orders/0/101"])

    def test_a_version_conflict_of_a_create_says_that_the_record_is_there(self):
        self.serve()
        self.target.next(Reply(items={"orders/0/100": 409}))
        answer = self.post(records(100, 101), "create")
        self.assertEqual([status for _, _, status in items_of(answer)], [409, 201])
        self.assertEqual(self.states(100, 101), ["applied", "applied"])

    def test_what_is_made_up_has_the_values_of_its_action(self):
        self.serve()
        for kind, result, status in (("index", "updated", 200), ("create", "created", 201), ("update", "noop", 200)):
            some = records(1, 2, topic=kind)
            self.post(some, kind)
            answer = self.post(some, kind)
            items_of(answer)
            self.assertEqual((answer.outcome, answer.headers["content-type"]), ("duplicate", "application/json"))
            self.assertEqual(answer.json(), {"took": 0, "errors": False, "items": [
                {kind: {"_index": kind, "_type": "_doc", "_id": "%s+0+%d" % (kind, n), "_version": 1, "result": result,
                        "_shards": {"total": 1, "successful": 1, "failed": 0}, "_seq_no": 0, "_primary_term": 1,
                        "status": status}} for n in (1, 2)]})

    def test_a_made_up_delete_says_deleted(self):
        self.serve()
        body = b'{"delete":{"_index":"o","_id":"orders+0+1","version":7}}\n{"delete":{"_index":"o","_id":"orders+0+2"}}\n'
        self.deliver(body, "/_bulk")
        answer = self.deliver(body, "/_bulk")
        self.assertEqual((answer.outcome, items_of(answer)), ("duplicate", [("delete", "orders+0+%d" % n, 200) for n in (1, 2)]))
        self.assertEqual([(item["delete"]["result"], item["delete"]["_version"]) for item in answer.json()["items"]],
                         [("deleted", 7), ("deleted", 1)])

    def test_a_conflict_of_external_versions_says_that_a_newer_one_is_there(self):
        self.serve()
        body = b"".join(action(record(offset), _id="k", version=offset, version_type="external") for offset in (1, 2))
        self.target.next(Reply(items={"orders/0/1": 409}))
        self.assertEqual(self.deliver(body, "/_bulk").status, 200)
        self.assertEqual(self.states(1, 2), ["applied", "applied"])
        self.assertEqual(self.deliver(body, "/_bulk").outcome, "duplicate")

    def test_the_index_may_stand_in_the_url(self):
        self.serve()
        body = b"".join(b'{"index":{"_id":"orders+0+%d"}}\n{"a":%d}\n' % (n, n) for n in (1, 2))
        for _ in range(2):
            answer = self.deliver(body, "/logs-2023/_bulk?timeout=1m")
        self.assertEqual(items_of(answer), [("index", "orders+0+1", 200), ("index", "orders+0+2", 200)])
        self.assertEqual({item["index"]["_index"] for item in answer.json()["items"]}, {"logs-2023"})

    def test_a_repeat_inside_one_bulk_has_an_item_of_its_own(self):
        self.serve()
        one, other = records(100, 101)
        self.target.next(Reply(items={"orders/0/100": 400}))
        answer = self.post([one, other, one])
        self.assertEqual([status for _, _, status in items_of(answer)], [400, 201, 400])
        self.assertEqual(self.written()[0].keys, ["orders/0/100", "orders/0/101"])

    def test_an_answer_that_does_not_fit_proves_nothing(self):
        self.serve()
        odd = [b'{"took":1,"errors":false,"items":[]}', b"not json", b"", b"[]",
               b'{"took":1,"errors":false,"items":[{"index":{"status":201}}]}', b'{"took":1,"errors":false,"items":[{"index":{}},{"index":{}}]}']
        for number, body in enumerate(odd):
            self.target.next(Reply(body=body))
            self.assert_own(self.post(records(2 * number, 2 * number + 1)), 503, "in-doubt", "in-doubt")
            self.assertEqual(self.states(2 * number, 2 * number + 1), ["in_doubt", "in_doubt"], body)

    def test_whole_refusals_release_all_and_pass_as_they_came(self):
        self.serve()
        for number, status in enumerate((400, 401, 403, 404, 409, 413, 429, 501, 503)):
            body = b'{"error":"x","status":%d}' % status
            self.target.next(Reply(status=status, body=body, fields=["X-Elastic-Product: Elasticsearch"]))
            answer = self.post(records(2 * number, 2 * number + 1))
            self.assertEqual((answer.status, answer.body), (status, body), answer)
            self.assertEqual(answer.headers["x-elastic-product"], "Elasticsearch")
            self.assertEqual(self.states(2 * number, 2 * number + 1), ["absent", "absent"])

    def test_whole_failures_put_all_in_doubt(self):
        self.serve()
        for number, reply in enumerate((Reply(status=500), Reply(status=502), Reply(status=504), Reply(cut="answer", end="rst"),
                                        Reply(cut="status"), Reply(cut="head", end="rst"))):
            self.target.next(reply)
            self.assert_own(self.post(records(2 * number, 2 * number + 1)), 503, "in-doubt", "in-doubt")
        self.assertEqual(len(self.doubts()), 12)

    def test_a_refusal_after_a_cut_passes_unchanged_and_the_retry_goes_on(self):
        self.serve()
        self.post(records(100))
        self.target.next(Reply(status=429, body=b"later"))
        answer = self.post(records(100, 101))
        self.assertEqual((answer.status, answer.body), (429, b"later"), answer)
        answer = self.post(records(100, 101))
        self.assertEqual([status for _, _, status in items_of(answer)], [200, 201])

    def test_accept_encoding_is_not_passed_where_the_answer_must_be_read(self):
        self.serve()
        self.deliver(bulk(records(1, 2)), "/_bulk", {"Accept-Encoding": "gzip"})
        self.assertIsNone(self.written()[0].one("accept-encoding"))
        self.deliver(array(records(3, 4)), headers={"Accept-Encoding": "gzip"})
        self.assertEqual(self.written()[1].one("accept-encoding"), "gzip")

    def test_a_compressed_bulk_answer_is_read_all_the_same(self):
        self.serve()
        items = [{"index": {"_index": "orders", "_id": IDS[n], "_version": 1, "result": "created", "status": status}}
                 for n, status in ((0, 201), (1, 429))]
        items[1]["index"]["error"] = {"type": "x"}
        body = batches.packed(json.dumps({"took": 1, "errors": True, "items": items}).encode(), "gzip")
        self.target.next(Reply(body=body, fields=["Content-Encoding: gzip", "Content-Type: application/json"],
                               applied={"orders/0/100"}))
        answer = self.post(records(100, 101))
        self.assertEqual((answer.body, answer.headers["content-encoding"]), (body, "gzip"))
        self.assertEqual(self.states(100, 101), ["applied", "absent"])

    def test_a_filtered_answer_cannot_be_expanded_so_nothing_is_cut(self):
        self.serve()
        self.target.next(Reply(body=b"{}"), Reply(body=b"{}"))
        self.post(records(1, 2), query="?filter_path=errors")
        for body in (records(1, 2), records(2, 3)):
            self.post(body, query="?filter_path=errors")
        for seen in self.written():
            self.assertIn(len(seen.elements), (0, 2))

    def test_A6_a_bulk_answer_cut_in_its_body_proves_nothing(self):
        self.serve()
        self.target.next(Reply(cut="body", end="rst"))
        self.assert_own(self.post(records(1, 2)), 503, "in-doubt", "in-doubt")
        self.assertEqual(self.states(1, 2), ["in_doubt", "in_doubt"])


    def test_an_answer_that_was_kept_for_another_form_is_not_given_to_a_bulk(self):
        self.serve(DUPLICATE_STATUS="202")
        self.deliver(record(1))
        self.assertEqual(self.deliver(record(1)).body, b"ok\n")
        answer = self.post(records(1))
        self.assertEqual((answer.status, items_of(answer)), (200, [("index", "orders+0+1", 200)]))
        self.post(records(2))
        self.assertEqual((self.deliver(record(2)).body, self.deliver(record(2)).outcome), (b"", "duplicate"))


class Dapr(BatchScenario):
    def entries(self, *offsets):
        made = [{"entryId": "e%d" % n, "event": {"id": n}, "contentType": "application/json",
                 "metadata": {"__topic": "orders", "__partition": "0", "__offset": str(n)}} for n in offsets]
        return json.dumps({"entries": made, "id": "x", "topic": "orders", "type": "com.dapr.event.sent.bulk"}).encode()

    def post(self, *offsets):
        return self.deliver(self.entries(*offsets), "/orders-bulk")

    def statuses(self, answer):
        return [(one["entryId"], one["status"]) for one in answer.json()["statuses"]]

    def test_every_entry_is_named_whatever_was_cut(self):
        self.serve()
        self.post(1, 2)
        answer = self.post(0, 1, 2, 3)
        self.assertEqual(self.statuses(answer), [("e%d" % n, "SUCCESS") for n in range(4)])
        self.assertEqual((answer.outcome, self.written()[1].keys), ("partial", ["orders/0/0", "orders/0/3"]))
        answer = self.post(3, 0)
        self.assertEqual((self.statuses(answer), answer.outcome), ([("e3", "SUCCESS"), ("e0", "SUCCESS")], "duplicate"))

    def test_A8_entries_that_are_to_be_retried_are_not_applied(self):
        self.serve()
        self.target.next(Reply(items={"orders/0/2": "RETRY", "orders/0/3": "DROP"}))
        answer = self.post(1, 2, 3)
        self.assertEqual(self.statuses(answer), [("e1", "SUCCESS"), ("e2", "RETRY"), ("e3", "DROP")])
        self.assertEqual(self.states(1, 2, 3), ["applied", "absent", "absent"])
        answer = self.post(1, 2)
        self.assertEqual(self.statuses(answer), [("e1", "SUCCESS"), ("e2", "SUCCESS")])
        self.assertEqual(self.written()[1].keys, ["orders/0/2"])

    def test_an_empty_success_is_the_success_of_all(self):
        self.serve()
        self.target.next(Reply(body=b""))
        self.assertEqual(self.post(1, 2).status, 200)
        self.assertEqual(self.states(1, 2), ["applied", "applied"])


class Plain(BatchScenario):
    def test_part_of_a_batch_known_gets_the_targets_answer_and_says_partial(self):
        self.serve()
        self.deliver(array(records(1)))
        self.target.next(Reply(status=202, body=b"taken", fields=["X-Own: 1"]))
        answer = self.deliver(array(records(1, 2)))
        self.assertEqual((answer.status, answer.body, answer.outcome), (202, b"taken", "partial"), answer)
        self.assertEqual((answer.headers["x-own"], answer.is_replayed), ("1", False))

    def test_nothing_cut_gets_the_targets_answer_byte_for_byte(self):
        self.serve()
        self.target.next(Reply(status=201, body=b"\x00\xff", fields=["X-Own: 1"]))
        answer = self.deliver(array(records(1, 2)))
        self.assertEqual((answer.status, answer.body, answer.outcome), (201, b"\x00\xff", None), answer)

    def test_a_dropped_batch_has_an_empty_success(self):
        self.serve(DUPLICATE_STATUS="202")
        self.deliver(array(records(1, 2)))
        answer = self.deliver(array(records(2, 1)))
        self.assertEqual((answer.status, answer.body, answer.outcome), (202, b"", "duplicate"), answer)

    def test_a_redirection_of_a_batch_becomes_503_and_releases_all(self):
        self.serve()
        self.target.next(Reply(status=302, fields=["Location: /elsewhere"]))
        self.assert_own(self.deliver(array(records(1, 2))), 503, "refused", "redirected")
        self.assertEqual(self.states(1, 2), ["absent", "absent"])

    def test_A1_a_target_that_is_down_leaves_no_state(self):
        self.serve(CONNECT_RETRIES="0")
        self.target.refuse()
        self.assert_own(self.deliver(array(records(1, 2))), 503, "refused", "target-unreachable")
        self.assertEqual(self.states(1, 2), ["absent", "absent"])
        self.assert_metric("not_sent_records_total", 2)

    def test_A6_a_success_whose_body_is_cut_is_a_success(self):
        self.serve()
        self.target.next(Reply(body=b"x" * 1000, cut="body", end="rst"))
        answer = self.deliver(array(records(1, 2)))
        self.assertEqual((answer.status, answer.outcome, answer.body), (200, "applied", b""), answer)
        self.assertEqual(self.states(1, 2), ["applied", "applied"])

    def test_records_are_named_ten_at_most_with_a_total(self):
        self.serve()
        self.target.next(Reply(status=500))
        answer = self.deliver(array(records(*range(25))))
        self.assertEqual((len(answer.json()["records"]), answer.json()["total"]), (10, 25))

    def test_D1_the_connector_leaves_and_the_batch_is_recorded(self):
        self.serve()
        held = batches.harness.threading.Event()
        self.addCleanup(held.set)
        self.target.next(Reply(held=held))
        wire = batches.Wire(self.proxy.port)
        wire.send(batches.post_bytes(array(records(1, 2)), "Content-Type: application/json\r\n"))
        self.wait_held()
        wire.reset()
        held.set()
        batches.wait_for(lambda: self.states(1, 2) == ["applied", "applied"], "the result", 20)
        self.assertEqual(self.deliver(array(records(1, 2))).outcome, "duplicate")

    def test_observe_forwards_all_and_counts_what_it_would_drop(self):
        self.is_journal_checked = False
        self.serve(MODE="observe")
        self.deliver(array(records(1, 2)))
        body = array(records(2, 2, 3))
        self.assertEqual(self.deliver(body).status, 200)
        self.assertEqual(self.written()[1].body, body)
        self.assert_metric("would_drop_records_total", 1)

    def test_clickhouse_is_told_busy_in_its_own_words(self):
        self.serve()
        self.target.next(Reply(status=500))
        data = stored("clickhouse-v1-jsoneachrow-token")
        reply = self.raw(data)
        self.assertEqual((reply.status, reply.one("x-clickhouse-exception-code")), (503, "210"), reply)
        self.assertTrue(reply.body.startswith(b"Code: 210. DB::Exception:"), reply)


class Signed(BatchScenario):
    FIELDS = ("Authorization: AWS4-HMAC-SHA256 Credential=A/20231114/us-east-1/es/aws4_request, SignedHeaders=host, "
              "Signature=0\r\n", "webhook-signature: v1,x\r\n", "Digest: SHA-256=x\r\n", "Content-Digest: sha-256=:x:\r\n", "Content-MD5: x\r\n")

    def test_a_signed_batch_goes_whole_or_not_at_all(self):
        self.serve()
        for number, line in enumerate(self.FIELDS):
            topic = "signed-%d" % number
            post = lambda *offsets: self.raw(batches.post_bytes(array(records(*offsets, topic=topic)), line))
            self.assertEqual(post(1, 2).status, 200)
            self.assertEqual(post(2, 1).one("sinkonce-outcome"), "duplicate")
            reply = post(2, 3)
            self.assertEqual((reply.status, json.loads(reply.body)["error"]), (503, "signed"), line)
            self.assertEqual((reply.one("retry-after"), self.state(3, topic)), ("1", "absent"))
            self.assertEqual(post(3, 4).one("sinkonce-outcome"), None)
        topics = ["signed-%d" % number for number in range(len(self.FIELDS))]
        self.assertEqual([seen.body for seen in self.written()],
                         [array(records(*some, topic=topic)) for topic in topics for some in ((1, 2), (3, 4))])

    def test_the_sigv4_bulk_is_never_torn(self):
        self.serve()
        data = stored("opensearch-bulk-sigv4")
        self.raw(data)
        answer = self.raw(data)
        self.assertEqual((answer.one("sinkonce-outcome"), len(self.written())), ("duplicate", 1))
        body = b'{"index":{"_id":"orders+0+101"}}\n{}\n{"index":{"_id":"orders+0+102"}}\n{}\n'
        self.assertEqual(self.deliver(body, "/orders/_bulk", {"Authorization": "AWS4-HMAC-SHA256 x"}).status, 503)
        self.assertEqual(len(self.written()), 1)

    def signed(self, *elements):
        return self.raw(batches.post_bytes(array(elements), self.FIELDS[0]))

    def test_what_is_applied_in_a_batch_that_cannot_be_cut_is_named_and_told_at_once(self):
        self.serve()
        self.assertEqual(self.signed(*records(*range(4, 15))).status, 200)
        for count in (1, 2):
            reply = self.signed(*records(*range(3, 15)))
            named = json.loads(reply.body)
            self.assertEqual((reply.status, named["error"], named["total"]), (503, "signed", 11), reply)
            self.assertEqual(named["records"], [{"topic": "orders", "partition": 0, "offset": offset} for offset in range(4, 14)])
            self.assert_metric('http_refused_total{reason="signed"}', count)
        self.assert_logged({"event": "record.uncuttable", "topic": "orders", "partition": 0, "offset": 4, "total": 11, "records": 12})
        warnings = self.proxy.admin("GET", "/status")[1]["warnings"]
        self.assertTrue(any(text.startswith("2 requests of the last minutes got 503") for text in warnings), warnings)
        self.assertEqual((len(self.written()), self.state(3)), (1, "absent"))

    def test_an_element_without_coordinates_is_never_known_and_one_record_a_request_gets_past_it(self):
        self.serve()
        batch = (*records(1, 2), b'{"no":"coordinates"}')
        self.assertEqual(self.signed(*batch).status, 200)
        for _ in range(2):
            reply = self.signed(*batch)
            self.assertEqual((reply.status, json.loads(reply.body)["total"]), (503, 2), reply)
        answers = [self.signed(element) for element in (*batch, *records(3))]
        self.assertEqual([answer.one("sinkonce-outcome") for answer in answers], ["duplicate", "duplicate", None, None])
        self.assertEqual([seen.body for seen in self.written()], [array(some) for some in (batch, batch[2:], records(3))])

    def test_a_replay_window_lets_a_batch_that_cannot_be_cut_go_whole_once(self):
        self.is_journal_checked = False  # sent again because a person says so
        self.serve()
        batch = (*records(1, 2), b'{"no":"coordinates"}')
        self.assertEqual((self.signed(*batch).status, self.signed(*batch).status), (200, 503))
        window = {"topic": "orders", "partition": 0, "from": 1, "to": 2, "for": "10m", "reason": "a second time does no harm"}
        self.assertEqual(self.proxy.admin("POST", "/replays", window)[0], 200)
        self.assertEqual((self.signed(*batch).status, self.signed(*batch).status), (200, 503))
        self.assertEqual([seen.body for seen in self.written()], [array(batch)] * 2)

    def test_strip_leaves_signed_bodies_alone(self):
        self.serve(STRIP="on")
        body = array(records(1, 2))
        self.raw(batches.post_bytes(body, self.FIELDS[0]))
        self.assertEqual(self.written()[0].body, body)


if __name__ == "__main__":
    batches.main()
