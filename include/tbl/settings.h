/*
 * settings.h - every setting: the single source of the parser, the print-outs, conf/sinkonce.env and the README.
 *
 * SETTING(VARIABLE, field, type, default, low, high, words)
 *   VARIABLE  without the prefix SINKONCE_
 *   type      names type_TYPE (proxy/settings_parse.c) and FIELD_TYPE (include/settings.h)
 *   low, high bounds of numbers, bytes and milliseconds, for texts of their length
 *   default   NULL: required; "": none
 * GROUP(words) starts a group in every print-out.
 */
#ifndef GROUP
#define GROUP(words)
#endif
#ifndef SETTING
#define SETTING(VARIABLE, field, type, default_text, low, high, words)
#endif

GROUP("Core")
SETTING(TARGET, target, url, NULL, 8, 2048, "base URL of the target, http:// or https://; path and query of the request are appended to it")
SETTING(LISTEN, listen, address, "127.0.0.1:8650", 1, 255, "address for connectors: HOST:PORT or unix:/path")
SETTING(ADMIN_LISTEN, admin_listen, address, "127.0.0.1:8651", 1, 255, "address for health, metrics and the admin API")
SETTING(DATA_DIR, data_dir, text, "/var/lib/sinkonce", 1, 1024, "folder of the ledger")
SETTING(LEDGER, ledger, ledger_kind, "lmdb", 0, 0, "which ledger: lmdb")
SETTING(SCOPE, scope, scope, "default", 1, 128, "first part of every key; stored in the ledger, another value on the same ledger is refused at start")
SETTING(MODE, mode, mode, "enforce", 0, 0, "enforce; observe: forward everything, count what would have been dropped; off: plain proxy")
SETTING(WORKERS, workers, workers, "auto", 1, 64, "event-loop threads; auto: number of cores, at most 8")

GROUP("Where the coordinates are")
SETTING(SHAPE, shape, shape, "auto", 0, 0, "how records lie in a request: auto, single, json-array, ndjson, bulk, concat, separated, envelope, opaque")
SETTING(TOPIC, topic, locators, "", 0, 2048, "where the topic is: header:NAME, json:/POINTER, query:NAME, const:VALUE, tried in order, separated by commas")
SETTING(PARTITION, partition, locators, "", 0, 2048, "where the partition is")
SETTING(OFFSET, offset, locators, "", 0, 2048, "where the offset is")
SETTING(TIMESTAMP, timestamp, locators, "", 0, 2048, "where the record's Kafka timestamp is, in milliseconds")
SETTING(ID, id, locator, "", 0, 512, "one composite value: header:NAME, json:/POINTER, query:NAME, path, or bulk-id: the _id of a bulk action")
SETTING(ID_FORMAT, id_format, id_format, "", 0, 512, "its format, for example {topic}+{partition}+{offset}")
SETTING(ENVELOPE, envelope, pointer, "", 0, 512, "pointer of the array inside an envelope, for example /entries")
SETTING(SEPARATOR, separator, escaped, "\\n", 1, 64, "what stands between records of shape separated; \\n, \\r, \\t and \\\\ are escapes")
SETTING(PREFIX, prefix, escaped, "", 0, 4096, "what stands before the first record of shape separated")
SETTING(SUFFIX, suffix, escaped, "", 0, 4096, "what stands behind the last record of shape separated")
SETTING(STRIP, is_stripped, onoff, "off", 0, 0, "cut the coordinate fields and headers out before sending on")
SETTING(SPLIT, split, split, "off", 0, 0, "off, or record: each record of a batch is sent alone, for targets that take one at a time")
SETTING(SPLIT_PARALLEL, split_parallel, count, "8", 1, 256, "parts of one split request that are on their way at once; those of one partition keep their order")
SETTING(UNKEYED, is_unkeyed_rejected, unkeyed, "forward", 0, 0, "forward or reject (422) writes in which no coordinates were found")

