/*
 * finish.h - every way in which an exchange ends: the single source of log words, answers and labels.
 *
 * FINISH(NAME, label, status, outcome, words)
 *   label    in logs, metrics and the body's "error"
 *   status   to answer with; 0: the target's own
 *   outcome  Sinkonce-Outcome of the answer; NULL: no such field
 */
#ifndef FINISH
#define FINISH(NAME, label, status, outcome, words)
#endif

FINISH(FORWARDED, "forwarded", 0, NULL, "the target answered")
FINISH(APPLIED, "applied", 0, "applied", "the target applied it; the ledger says so")
FINISH(PARTIAL, "partial", 0, "partial", "the target answered for those it did not have; the others were dropped")
FINISH(REJECTED, "rejected", 0, "refused", "the target refused it without effect")
FINISH(REDIRECTED, "redirected", 503, "refused", "the target did not apply it, and answered with a status (2xx, 3xx) that connectors may count as delivered")
FINISH(DUPLICATE, "duplicate", 0, "duplicate", "the target has it already; nothing was sent")
FINISH(UNKEYED, "unkeyed", 0, "unkeyed", "no coordinates; forwarded untouched")
FINISH(UNKEYED_REFUSED, "unkeyed-refused", 422, "unkeyed", "no coordinates of a Kafka record were found and SINKONCE_UNKEYED=reject")
FINISH(IN_DOUBT, "in-doubt", 503, "in-doubt", "nobody can know whether the target applied it; see /in-doubt of the admin port")
FINISH(IN_FLIGHT, "in-flight", 503, "busy", "another delivery of the same record is still running")
FINISH(CONFLICT, "conflict", 503, "conflict", "another record stands at these coordinates; the partition waits for a decision")
FINISH(CONTRADICTION, "contradiction", 503, "conflict", "different elements of this request carry the same coordinates, and leaving one out could lose it; nothing was sent.  See SINKONCE_IDENTITY")
FINISH(BUSY, "busy", 503, "busy", "too many requests in flight, or bodies that are too large together; see SINKONCE_MAX_IN_FLIGHT and SINKONCE_MAX_BODIES")
FINISH(DOUBTS_FULL, "too-many-in-doubt", 503, "busy", "more records in doubt than SINKONCE_IN_DOUBT_MAX")
FINISH(PARTITIONS_FULL, "too-many-partitions", 503, "refused", "with these records the ledger would hold more partitions than SINKONCE_MAX_PARTITIONS; nothing was sent")
FINISH(NOT_SENT, "target-unreachable", 503, "refused", "the target could not be reached; nothing was sent")
FINISH(TARGET_BUSY, "target-busy", 503, "busy", "no connection to the target became free in time; nothing was sent")
FINISH(LEDGER_FULL, "ledger-full", 503, "refused", "the ledger is full; nothing was sent")
FINISH(LEDGER_FAILED, "ledger-failed", 503, "refused", "the ledger cannot be trusted; nothing was sent, or the result is not on disk yet")
FINISH(BAD_ANSWER, "bad-answer", 502, NULL, "the target's answer cannot be passed on")
FINISH(TARGET_LOST, "target-lost", 503, NULL, "the target did not answer in full")
FINISH(DRAINING, "draining", 503, "busy", "shutting down")
FINISH(TOO_MANY_RECORDS, "too-many-records", 413, "refused", "more records than SINKONCE_MAX_RECORDS; nothing was sent")
FINISH(UNCUTTABLE, "signed", 503, "refused", "some records of this request are applied and the rest is not, or has no coordinates; it is signed or opaque and cannot be cut, so nothing was sent.  The connector gets past it with one record a request")
FINISH(LOOP, "loop", 508, NULL, "the request has passed through here before")
FINISH(OPTIONS, "options", 200, NULL, "answered here: Max-Forwards is 0")
FINISH(NO_MEMORY, "no-memory", 503, "refused", "out of memory; nothing was sent")

/* before the exchange: the connection answers and closes */
FINISH(BAD_REQUEST, "bad-request", 400, NULL, "not a valid HTTP/1.1 request")
FINISH(UNAUTHORIZED, "unauthorized", 401, "refused", "send Authorization: Bearer with a value of SINKONCE_CLIENT_TOKEN")
FINISH(REQUEST_TIMEOUT, "request-timeout", 408, NULL, "the request was not whole in time")
FINISH(BODY_TOO_LARGE, "body-too-large", 413, NULL, "the body, or what it opens to, is larger than SINKONCE_MAX_BODY")
FINISH(URI_TOO_LONG, "uri-too-long", 414, NULL, "the request target is longer than 8 KiB")
FINISH(EXPECTATION, "expectation", 417, NULL, "only 100-continue is understood")
FINISH(HEAD_TOO_LARGE, "head-too-large", 431, NULL, "the head is larger than SINKONCE_MAX_HEAD or has more than 100 fields")
FINISH(METHOD_UNKNOWN, "method-unknown", 501, NULL, "the method is not implemented")
FINISH(METHOD_REFUSED, "method-refused", 405, NULL, "CONNECT and TRACE are not allowed")
FINISH(CODING_UNKNOWN, "coding-unknown", 501, NULL, "the transfer coding is not implemented")
FINISH(VERSION_UNKNOWN, "version-unknown", 505, NULL, "only HTTP/1.0 and HTTP/1.1 are spoken")
FINISH(TOO_MANY_CONNECTIONS, "too-many-connections", 503, "busy", "more connections than SINKONCE_MAX_CONNECTIONS")

#undef FINISH
