#!/usr/bin/env python3
"""Compressed and chunked batches are opened, cut and packed again; coordinates are cut out in every shape; what is broken in
its middle claims nothing and sends nothing in parts.
"""

import json
import random
import zlib

import batches
from batches import BatchScenario, Reply, array, bulk, chunked, concat, lines, packed, record, records

NAMES = {"deflate-raw": "deflate"}


def stripped(element):
    """The record without its coordinates, cut by hand: they stand in these forms."""
    value = json.loads(element)
    for name in ("__topic", "__partition", "__offset"):
        del value[name]
    return json.dumps(value, separators=(",", ":")).encode()


class Codings(BatchScenario):
    def post(self, body, coding, path="/in", fields=""):
        data = packed(body, coding)
        reply = self.raw(batches.post_bytes(data, "Content-Type: application/json\r\nContent-Encoding: %s\r\n%s" %
                                            (NAMES.get(coding, coding), fields), path))
        return reply, data

    def each(self, coding):
        self.serve()
        for name, build, path, settings in batches.SHAPES:
            if settings:
                continue
            elements = records(1, 2, 3, 4, topic=name, pad="p" * 200)
            _, data = self.post(build(elements[1:3]), coding, path)
            self.assertEqual(self.written()[-1].body, data, "nothing is cut: not a byte differs")
            reply, _ = self.post(build(elements), coding, path)
            self.assertEqual((reply.status, reply.one("sinkonce-outcome")), (200, "partial"), reply)
            seen = self.written()[-1]
            self.assertEqual(seen.one("content-encoding"), NAMES.get(coding, coding))
            self.assertEqual((seen.opened, seen.one("content-length")), (build([elements[0], elements[3]]), str(len(seen.body))))
            count = len(self.written())
            reply, _ = self.post(build(elements), coding, path)
            self.assertEqual((reply.one("sinkonce-outcome"), len(self.written())), ("duplicate", count))

    def test_a_bulk_request_on_a_path_of_another_spelling_never_loses_a_source_line(self):
        self.is_journal_checked = False  # what is not cut goes whole, known records too
        self.serve()
        self.deliver(bulk(records(1, 2)), "/_bulk")
        body = bulk(records(1, 2, 3))
        for path, outcome, expected in (("/_bulk/", "partial", bulk(records(3))), ("/%5fbulk", None, bulk(records(1, 2, 4))),
                                        ("/es", None, bulk(records(1, 2, 5)))):
            if outcome is None:
                body = expected
            answer = self.deliver(body, path)
            self.assertEqual((answer.status, answer.outcome, self.written()[-1].body), (200, outcome, expected), path)

    def test_elements_that_differ_at_the_same_coordinates_are_no_repeats(self):
        """One record that became several elements on its way must not lose all but the first of them."""
        self.is_journal_checked = False
        self.serve()
        for name, build, path, settings in batches.SHAPES:
            if settings:
                continue
            same = [record(1, name, n=1), record(1, name, n=2), record(2, name)]
            timed = [record(1, name, n=n, __timestamp=1700000000000) for n in (1, 2)]  # one record's, both of them
            for elements in (same, timed, same[:1] + timed[:1]):
                answer = self.deliver(build(elements), path)
                self.assert_own(answer, 503, "conflict", "contradiction")
                self.assertEqual(answer.json()["records"], [{"topic": name, "partition": 0, "offset": 1}])
                self.assertEqual((self.written(), self.states(1, 2, topic=name)), ([], ["absent", "absent"]))
        self.assert_logged({"event": "record.conflict", "remedy": "look at what puts the coordinates into each element"})
        signed = array([record(7, n=1), record(7, n=2)])  # goes whole: nothing is lost
        self.deliver(signed, headers={"Digest": "sha-256=x"})
        self.assertEqual(self.written()[-1].body, signed)
        self.deliver(array([record(8, __timestamp=1)] * 2))  # a repeat is one
        self.assertEqual(self.written()[-1].body, array([record(8, __timestamp=1)]))
        for identity in ("off", "timestamp"):
            self.restart(IDENTITY=identity)
            first, second = (record(9, identity, n=n, __timestamp=1) for n in (1, 2))
            self.deliver(array([first, second]))
            self.assertEqual(self.written()[-1].body, array([first]))

    def test_what_is_compressed_twice_or_in_another_way_goes_whole_by_its_head(self):
        self.is_journal_checked = False
        self.serve()
        body = packed(packed(array(records(1)), "gzip"), "gzip")
        for fields, again in (("", 1), ("x-kafka-topic: t\r\nx-kafka-partition: 0\r\nx-kafka-offset: 1\r\n", 0)):
            for coding in ("gzip, gzip", "br", "snappy"):
                data = batches.post_bytes(body, "Content-Encoding: %s\r\n%s" % (coding, fields.replace(": t", ": " + coding[:2])))
                self.raw(data)
                self.assertEqual(self.written()[-1].body, body)
                count = len(self.written())
                self.raw(data)
                self.assertEqual(len(self.written()) - count, again, coding)

    def test_a_chunk_may_hold_the_gzip_header_alone(self):
        self.serve()
        data = packed(array(records(1, 2, 3)), "gzip")
        head = b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        for cuts in ([10], [1, 2, 3], range(1, len(data))):
            edges = [0, *cuts, len(data)]
            self.raw(head + chunked(*[data[a:b] for a, b in zip(edges, edges[1:])]))
        seen = self.written()
        self.assertEqual([one.body for one in seen], [data])
        self.assertEqual((seen[0].one("transfer-encoding"), seen[0].one("content-length")), (None, str(len(data))))

    def test_chunks_are_cut_and_become_a_length(self):
        self.serve()
        self.deliver(array(records(2)))
        body = array(records(1, 2, 3))
        head = b"POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.raw(head + chunked(*[body[n:n + 7] for n in range(0, len(body), 7)]))
        seen = self.written()[-1]
        self.assertEqual((seen.body, seen.one("transfer-encoding")), (array(records(1, 3)), None))
        self.assertEqual([value for name, value in seen.fields if name.lower() == "content-length"], [str(len(seen.body))])

    def test_gzip_of_several_members_is_one_body(self):
        self.serve()
        body = array(records(1, 2, 3))
        data = packed(body[:40], "gzip") + packed(body[40:], "gzip")
        for _ in range(2):
            self.raw(batches.post_bytes(data, "Content-Encoding: gzip\r\n"))
        if len(self.written()) > 1:  # not read: then untouched both times, and counted
            self.assertEqual([seen.body for seen in self.written()], [data, data])
            self.assert_metric("unkeyed_records_total", 2)
            self.is_journal_checked = False