GROUP("What the target's answer means, and doubt")
SETTING(APPLIED_STATUS, applied_status, statuses, "200-299", 0, 0, "statuses that prove that the record was applied")
SETTING(NOT_APPLIED_STATUS, not_applied_status, statuses, "300-499,501,503,505", 0, 0, "statuses that prove that it was not; the rest is unknown.  A status set in one of the two lists leaves the default of the other")
SETTING(IN_DOUBT, in_doubt, doubt_policy, "hold", 0, 0, "what happens to a record in doubt: hold, probe, retry, assume-applied")
SETTING(IN_DOUBT_MAX, in_doubt_max, count, "10000", 1, 100000000, "above so many records in doubt new writes get 503")
SETTING(PROBE_URL, probe_url, probe_url, "", 0, 2048, "for IN_DOUBT=probe: where the target can be asked for a record, with {topic} {partition} {offset} {scope} {json:/pointer}; a URL, or a path at the target")
SETTING(PROBE_METHOD, probe_method, probe_method, "GET", 0, 0, "GET, HEAD or POST (without a body)")
SETTING(PROBE_DELAY, probe_delay_ms, duration, "5s", 0, 86400000, "how long a record is in doubt before the first probe: what was on its way must have arrived")
SETTING(PROBE_TIMEOUT, probe_timeout_ms, duration, "5s", 1, 600000, "time for one probe")
SETTING(PROBE_APPLIED, probe_applied, probe_rule, "status:200", 8, 1024, "the answer that proves that the record was applied: status:LIST, json:/POINTER (there, and not empty, false, 0 or null) or no-json:/POINTER, the latter two of a 2xx answer only")
SETTING(PROBE_ABSENT, probe_absent, probe_rule, "status:404", 8, 1024, "the answer that proves that it was not")
SETTING(PROBE_AUTHORIZATION, probe_authorization, credentials, "", 0, 8192, "Authorization of the probes, which never carry the connector's")
SETTING(KEY_HEADER, key_header, header_name, "", 0, 128, "send scope/topic/partition/offset to the target in this header")
SETTING(IDENTITY, identity, identity, "auto", 0, 0, "identity marks: auto, timestamp, body, off")
SETTING(MARKS, marks, count, "65536", 0, 16777216, "offsets per partition for which identity marks are kept")
SETTING(WINDOW, window, count, "10000000", 65536, 1000000000000, "offsets below the highest applied one in which gaps are kept exactly")
SETTING(FIRST_SIGHT, is_first_sight_held, first_sight, "accept", 0, 0, "accept or hold a partition first seen at an offset above 0")
SETTING(WAIT, wait_ms, duration, "2s", 0, 600000, "how long a request waits for a flight or a doubt")
SETTING(RETRY_AFTER, retry_after_ms, duration, "1s", 0, 3600000, "Retry-After of our own 503, rounded up to seconds")
SETTING(ACK_TIMEOUT, ack_timeout_ms, duration, "300s", 1000, 86400000, "how long a batch that Splunk has received waits for its acknowledgement")
SETTING(DUPLICATE_STATUS, duplicate_status, status, "200", 200, 299, "status for a dropped record whose answer is not kept")
SETTING(REPLY_BYTES, reply_bytes, size, "4KiB", 0, 65536, "how much of an answer's body is kept")
SETTING(REPLIES, replies, count, "100000", 0, 100000000, "how many answers are kept")

