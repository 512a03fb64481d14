/*
 * acks.c - see acks.h.
 *
 * Entries stand in a hash table by (channel, id) and in a list by age; as all wait equally long, the oldest expires
 * first.
 */
#include "acks.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <xxhash.h>

/* A poll for an own id must find it whatever the target counts: a signed 64-bit number is all that the connector can
 * read, and the upper half of the positive ones is out of reach for a counter. */
static const uint64_t OWN_FLOOR = UINT64_C(1) << 62;

enum { BUCKETS_MIN = 64, BUCKETS_MAX = 1 << 16 };

struct acks {
    pthread_mutex_t lock;
    uint64_t timeout_ns;
    uint64_t own_first;          /* ids of our own: from here */
    uint64_t own_next;           /* up to, not including; guarded by lock */
    size_t open_max, open_count; /* open_count guarded by lock */
    struct ack *oldest, *newest; /* guarded by lock */
    size_t bucket_count;         /* a power of two */
    struct ack **buckets;        /* owned; chains guarded by lock */
};

struct acks *acks_new(size_t open_max, uint64_t timeout_ns, uint64_t random)
{
    struct acks *acks = calloc(1, sizeof *acks);
    size_t bucket_count = BUCKETS_MIN;
    while (bucket_count < open_max && bucket_count < BUCKETS_MAX)
        bucket_count *= 2;
    struct ack **buckets = calloc(bucket_count, sizeof(struct ack *));
    if (acks == NULL || buckets == NULL || pthread_mutex_init(&acks->lock, NULL) != 0) {
        free(buckets);
        free(acks);
        return NULL;
    }
    acks->timeout_ns = timeout_ns;
    acks->open_max = open_max;
    acks->bucket_count = bucket_count;
    acks->buckets = buckets;
    /* The upper half is left to count in: it cannot be used up. */
    acks->own_first = acks->own_next = OWN_FLOOR + (random & (OWN_FLOOR / 2 - 1));
    return acks;
}

void acks_free(struct acks *acks)
{
    if (acks == NULL)
        return;
    for (struct ack *ack = acks->oldest; ack != NULL;) {
        struct ack *newer = ack->newer;
        ack_free(ack);
        ack = newer;
    }
    pthread_mutex_destroy(&acks->lock);
    free(acks->buckets);
    free(acks);
}

/* ---- entries ------------------------------------------------------------------------------------------------- */

static size_t topic_bytes_of(const struct record records[], size_t record_count)
{
    size_t byte_count = 0;
    for (size_t i = 0; i < record_count; i++)
        byte_count += records[i].key.topic.byte_count;
    return byte_count;
}

/* An entry and all that it points to, in one piece: records, verdicts, outcomes, topics, channel. */
static struct ack *ack_new(struct slice channel, const struct record records[], const enum verdict verdicts[],
                           size_t record_count)
{
    size_t cell_bytes = sizeof *records + sizeof *verdicts + sizeof(enum outcome);
    size_t text_bytes = topic_bytes_of(records, record_count) + channel.byte_count;
    struct ack *ack = malloc(sizeof *ack + record_count * cell_bytes + text_bytes);
    if (ack == NULL)
        return NULL;
    struct record *copies = (struct record *)(void *)(ack + 1);
    enum verdict *verdict_copies = (enum verdict *)(void *)(copies + record_count);
    enum outcome *outcomes = (enum outcome *)(void *)(verdict_copies + record_count);
    char *text = (char *)(outcomes + record_count);
    *ack = (struct ack){
        .records = copies, .verdicts = verdict_copies, .outcomes = outcomes, .record_count = record_count
    };
    for (size_t i = 0; i < record_count; i++) {
        struct slice topic = records[i].key.topic;
        copies[i] = records[i];
        copies[i].key.topic = slice_of(text, topic.byte_count);
        verdict_copies[i] = verdicts[i];
        outcomes[i] = OUTCOME_UNKNOWN; /* the one that is never wrong */
        memcpy(text, topic.at, topic.byte_count);
        text += topic.byte_count;
    }
    if (channel.byte_count > 0)
        memcpy(text, channel.at, channel.byte_count);
    ack->channel = slice_of(text, channel.byte_count);
    return ack;
}

void ack_free(struct ack *ack)
{
    free(ack);
}

/* ---- table and list; all under the lock ---------------------------------------------------------------------- */

static struct ack **link_find(struct acks *acks, struct slice channel, int64_t ack_id)
{
    uint64_t hash =
        XXH3_64bits_withSeed(channel.byte_count > 0 ? channel.at : "", channel.byte_count, (uint64_t)ack_id);
    struct ack **link = &acks->buckets[hash & (acks->bucket_count - 1)];
    while (*link != NULL && ((*link)->ack_id != ack_id || !slice_equals((*link)->channel, channel)))
        link = &(*link)->chained;
    return link;
}

static struct ack *take_at(struct acks *acks, struct ack **link)
{
    struct ack *ack = *link;
    assert(acks->open_count > 0);
    *link = ack->chained;
    *(ack->older != NULL ? &ack->older->newer : &acks->oldest) = ack->newer;
    *(ack->newer != NULL ? &ack->newer->older : &acks->newest) = ack->older;
    ack->chained = ack->older = ack->newer = NULL;
    acks->open_count--;
    return ack;
}

