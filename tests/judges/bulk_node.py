"""A real OpenSearch node as the target: documents of a data stream, written by create actions in overlapping batches.

The node is made of the server's jars alone (Node.java); it listens on loopback and ends with this process.
"""

import http.client
import json
import os
import shutil
import subprocess

import sinkonce

STREAM = "/orders-stream/_bulk"
TEMPLATE = {"index_patterns": ["orders-stream*"], "data_stream": {},
            "template": {"settings": {"number_of_replicas": 0, "number_of_shards": 1},
                         "mappings": {"properties": {"amt": {"type": "long"}, "__offset": {"type": "long"}}}}}
# Each is a batch of offsets as a connector cuts them: a retry, overlaps, one record twice, a step back.
BATCHES = [range(0, 5), range(0, 5), range(3, 9), [9, 9, 10], range(5, 12), range(2, 15), [14, 13, 15]]


class Broken(Exception):
    """A demand that did not hold."""


def demand(holds, what, *more):
    if not holds:
        raise Broken(what % more)


class Node:
    def __init__(self, class_path, folder):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "config"))
        log = os.path.join(folder, "node.log")
        self.process = sinkonce.Process(["java", "-Xms256m", "-Xmx512m", "-cp", class_path, "sinkonce.judges.Node", folder],
                                        log, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = 0
        for line in self.process.popen.stdout:
            if line.startswith(b"port="):
                self.port = int(line[5:])
                break
        demand(self.port != 0, "the node did not start; see %s", log)

    def ask(self, method, path, body=None):
        status, _, answer = sinkonce.request(self.port, method, path, json.dumps(body) if body is not None else None,
                                             {"Content-Type": "application/json"}, timeout=60)
        demand(status == 200, "%s %s: %d %s", method, path, status, answer)
        return json.loads(answer)

    def close(self):
        self.process.popen.stdin.close()
        self.process.wait(60)
        self.process.popen.stdout.close()


def action(offset, has_id, amt):
    head = {"create": {"_id": "orders+0+%d" % offset} if has_id else {}}
    source = {"@timestamp": 1700000000000 + offset, "amt": amt, "s": "a,\nb\u00e9"}
    if not has_id:
        source.update(__topic="payments", __partition=1, __offset=offset)
    else:
        source.update(offset=offset)
    return json.dumps(head) + "\n" + json.dumps(source) + "\n"


def bulk(port, offsets, has_id, amt=lambda offset: offset):
    body = "".join(action(offset, has_id, amt(offset)) for offset in offsets).encode()
    status, headers, answer = sinkonce.request(port, "POST", STREAM, body, {"Content-Type": "application/x-ndjson"})
    demand(status == 200, "%d %s", status, answer)
    demand(headers.get("content-type", "").startswith("application/json"), "%s", headers)
    answer = json.loads(answer)
    demand(len(answer["items"]) == len(list(offsets)), "%d items", len(answer["items"]))
    items = [item["create"] for item in answer["items"]]
    demand(answer["errors"] == any("error" in item for item in items), "errors is %s", answer["errors"])
    return items


def deliver_all(port, has_id, restart):
    for number, offsets in enumerate(BATCHES):
        for offset, item in zip(offsets, bulk(port, offsets, has_id)):
            demand(item["status"] == 201 and "error" not in item, "%d: %s", offset, item)
            demand(not has_id or item["_id"] == "orders+0+%d" % offset, "%d is answered by %s", offset, item)
        if number % 3 == 2:
            restart()


def refuse_one(port, has_id):
    """A document that the mapping refuses, then the whole batch again: its neighbours are not written twice."""
    offsets = [30, 31, 32]
    for _ in range(2):
        items = bulk(port, offsets, has_id, lambda offset: "no number" if offset == 31 else offset)
        demand([item["status"] for item in items] == [201, 400, 201], "%s", items)


def counts(node, query):
    node.ask("POST", "/orders-stream/_refresh")
    found = node.ask("POST", "/orders-stream/_search", {"size": 1000, "query": query})
    demand(found["hits"]["total"]["value"] < 1000, "too many documents")
    seen = {}
    for hit in found["hits"]["hits"]:
        offset = hit["_source"].get("__offset", hit["_source"].get("offset"))
        seen[offset] = seen.get(offset, 0) + 1
    return seen


def check(name, node, query, expected):
    seen = counts(node, query)
    wrong = {offset: count for offset, count in seen.items() if count != 1}
    demand(not wrong, "%s: written more than once: %s", name, wrong)
    demand(sorted(seen) == expected, "%s: %s are there, not %s", name, sorted(seen), expected)
    print("ok      %s: %d documents, each once" % (name, len(seen)))


def run(node, proxy):
    port = proxy.port if proxy else node.port

    def restart():
        if proxy:
            proxy.kill()
            proxy.start()

    node.ask("PUT", "/_index_template/orders", TEMPLATE)
    node.ask("PUT", "/_data_stream/orders-stream")
    expected = sorted({offset for offsets in BATCHES for offset in offsets} | {30, 32})
    by_source = {"exists": {"field": "__offset"}}
    deliver_all(port, False, restart)
    refuse_one(port, False)
    check("coordinates in the source, ids made by the node", node, by_source, expected)
    deliver_all(port, True, restart)
    refuse_one(port, True)
    check("coordinates as ids", node, {"bool": {"must_not": [by_source]}}, expected)
    demand(not proxy or not proxy.in_doubt(), "records are in doubt")


def judge(class_path, is_direct, binary, folder):
    try:
        node = Node(class_path, folder)
    except (Broken, OSError) as why:
        print("FAILED  %s" % why)
        return False
    proxy = None if is_direct else sinkonce.Sinkonce("http://127.0.0.1:%d" % node.port, binary=binary).start()
    try:
        run(node, proxy)
        return True
    except (Broken, OSError, http.client.HTTPException) as why:
        print("FAILED  %s" % why)
        return False
    finally:
        if proxy:
            proxy.close()
        node.close()
