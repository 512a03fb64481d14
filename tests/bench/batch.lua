-- Batches of 500 records of 500 bytes, as a JSON array, with Kafka coordinates in the form of the InsertField transform.
--
--   wrk ... -s batch.lua URL -- TOPIC DISTINCT
--
-- Each thread of wrk writes to a partition of its own, offsets ascending.  DISTINCT 0: no offset twice; else so many
-- batches, over and over.  The pieces of a body are made once and joined with the offsets, which all have ten digits, so
-- that the load generator takes little of the machine.  Ends with one line of JSON.

local RECORDS, BYTES, FIRST = 500, 500, 1000000000
local thread_count = 0

function setup(thread)
    thread:set("partition", thread_count)
    thread_count = thread_count + 1
end

function init(args)
    distinct = tonumber(args[2])
    batch = -1
    local before = string.format('{"__topic":"%s","__partition":%d,"__offset":', args[1], partition)
    local behind = ',"text":"' .. string.rep("x", BYTES - #before - #',"text":""}' - 10) .. '"}'
    pieces = { "[" .. before }
    for number = 1, RECORDS do
        pieces[2 * number + 1] = behind .. (number < RECORDS and "," .. before or "]")
    end
    head = string.format("POST /ingest HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
        RECORDS * BYTES + RECORDS + 1)
    pieces[1] = head .. pieces[1]
end

function request()
    batch = batch + 1
    if distinct > 0 and batch == distinct then
        batch = 0
    end
    local offset = FIRST + batch * RECORDS
    for number = 1, RECORDS do
        pieces[2 * number] = string.format("%d", offset + number - 1)
    end
    return table.concat(pieces)
end

function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format('{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"not_2xx":%d,"broken":%d}\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
        errors.connect + errors.read + errors.write + errors.timeout))
end
