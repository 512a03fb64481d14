/*
 * machine_state.h - what the claim machine holds in memory; for its own files only.
 *
 * On disk (rows) is the truth; here is what makes a verdict cheap: the partitions, the records that are open, the
 * chunks that the last batches touched, and the claims that wait.
 *
 * Who owns what: the machine owns partitions and waiters; a partition owns its open ranges and its conflict.
 */
#ifndef SINKONCE_STORE_MACHINE_STATE_H
#define SINKONCE_STORE_MACHINE_STATE_H

#include "chunk.h"
#include "machine.h"

enum { CHUNK_SLOTS = 128, MARK_SLOTS = 64, EVENTS_MAX = 1000, ENDED_DOUBTS = 1024 };

/* Neighbouring offsets that one claim took, or that are in doubt for the same reason. */
struct open_range {
    struct partition *partition; /* borrowed: the owner */
    int64_t first;
    struct open_row row;                            /* as on disk */
    record_mark *marks;                             /* owned; one per offset; NULL: none known */
    struct open_range *previous_doubt, *next_doubt; /* borrowed: the machine's list of those in doubt */
    size_t waiter_count;
};

struct open_set {
    struct open_range **at; /* owned, ascending by first; they never overlap */
    size_t count, room;
};

struct partition {
    char topic[TOPIC_BYTES_MAX + 1];
    size_t topic_bytes;
    int32_t number;
    struct part_row row; /* as on disk, or newer while is_dirty */
    struct open_set opens;
    struct conflict_row *conflict; /* owned; NULL: none undecided */
    struct replay *replay; /* borrowed: this is only the set of what it has sent again; NULL: a partition */
    size_t replay_count;   /* windows over it */
    bool is_over;          /* has left: only the list by name still holds it, until it is swept */
    bool is_dirty;
    struct partition *next_dirty;     /* borrowed */
    struct partition *next_in_bucket; /* borrowed */
};

/* A chunk as on disk, or newer while is_dirty. */
struct chunk_slot {
    uint32_t pid; /* 0: the slot is empty */
    uint64_t number;
    bool is_dirty;
    bool is_stored; /* there is a row */
    struct chunk chunk;
};

/* A block of marks that the batch has changed; its row is written when the batch ends. */
struct mark_slot {
    uint32_t pid; /* 0: the slot is empty */
    uint64_t block;
    bool is_sampled; /* the chunk that it lies in has its sample */
    char marks[MARK_BLOCK_BYTES];
};

/* A window in which applied records may be sent again. */
struct replay {
    struct replay_row row;
    struct partition *partition; /* borrowed */
    uint64_t end_ms;             /* its time is over then, too, on the mono_ms clock; 0: not worked out yet */
    struct partition sent;       /* an applied set of its own: what has been sent again; in no bucket */
    struct replay *next;         /* ascending by id */
};

/* Where a doubt was that is over, for whoever still asks by its id. */
struct ended_doubt {
    uint64_t id;
    struct partition *partition; /* borrowed */
    int64_t first;
};

/* Where a waiter's claim begins in one of its partitions. */
struct waiter_lane {
    const struct record_key *key; /* borrowed from the claim: the first of that partition in it */
    int64_t lowest;
};

enum { WAITER_LANES_MAX = 16 };

struct waiter {
    struct claim *claim; /* lent to us until it is answered */
    uint64_t deadline_ms;
    struct open_range *range; /* borrowed: what it waits for; NULL and not behind: to be judged again */
    bool is_behind;           /* free, but an earlier waiter comes first in one of its partitions */
    bool is_wide;             /* more partitions than lanes: it comes first in all */
    size_t lane_count;
    struct waiter_lane lanes[WAITER_LANES_MAX];
    struct waiter *previous, *next;
};

struct machine {
    struct machine_settings settings;
    struct machine_answers answers;
    uint64_t boot, next_claim_number;

    struct rows *rows; /* borrowed between begin and end */
    struct machine_time now;
    enum machine_mode mode;

    struct counters_row counters;
    bool is_counters_dirty;
    struct partition **buckets; /* owned */
    size_t bucket_count, partition_count;
    struct partition **by_name; /* owned: these and those that are over; the first sorted_count in order */
    size_t by_name_room, listed_count, sorted_count;
    struct partition *dirty_partitions;
    struct chunk_slot *slots;     /* owned: CHUNK_SLOTS */
    struct mark_slot *mark_slots; /* owned: MARK_SLOTS; all empty between batches */
    uint8_t *reply_bytes;         /* owned: room to form a reply row */
    struct open_range *doubts;
    bool is_oldest_stale;
    struct ended_doubt *ended; /* owned: ENDED_DOUBTS, by id */
    struct replay *replays;    /* owned */

    struct waiter *first_waiter, *last_waiter; /* owned, in the order of arrival */
    size_t waiter_count, woken_count;
    bool is_room_short; /* of the batch */

    struct machine_figures figures, kept_figures; /* kept: those of the last commit */
};

static inline int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many records from INDEX on are neighbours in ascending order, at most COUNT - INDEX. */
static inline size_t records_stretch(const struct record records[], size_t count, size_t index)
{
    const struct record_key *first = &records[index].key;
    size_t length = 1;
    while (index + length < count) {
        const struct record_key *key = &records[index + length].key;
        if (key->partition != first->partition || key->offset - first->offset != (int64_t)length ||
            !slice_equals(key->topic, first->topic))
            break;
        length++;
    }
    return length;
}

#endif