static struct ack *take(struct acks *acks, struct ack *ack)
{
    struct ack **link = link_find(acks, ack->channel, ack->ack_id);
    assert(*link == ack);
    return take_at(acks, link);
}

static void put_at(struct acks *acks, struct ack **link, struct ack *ack)
{
    ack->chained = *link;
    *link = ack;
    ack->older = acks->newest;
    *(acks->newest != NULL ? &acks->newest->newer : &acks->oldest) = ack;
    acks->newest = ack;
    acks->open_count++;
}

static bool is_own(const struct acks *acks, int64_t ack_id)
{
    return ack_id >= 0 && (uint64_t)ack_id >= acks->own_first && (uint64_t)ack_id < acks->own_next;
}

/* ---- calls --------------------------------------------------------------------------------------------------- */

static enum acks_status open_locked(struct acks *acks, struct ack *ack, struct ack **ret_replaced)
{
    struct ack **link = link_find(acks, ack->channel, ack->ack_id);
    /* One that we have not made yet would be taken for ours later. */
    if (ack->ack_id >= 0 && (uint64_t)ack->ack_id >= acks->own_first)
        return ACKS_COLLIDES;
    if (*link == NULL && acks->open_count >= acks->open_max)
        return ACKS_FULL;
    if (*link != NULL)
        *ret_replaced = take_at(acks, link);
    put_at(acks, link, ack);
    return ACKS_OPENED;
}

enum acks_status acks_open(struct acks *acks, struct slice channel, int64_t ack_id, uint64_t claim_id,
                           const struct record records[], const enum verdict verdicts[], size_t record_count,
                           uint64_t now_ns, struct ack **ret_replaced)
{
    struct ack *ack = ack_new(channel, records, verdicts, record_count);
    *ret_replaced = NULL;
    if (ack == NULL)
        return ACKS_NO_MEMORY;
    ack->ack_id = ack_id;
    ack->claim_id = claim_id;
    ack->opened_ns = now_ns;
    pthread_mutex_lock(&acks->lock);
    enum acks_status status = open_locked(acks, ack, ret_replaced);
    pthread_mutex_unlock(&acks->lock);
    if (status != ACKS_OPENED)
        ack_free(ack);
    return status;
}

int64_t acks_make_id(struct acks *acks)
{
    pthread_mutex_lock(&acks->lock);
    int64_t id = (int64_t)acks->own_next++;
    pthread_mutex_unlock(&acks->lock);
    return id;
}

bool acks_is_own(struct acks *acks, int64_t ack_id)
{
    pthread_mutex_lock(&acks->lock);
    bool is_ours = is_own(acks, ack_id);
    pthread_mutex_unlock(&acks->lock);
    return is_ours;
}

struct ack *acks_take_done(struct acks *acks, struct slice channel, const int64_t ids[], const bool is_done[],
                           size_t id_count)
{
    struct ack *first = NULL, **last = &first;
    pthread_mutex_lock(&acks->lock);
    for (size_t i = 0; i < id_count; i++) {
        struct ack **link = is_done[i] ? link_find(acks, channel, ids[i]) : NULL;
        if (link == NULL || *link == NULL)
            continue;
        *last = take_at(acks, link);
        last = &(*last)->next;
    }
    pthread_mutex_unlock(&acks->lock);
    return first;
}

/* Clocks of several loops differ by less than anybody waits: an entry that is a little out of order expires with its
 * neighbour. */
static bool is_expired(const struct acks *acks, const struct ack *ack, uint64_t now_ns)
{
    return now_ns >= ack->opened_ns && now_ns - ack->opened_ns >= acks->timeout_ns;
}

struct ack *acks_take_expired(struct acks *acks, uint64_t now_ns)
{
    struct ack *first = NULL, **last = &first;
    pthread_mutex_lock(&acks->lock);
    while (acks->oldest != NULL && is_expired(acks, acks->oldest, now_ns)) {
        *last = take(acks, acks->oldest);
        last = &(*last)->next;
    }
    pthread_mutex_unlock(&acks->lock);
    return first;
}

size_t acks_open_count(struct acks *acks)
{
    pthread_mutex_lock(&acks->lock);
    size_t open_count = acks->open_count;
    pthread_mutex_unlock(&acks->lock);
    return open_count;
}

/* ---- channel ------------------------------------------------------------------------------------------------- */

struct slice acks_channel_of(const struct request *request)
{
    static const char name[] = "channel=";
    const struct http1_head *head = &request->head;
    const struct http1_field *field =
        http1_field_find(head->fields, head->field_count, "x-splunk-request-channel");
    if (field != NULL)
        return field->value;
    const char *at = head->query.at, *end = at + head->query.byte_count;
    while (head->query.byte_count > 0 && at < end) {
        const char *next = memchr(at, '&', (size_t)(end - at));
        const char *stop = next != NULL ? next : end;
        size_t name_bytes = sizeof name - 1;
        if ((size_t)(stop - at) >= name_bytes && memcmp(at, name, name_bytes) == 0)
            return slice_of(at + name_bytes, (size_t)(stop - at) - name_bytes);
        at = next != NULL ? next + 1 : end;
    }
    return slice_of("", 0);
}