GROUP("Target connection")
SETTING(CONNECT_TIMEOUT, connect_timeout_ms, duration, "5s", 1, 300000, "time for DNS, connect and TLS")
SETTING(TARGET_TIMEOUT, target_timeout_ms, duration, "120s", 1, 86400000, "time for the whole exchange with the target")
SETTING(TARGET_CONNECTIONS, target_connections, count, "64", 1, 4096, "connections to the target at most")
SETTING(TARGET_IDLE, target_idle_ms, duration, "2s", 0, 3600000, "an idle connection is not used again after this time; 0: never reuse")
SETTING(CONNECT_RETRIES, connect_retries, count, "1", 0, 100, "how often a request of which nothing was sent is tried again")
SETTING(HOST_HEADER, host_header, host_header, "target", 1, 255, "Host towards the target: target, preserve, or a value")
SETTING(VIA, is_via_added, onoff, "on", 0, 0, "add Via to forwarded requests (RFC 9110 7.6.3) and refuse loops")
SETTING(TARGET_CA_FILE, target_ca_file, path, "", 0, 1024, "certificates that may have signed the target's")
SETTING(TARGET_CERT_FILE, target_cert_file, path, "", 0, 1024, "our client certificate")
SETTING(TARGET_KEY_FILE, target_key_file, path, "", 0, 1024, "its key")
SETTING(TARGET_KEY_PASSWORD, target_key_password, secret, "", 0, 4096, "the key's password")
SETTING(TARGET_VERIFY, is_target_verified, onoff, "on", 0, 0, "off: accept any certificate of the target (loud)")
SETTING(TARGET_PROXY, target_proxy, proxy_url, "", 0, 2048, "HTTP proxy towards the target, http://HOST:PORT; http_proxy and friends are never obeyed")
SETTING(AUTHORIZATION, authorization, credentials, "", 0, 8192, "replaces the connector's Authorization")

GROUP("Limits")
SETTING(MAX_BODY, body_bytes_max, size, "16MiB", 1, 1073741824, "request body; above it 413")
SETTING(MAX_RESPONSE, response_bytes_max, size, "16MiB", 1024, 1073741824, "the target's answer; above it 502")
SETTING(MAX_HEAD, head_bytes_max, size, "64KiB", 1024, 1048576, "request line and fields; above it 431")
SETTING(MAX_RECORDS, records_max, count, "100000", 1, 1000000, "records per request; above it 413")
SETTING(MAX_CONNECTIONS, connections_max, count, "1024", 1, 100000, "connections of connectors")
SETTING(MAX_IN_FLIGHT, in_flight_max, count, "512", 1, 100000, "requests that are not answered yet; above it 503")
SETTING(MAX_BODIES, all_body_bytes_max, size, "256MiB", 1048576, 1099511627776, "memory for request bodies, all connections together; above it 503")
SETTING(HEAD_TIMEOUT, head_timeout_ms, duration, "10s", 1, 3600000, "absolute time for a request's head")
SETTING(BODY_TIMEOUT, body_timeout_ms, duration, "60s", 1, 3600000, "absolute time for its body")
SETTING(IDLE_TIMEOUT, idle_timeout_ms, duration, "300s", 1, 86400000, "an idle connection of a connector is closed after this time")

GROUP("Ledger")
SETTING(LEDGER_MAX, ledger_bytes_max, size, "4GiB", 1048576, 17592186044416, "disk that the ledger may use; claims stop at 85 % of it")
SETTING(LEDGER_MISSING, is_ledger_missing_refused, ledger_missing, "create", 0, 0, "create or refuse: an empty folder is an error (a lost volume)")
SETTING(COMMIT_DELAY, commit_delay_ms, duration, "0", 0, 1000, "how long a commit waits for company; with 0 it takes what is queued")

GROUP("Life")
SETTING(DRAIN_DELAY, drain_delay_ms, duration, "0", 0, 600000, "after SIGTERM: not ready, but still accepting, for this long")
SETTING(DRAIN_TIMEOUT, drain_timeout_ms, duration, "20s", 0, 3600000, "then finish what is in flight for at most this long")
SETTING(LOG_LEVEL, log_level, log_level, "info", 0, 0, "error, warn, info, debug")
SETTING(LOG_FORMAT, log_format, log_format, "auto", 0, 0, "json, text, or auto: text on a terminal")
SETTING(ACCESS_LOG, access_log, access_log, "off", 0, 512, "off, all, or a list of outcomes")
SETTING(METRICS_PARTITIONS, has_partition_metrics, onoff, "off", 0, 0, "on: gauges of each partition, in /metrics")
SETTING(ADMIN_TOKEN, admin_token, token, "", 0, 4096, "bearer token for changes from beyond loopback")

#undef GROUP
#undef SETTING
