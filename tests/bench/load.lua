-- Writes of one record each, 500 bytes, with Kafka coordinates in the form of the InsertField transform.
--
--   wrk ... -s load.lua URL -- TOPIC DISTINCT
--
-- Each thread of wrk writes to a partition of its own, offsets ascending from 0.  DISTINCT 0: no offset twice;
-- else so many offsets, over and over.  Ends with one line of JSON.

local thread_count = 0

function setup(thread)
    thread:set("partition", thread_count)
    thread_count = thread_count + 1
end

function init(args)
    topic = args[1]
    distinct = tonumber(args[2])
    offset = -1
    head = "POST /ingest HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
    local shortest = string.format('{"__topic":"%s","__partition":%d,"__offset":,"text":""}', topic, partition)
    before = string.format('{"__topic":"%s","__partition":%d,"__offset":', topic, partition)
    room = 500 - #shortest
    padding = string.rep("x", room)
end

function request()
    offset = offset + 1
    if distinct > 0 and offset == distinct then
        offset = 0
    end
    local digits = string.format("%d", offset)
    return head .. before .. digits .. ',"text":"' .. string.sub(padding, 1, room - #digits) .. '"}'
end

function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format('{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"not_2xx":%d,"broken":%d}\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
        errors.connect + errors.read + errors.write + errors.timeout))
end
