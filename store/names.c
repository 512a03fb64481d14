/*
 * names.c - the words for the enums of include/store.h, as logs, metrics and the admin port show them.
 */
#include <assert.h>
#include "store.h"

const char *doubt_cause_name(enum doubt_cause cause)
{
    static const char *const names[DOUBT_COUNT] = {
        [DOUBT_CRASH] = "crash",   [DOUBT_NO_REPLY] = "no_reply", [DOUBT_TIMEOUT] = "timeout",
        [DOUBT_STATUS] = "status", [DOUBT_GUARD] = "guard",
    };
    assert((size_t)cause < DOUBT_COUNT);
    return names[cause];
}

const char *event_kind_name(enum event_kind kind)
{
    static const char *const names[EVENT_KIND_COUNT] = {
        [EVENT_CREATED] = "ledger.created",
        [EVENT_RECOVERED] = "ledger.recovered",
        [EVENT_IN_DOUBT] = "record.in_doubt",
        [EVENT_RESOLVED] = "record.resolved",
        [EVENT_CONFLICT] = "record.conflict",
        [EVENT_DECIDED] = "record.decided",
        [EVENT_FIRST_SIGHT] = "partition.first_sight",
        [EVENT_FORGOTTEN] = "partition.forgotten",
        [EVENT_ADMIN] = "admin.action",
        [EVENT_DISK_ERROR] = "ledger.error",
        [EVENT_JUMP] = "partition.jump",
        [EVENT_REWIND] = "partition.rewind",
        [EVENT_REPLAY_OPENED] = "replay.opened",
        [EVENT_REPLAY_CLOSED] = "replay.closed",
        [EVENT_BACKUP] = "ledger.backup",
    };
    assert((size_t)kind < EVENT_KIND_COUNT);
    return names[kind];
}

const char *record_state_name(enum record_state state)
{
    static const char *const names[] = {
        [RECORD_ABSENT] = "absent",     [RECORD_IN_FLIGHT] = "in_flight",       [RECORD_APPLIED] = "applied",
        [RECORD_IN_DOUBT] = "in_doubt", [RECORD_BELOW_WINDOW] = "below_window",
    };
    assert((size_t)state < sizeof names / sizeof names[0]);
    return names[state];
}
