/*
 * counters.h - every counter, gauge and histogram of the program: the single source.
 *
 * COUNTER(NAME, metric without the prefix sinkonce_, labels or "", words for HELP)
 * TOPIC_COUNTER(NAME, metric, words): told apart by topic; these come first
 * GAUGE(NAME, metric, how many of what is counted inside make one of what is exported, words)
 * HISTOGRAM(NAME, metric, unit: seconds or records (metrics.c), words)
 * Rows of one metric stand together; all are exported from the start with 0.
 */
#ifndef COUNTER
#define COUNTER(NAME, metric, labels, words)
#endif
#ifndef TOPIC_COUNTER
#define TOPIC_COUNTER(NAME, metric, words) COUNTER(NAME, metric, "", words)
#endif
#ifndef GAUGE
#define GAUGE(NAME, metric, per_unit, words)
#endif
#ifndef HISTOGRAM
#define HISTOGRAM(NAME, metric, unit, words)
#endif

/* Records: the first is the sum of all that follow up to RECORDS_IN_DOUBT (a test adds them up). */
TOPIC_COUNTER(RECORDS, "records_total", "Records taken in, however they ended.")
TOPIC_COUNTER(RECORDS_APPLIED, "applied_records_total", "Records that the target applied.")
TOPIC_COUNTER(RECORDS_DUPLICATE, "duplicate_records_total", "Records dropped because the target has them.")
TOPIC_COUNTER(RECORDS_REJECTED, "rejected_records_total", "Records that the target refused without effect.")
TOPIC_COUNTER(RECORDS_NOT_SENT, "not_sent_records_total", "Records of which no byte left: target down, or ledger refusing.")
TOPIC_COUNTER(RECORDS_BUSY, "busy_records_total", "Records answered 503 because another delivery of them, or a doubt, was unsettled.")
TOPIC_COUNTER(RECORDS_CONFLICT, "conflict_records_total", "Records answered 503 because other records stand at their coordinates.")
TOPIC_COUNTER(RECORDS_UNKEYED, "unkeyed_records_total", "Writes without coordinates, forwarded or refused.")
TOPIC_COUNTER(RECORDS_IN_DOUBT, "entered_in_doubt_records_total", "Records whose outcome nobody could know when their exchange ended.")
TOPIC_COUNTER(RECORDS_RETRIED, "retried_records_total", "Doubts sent again by the policy retry: possible duplicates.")
TOPIC_COUNTER(RECORDS_REPLAYED, "replayed_records_total", "Applied records sent again under a replay window.")
TOPIC_COUNTER(RECORDS_WOULD_DROP, "would_drop_records_total", "Records that mode enforce would have dropped.")

COUNTER(BATCHES_REWRITTEN, "batches_rewritten_total", "", "Requests from which applied records were cut before they were sent on.")

COUNTER(REFUSED_HTTP, "http_refused_total", "reason=\"malformed\"", "Requests refused before they reached the exchange.")
COUNTER(REFUSED_TOO_LARGE, "http_refused_total", "reason=\"too_large\"", "")
COUNTER(REFUSED_CONNECTIONS, "http_refused_total", "reason=\"connections\"", "")
COUNTER(REFUSED_IN_FLIGHT, "http_refused_total", "reason=\"in_flight\"", "")
COUNTER(REFUSED_TIMEOUT, "http_refused_total", "reason=\"timeout\"", "")
COUNTER(REFUSED_UNKEYED, "http_refused_total", "reason=\"unkeyed\"", "")
COUNTER(REFUSED_PARTITIONS, "http_refused_total", "reason=\"partitions\"", "")
COUNTER(REFUSED_UNCUTTABLE, "http_refused_total", "reason=\"signed\"", "")
COUNTER(REFUSED_DRAINING, "http_refused_total", "reason=\"draining\"", "")
COUNTER(REFUSED_UNAUTHORIZED, "http_refused_total", "reason=\"unauthorized\"", "")

COUNTER(TLS_FAILED_TIMEOUT, "tls_handshake_failures_total", "reason=\"timeout\"", "TLS handshakes that failed on our ports.")
COUNTER(TLS_FAILED_CLOSED, "tls_handshake_failures_total", "reason=\"closed\"", "")
COUNTER(TLS_FAILED_PLAIN, "tls_handshake_failures_total", "reason=\"not_tls\"", "")
COUNTER(TLS_FAILED_CLIENT_CERTIFICATE, "tls_handshake_failures_total", "reason=\"client_certificate\"", "")
COUNTER(TLS_FAILED_OUR_CERTIFICATE, "tls_handshake_failures_total", "reason=\"our_certificate_refused\"", "")
COUNTER(TLS_FAILED_OTHER, "tls_handshake_failures_total", "reason=\"other\"", "")