for coding_ in batches.CODINGS:
    def one_coding(self, coding=coding_):
        self.each(coding)
    setattr(Codings, "test_a_cut_batch_is_packed_again_with_" + coding_.replace("-", "_"), one_coding)


class Strip(BatchScenario):
    settings = {"STRIP": "on"}

    def strip(self, name, build, path, settings):
        self.serve(**settings)
        elements = records(1, 2, 3, topic=name)
        self.deliver(build(elements[:2]), path)
        answer = self.deliver(build(elements), path)
        self.assertEqual((answer.status, answer.outcome), (200, "partial"), answer)
        bodies = [seen.body for seen in self.written()]
        if name == "bulk":
            sources = [[json.loads(line) for line in body.splitlines()[1::2]] for body in bodies]
            expected = [[json.loads(stripped(one)) for one in some] for some in (elements[:2], elements[2:])]
            self.assertEqual(sources, expected)
        else:
            self.assertEqual(bodies, [build([stripped(one) for one in some]) for some in (elements[:2], elements[2:])])

    def test_members_are_cut_wherever_they_stand(self):
        self.is_journal_checked = False
        self.serve()
        names = ["__topic", "__partition", "__offset", "a", "b"]
        chance = random.Random(4)
        for number in range(30):
            order = chance.sample(names, chance.randrange(3, 6))
            for name in names[:3]:
                if name not in order:
                    order.append(name)
            space = chance.choice(["", " ", "\n\t"])
            value = {"__topic": '"t"', "__partition": "0", "__offset": str(number), "a": '"__topic"', "b": '{"__offset":1}'}
            body = "[{%s}]" % ("," + space).join('"%s":%s%s' % (name, space, value[name]) for name in order)
            self.deliver(body.encode())
            sent = json.loads(self.written()[-1].body)
            self.assertEqual(sent, [{name: json.loads(value[name]) for name in order if not name.startswith("__")}], body)

    def test_the_members_of_collected_events_are_cut(self):
        self.is_journal_checked = False
        self.serve()
        self.collect(records(1, 2))
        for value in batches.values(self.written()[-1].body):
            self.assertFalse({"kafka_topic", "kafka_partition", "kafka_offset"} & set(value["fields"]))

    def test_a_compressed_batch_is_stripped_and_packed(self):
        self.is_journal_checked = False
        self.serve()
        some = records(1, 2)
        self.raw(batches.post_bytes(packed(array(some), "gzip"), "Content-Encoding: gzip\r\n"))
        self.assertEqual(self.written()[0].opened, array([stripped(one) for one in some]))


