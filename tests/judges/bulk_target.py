#!/usr/bin/env python3
"""A bulk API that counts.  Python's standard library only; in the test's own process.

Every action that it applies is counted by _id (by the source's coordinates where there is none), and none is idempotent:
an index action that comes twice counts twice.  create refuses an _id that is there, external versioning a version that
is not newer, both with 409 version_conflict_engine_exception; a delete of what is not there is "not_found" 404.

On order, by paths of its own:
    POST /_control/fail?id=ID&status=429&type=TYPE    the next action on ID fails so
    POST /_control/fail?status=503&times=3            the next bulk requests fail as a whole, and apply nothing
    POST /_control/put?id=ID&version=N                a document that was there before
    GET  /_control/count?id=ID                        how often actions on ID were applied
    GET  /_control/bulks                              how many bulk requests have come
    GET  /_control/log                                the actions of all bulk requests, one a line
"""

import http.server
import json
import threading
from urllib.parse import parse_qs, urlsplit

KINDS = ("index", "create", "update", "delete")


class Documents:
    def __init__(self):
        self.versions = {}
        self.counts = {}
        self.failures = {}           # id -> (status, type)
        self.refusal = (0, 0)        # status, and how many whole requests it is for
        self.bulk_count = 0
        self.lines = []
        self.lock = threading.Lock()

    def _key(self, action, source):
        fields = source.get("doc", source) if source else {}
        if action.get("_id") is not None:
            return str(action["_id"])
        return "%s+%s+%s" % (fields.get("__topic"), fields.get("__partition"), fields.get("__offset"))

    def apply(self, kind, action, source, typed):
        key = self._key(action, source)
        item = {"_index": action.get("_index", ""), "_id": key if action.get("_id") else "auto-" + key}
        if typed:
            item["_type"] = "_doc"
        self.lines.append("%s %s" % (kind, key))
        error = self.failures.pop(key, None) or self._conflict(kind, action, key)
        if error:
            item.update(status=error[0], error={"type": error[1], "reason": "as it was told", "index_uuid": "u", "shard":
                                                "0", "index": item["_index"]})
            return {kind: item}, True
        known = self.versions.get(key, 0)
        status, result = (200, "updated") if known else (201, "created")
        if kind == "delete":
            status, result = (200, "deleted") if known else (404, "not_found")
        self.versions[key] = 0 if kind == "delete" else int(action.get("version", known + 1))
        self.counts[key] = self.counts.get(key, 0) + 1
        item.update(_version=max(1, self.versions[key]), result=result, _seq_no=len(self.lines), _primary_term=1,
                    _shards={"total": 2, "successful": 1, "failed": 0}, status=status)
        return {kind: item}, False

    def _conflict(self, kind, action, key):
        known = self.versions.get(key, 0)
        is_external = str(action.get("version_type", "")).startswith("external")
        if (kind == "create" and known) or (is_external and int(action["version"]) <= known):
            return 409, "version_conflict_engine_exception"
        return None

    def bulk(self, body, index, typed):
        with self.lock:
            self.bulk_count += 1
            status, times = self.refusal
            if times > 0:
                self.refusal = (status, times - 1)
                return status, {"error": {"type": "as_it_was_told", "reason": "whole"}, "status": status}
            items, has_errors, lines = [], False, body.decode().split("\n")
            assert lines.pop() == "", "a bulk request must end with a line end"
            lines = iter(lines)
            for line in lines:
                ((kind, action),) = json.loads(line).items()
                assert kind in KINDS, kind
                action.setdefault("_index", index)
                item, is_failed = self.apply(kind, action, None if kind == "delete" else json.loads(next(lines)), typed)
                items.append(item)
                has_errors = has_errors or is_failed
            if not items:
                return 400, {"error": {"type": "parse_exception", "reason": "request body is required"}, "status": 400}
            return 200, {"took": 3, "errors": has_errors, "items": items}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _answer(self, status, body, content_type="text/plain"):
        data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
        self.send_response(status)
        if self.server.product != "opensearch":
            self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _control(self, path, query):
        documents, first = self.server.documents, {name: values[0] for name, values in query.items()}
        with documents.lock:
            if path == "/_control/fail":
                if "id" in first:
                    documents.failures[first["id"]] = (int(first["status"]), first["type"])
                else:
                    documents.refusal = (int(first.get("status", 0)), int(first.get("times", 1)))
            elif path == "/_control/put":
                documents.versions[first["id"]] = int(first.get("version", 1))
                documents.counts[first["id"]] = 1
            elif path == "/_control/count":
                return self._answer(200, b"%d" % documents.counts.get(first["id"], 0))
            elif path == "/_control/log":
                return self._answer(200, "\n".join(documents.lines).encode())
            else:
                return self._answer(200, b"%d" % documents.bulk_count)
        return self._answer(200, b"")

    def _root(self):
        number = {"es7": "7.17.24", "es9": "9.1.0", "opensearch": "3.0.0"}[self.server.product]
        version = {"number": number, "build_flavor": "default", "build_type": "docker", "build_hash": "0", "build_date":
                   "2024-01-01T00:00:00Z", "build_snapshot": False, "lucene_version": "9.0.0",
                   "minimum_wire_compatibility_version": "6.8.0", "minimum_index_compatibility_version": "6.0.0"}
        self._answer(200, {"name": "n", "cluster_name": "c", "cluster_uuid": "u", "version": version,
                           "tagline": "You Know, for Search"}, "application/json")

    def _body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while True:
            chunk = self.rfile.read(int(self.rfile.readline(), 16))
            self.rfile.readline()
            if not chunk:
                return body
            body += chunk

    def _serve(self):
        parts = urlsplit(self.path)
        body = self._body()
        if parts.path.startswith("/_control/"):
            return self._control(parts.path, parse_qs(parts.query))
        if parts.path == "/":
            return self._root()
        segments = parts.path.strip("/").split("/")
        if segments[-1] != "_bulk":
            return self._answer(404, {"error": "no such path", "status": 404}, "application/json")
        accept = self.headers.get("Accept", "")
        is_compatible = "compatible-with" in accept
        status, answer = self.server.documents.bulk(body, segments[0] if len(segments) > 1 else "",
                                                    self.server.product == "es7")
        return self._answer(status, answer, accept.split(",")[0] if is_compatible else "application/json; charset=UTF-8")

    do_GET = do_POST = do_PUT = do_HEAD = _serve


class BulkTarget:
    """with BulkTarget("es7") as target: ... target.url"""

    def __init__(self, product):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.product = product
        self.server.documents = Documents()
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