COUNTER(RELOADS_DONE, "reloads_total", "result=\"done\"", "SIGHUPs: secrets and certificates read again, or kept because a file is wrong.")
COUNTER(RELOADS_REFUSED, "reloads_total", "result=\"refused\"", "")

COUNTER(ABORTS_READING, "client_aborts_total", "phase=\"reading\"", "Connectors that left before their answer.")
COUNTER(ABORTS_WAITING, "client_aborts_total", "phase=\"waiting\"", "")
COUNTER(ABORTS_WRITING, "client_aborts_total", "phase=\"writing\"", "")

COUNTER(TARGET_ATTEMPTS, "target_attempts_total", "", "Requests handed to the target's connection, probes included.")
COUNTER(TARGET_CONNECTS, "target_connects_total", "", "Connections opened to the target.")
COUNTER(TARGET_ERROR_CONNECT, "target_errors_total", "cause=\"connect\"", "Attempts that ended without a whole answer.")
COUNTER(TARGET_ERROR_DNS, "target_errors_total", "cause=\"dns\"", "")
COUNTER(TARGET_ERROR_TLS, "target_errors_total", "cause=\"tls\"", "")
COUNTER(TARGET_ERROR_TIMEOUT, "target_errors_total", "cause=\"timeout\"", "")
COUNTER(TARGET_ERROR_CLOSED, "target_errors_total", "cause=\"closed\"", "")
COUNTER(TARGET_ERROR_GUARD, "target_errors_total", "cause=\"second_send_stopped\"", "")
COUNTER(TARGET_ERROR_PROTOCOL, "target_errors_total", "cause=\"protocol\"", "")
COUNTER(TARGET_ERROR_QUEUE, "target_errors_total", "cause=\"queue\"", "")

COUNTER(PROBES_APPLIED, "probes_total", "result=\"applied\"", "Questions to the target about records in doubt.")
COUNTER(PROBES_ABSENT, "probes_total", "result=\"not_applied\"", "")
COUNTER(PROBES_UNCLEAR, "probes_total", "result=\"unclear\"", "")
COUNTER(PROBES_FAILED, "probes_total", "result=\"failed\"", "")
COUNTER(PROBES_NO_VALUE, "probes_total", "result=\"no_value\"", "")

GAUGE(PROBES_FAILING, "probes_failing", 1, "1 while the last three probes got no clear answer.")
GAUGE(REQUESTS_IN_FLIGHT, "http_requests_in_flight", 1, "Requests that are not answered yet.")
GAUGE(CONNECTIONS, "http_connections", 1, "Open connections of connectors.")
GAUGE(BODY_BYTES, "http_body_bytes", 1, "Memory for the bodies of requests that are here, whole or not, the lists of their records, and answers not read yet.")
GAUGE(TARGET_IN_FLIGHT, "target_requests_in_flight", 1, "Requests that the target has not answered yet.")
GAUGE(TARGET_UNVERIFIED, "target_unverified", 1, "1 while the target is spoken to by TLS and its certificate is not checked.")
GAUGE(TARGET_LAST_SUCCESS_MS, "target_last_success_timestamp_seconds", 1000, "Unix time of the last 2xx of the target; 0: none since the start.")

HISTOGRAM(REQUEST_DURATION, "http_request_duration_seconds", seconds, "From the whole request to the whole answer.")
HISTOGRAM(OVERHEAD_DURATION, "overhead_duration_seconds", seconds, "The same without the target's time.")
HISTOGRAM(TARGET_DURATION, "target_duration_seconds", seconds, "From handing a request to the target's connection to its outcome.")
HISTOGRAM(BATCH_RECORDS, "batch_records", records, "Records per request that carried coordinates.")
HISTOGRAM(EVENT_LOOP_LAG, "event_loop_lag_seconds", seconds, "How late the periodic tick of a loop came.")

#undef TOPIC_COUNTER
#undef COUNTER
#undef GAUGE
#undef HISTOGRAM