for shape_ in batches.SHAPES:
    def one_shape(self, shape=shape_):
        self.is_journal_checked = False
        self.strip(*shape)
    setattr(Strip, "test_coordinates_are_cut_out_of_" + shape_[0], one_shape)


class Broken(BatchScenario):
    """Nothing is claimed, nothing is cut: the whole goes on untouched, or is refused."""

    def bodies(self):
        some = records(1, 2, 3)
        good = array(some)
        yield "cut json", good[:-30], ""
        yield "no end", good[:-1], ""
        yield "two commas", b"[" + some[0] + b",," + some[1] + b"]", ""
        yield "more behind", good + b"x", ""
        yield "a broken line", some[0] + b"\n" + some[1][:-5] + b"\n" + some[2] + b"\n", ""
        yield "NUL", good.replace(b"9007199254740993", b"\0", 1), ""
        yield "NUL in a string", good.replace(b"__topic", b"__\0topic", 1), ""
        yield "depth", b"[" * 10000 + b"]" * 10000, ""
        yield "depth inside", b"[" + some[0][:-1] + b',"d":' + b"[" * 10000 + b"]" * 10000 + b"}," + some[1] + b"]", ""
        yield "bad gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\0" + good, "Content-Encoding: gzip\r\n"
        yield "cut gzip", packed(good, "gzip")[:-4], "Content-Encoding: gzip\r\n"
        yield "damaged gzip", packed(good, "gzip")[:-6] + b"abcdef", "Content-Encoding: gzip\r\n"
        yield "not gzip", good, "Content-Encoding: gzip\r\n"
        yield "bad zstd", packed(good, "zstd")[:-3], "Content-Encoding: zstd\r\n"
        yield "bad deflate", packed(good, "deflate")[:-2], "Content-Encoding: deflate\r\n"

    def test_broken_batches_go_on_whole_and_claim_nothing(self):
        self.is_journal_checked = False
        self.serve()
        for name, body, fields in self.bodies():
            for _ in range(2):
                count = len(self.written())
                reply = self.raw(batches.post_bytes(body, "Content-Type: application/json\r\n" + fields))
                self.assertEqual(reply.status, 200, name)
                self.assertEqual([seen.body for seen in self.written(count)], [body], name)
                self.assertEqual(self.states(1, 2, 3), ["absent"] * 3, name)

    def test_broken_batches_are_refused_with_422_when_that_is_asked(self):
        self.serve(UNKEYED="reject")
        for name, body, fields in self.bodies():
            reply = self.raw(batches.post_bytes(body, "Content-Type: application/json\r\n" + fields))
            told = json.loads(reply.body)
            self.assertEqual((reply.status, told["error"]), (422, "unkeyed-refused"), name)
            self.assertTrue(told["reason"], name)
            self.assertLessEqual(told.get("position", 0), len(body) if not fields else 1 << 30, name)
            self.assertEqual((self.written(), self.states(1, 2, 3)), ([], ["absent"] * 3), name)

    def test_a_broken_bulk_goes_on_whole(self):
        self.is_journal_checked = False
        self.serve()
        good = bulk(records(1, 2))
        for body in (good[:-20], good.replace(b"index", b"indx", 1), good + b"{}\n"):
            self.target.next(Reply(body=b"{}"))
            reply = self.raw(batches.post_bytes(body, path="/_bulk"))
            self.assertEqual(self.written()[-1].body, body)
            if reply.status == 200:  # not read as records, so nothing can be in doubt
                self.assertEqual(reply.body, b"{}")
        self.assertEqual(self.state(2), "absent")

    def test_a_zip_bomb_is_not_opened(self):
        self.is_journal_checked = False
        self.serve(MAX_BODY="1MiB")
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        bomb = packer.compress(array(records(1, pad="x"))[:-1])
        for _ in range(200):
            bomb += packer.compress(b" " * (1 << 20))
        bomb += packer.compress(b"]") + packer.flush()
        self.assertLess(len(bomb), 1 << 20)
        reply = self.raw(batches.post_bytes(bomb, "Content-Encoding: gzip\r\n"))
        self.assertEqual((reply.status, json.loads(reply.body)["error"]), (413, "body-too-large"))
        self.assertEqual((self.written(), self.state(1)), ([], "absent"))
        if not batches.harness.is_sanitized():
            self.assertLess(batches.harness.rss_kib(self.proxy.process.pid, "VmHWM"), 40 << 10)

    def test_what_opens_to_more_than_is_allowed_is_refused_whole(self):
        """Else a known record would be sent again with it."""
        self.is_journal_checked = False  # observing forwards it once more
        self.serve(MAX_BODY="64KiB")
        self.deliver(array(records(1)))
        large = array(records(1, *range(2, 20), pad="x" * 5000))
        for coding in batches.CODINGS:
            data, head = packed(large, coding), "Content-Encoding: %s\r\n" % NAMES.get(coding, coding)
            reply = self.raw(batches.post_bytes(data, head))
            self.assertEqual((reply.status, json.loads(reply.body)["error"]), (413, "body-too-large"), coding)
            head += "x-kafka-topic: %s\r\nx-kafka-partition: 0\r\nx-kafka-offset: 7\r\n" % coding
            for outcome in (None, "duplicate"):  # the head alone says whose it is
                reply = self.raw(batches.post_bytes(data, head))
                self.assertEqual((reply.status, reply.one("sinkonce-outcome")), (200, outcome), coding)
        self.assertEqual(len(self.written()), 1 + len(batches.CODINGS))
        self.assertEqual(self.states(1, 2), ["applied", "absent"])
        self.restart(MODE="observe")
        self.assertEqual(self.raw(batches.post_bytes(data, head.split("x-")[0])).status, 200)

    def test_a_separator_inside_a_string_is_none(self):
        for_each = [batches.SEPARATED, {"SHAPE": "separated", "SEPARATOR": "}{"}, {"SHAPE": "separated", "SEPARATOR": '","'}]
        separators = [b",", b"}{", b'","']
        texts = ['a,"},{"b":1', "}{", '","']
        self.serve(**for_each[0])
        for settings, separator in zip(for_each, separators):
            self.restart(**settings)
            topic = "s%d" % separators.index(separator)
            some = [record(n, topic, s=texts) for n in (1, 2, 3)]
            self.deliver(some[1])
            self.deliver(separator.join(some))
            self.assertEqual(self.written()[-1].body, separator.join([some[0], some[2]]), separator)

    def test_a_prefix_and_a_suffix_stay(self):
        self.serve(SHAPE="separated", SEPARATOR="\\n--\\n", PREFIX="<<", SUFFIX=">>")
        some = records(1, 2, 3)
        self.deliver(b"<<" + some[0] + b">>")
        self.deliver(b"<<" + b"\n--\n".join(some) + b">>")
        self.assertEqual(self.written()[-1].body, b"<<" + b"\n--\n".join(some[1:]) + b">>")

    def test_more_records_than_allowed_are_refused_whole(self):
        self.serve(MAX_RECORDS="10")
        self.assertEqual(self.deliver(array(records(*range(10)))).status, 200)
        for build in (array, lines, concat):
            answer = self.deliver(build(records(*range(100, 111))))
            self.assertEqual(answer.status, 413, answer)
            self.assertEqual(answer.json()["error"], "too-many-records")
        self.assertEqual((len(self.written()), self.state(100)), (1, "absent"))

    def test_an_empty_array_and_the_like_are_no_records(self):
        self.serve()
        for body in (b"[]", b" [ ] ", b"[1,2]", b"[[],[]]", b"null", b"{}", b"{}{}", b"[{}]", b"\n\n", b""):
            count = len(self.written())
            self.assertEqual(self.deliver(body).status, 200, body)
            self.assertEqual([seen.body for seen in self.written(count)], [body])

    def test_a_trailing_comma_is_tolerated_and_kept(self):
        self.serve()
        some = records(1, 2, 3)
        self.deliver(array(some[1:2]))
        self.deliver(b"[" + b",".join(some) + b" ,]")
        self.assertEqual(self.written()[-1].body, b"[" + some[0] + b"," + some[2] + b" ,]")

    def test_a_batch_of_many_megabytes_is_cut_right(self):
        self.serve()
        elements = records(*range(8000), pad="x" * 1000)
        self.deliver(array(elements[1::2]), timeout=60)
        self.deliver(array(elements), timeout=60)
        self.assertEqual(self.written()[-1].body, array(elements[0::2]))
        self.assertEqual(self.deliver(array(elements), timeout=60).outcome, "duplicate")


if __name__ == "__main__":
    batches.main()
