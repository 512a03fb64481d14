/*
 * fake_store.c - include/store.h in memory, record by record, on one thread.
 *
 * It decides when posted and answers from store_port_deliver(), as the real one seems to do from outside.  Nothing is
 * durable, and a search looks through everything; what it promises is held to the contract suite.
 * The port's fd is a timer: due at once when something is finished, else when a waiting claim's time is over.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "store.h"

enum { FAKE_SINCE_MS = 1 }; /* when every doubt began */
enum fake_state { FAKE_IN_FLIGHT, FAKE_IN_DOUBT, FAKE_APPLIED };

struct fake_record {
    char topic[TOPIC_BYTES_MAX + 1];
    int32_t partition;
    int64_t offset;
    enum fake_state state;
    record_mark mark;
    uint64_t claim_id, doubt_id;
    uint32_t attempts;
    enum doubt_cause cause;
    char detail[96];
    int status;
    char *type, *body; /* owned */
    size_t body_bytes;
    bool was_applied;     /* sent again: the first delivery stands */
    uint64_t replay_id;   /* of that window */
    uint64_t replayed_in; /* the window under which it has been sent again */
    char context[RECORD_CONTEXT_BYTES_MAX];
    size_t context_bytes;
};

struct fake_partition {
    char *topic; /* owned */
    int32_t partition;
    uint32_t generation;
    struct conflict_row conflict; /* id 0: none */
};

struct store {
    struct store_options options;
    struct fake_record *records; /* owned */
    size_t record_count;
    struct fake_partition *partitions; /* owned */
    size_t partition_count;
    struct replay_row *replays; /* owned */
    size_t replay_count;
    struct event_row *notes; /* owned: the only events that are kept here */
    size_t note_count;
    struct fake_record *ended; /* owned: doubts that are over, as they were */
    size_t ended_count;
    uint64_t next_id;
    struct store_figures figures;
    struct claim *waiting; /* linked through posting.next, in order */
};

struct store_port {
    struct store *store;
    int fd;
    struct posting *first, *last; /* finished */
};

enum kind { KIND_CLAIM, KIND_SETTLEMENT, KIND_QUESTION };

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void *grown(void *array, size_t count, size_t item_bytes)
{
    void *larger = realloc(array, (count + 1) * item_bytes);
    assert(larger != NULL);
    memset((char *)larger + count * item_bytes, 0, item_bytes);
    return larger;
}

static struct fake_record *find(struct store *store, const struct record_key *key)
{
    for (size_t i = 0; i < store->record_count; i++) {
        struct fake_record *record = &store->records[i];
        if (record->offset == key->offset && record->partition == key->partition &&
            slice_equals_text(key->topic, record->topic))
            return record;
    }
    return NULL;
}

static struct fake_partition *find_partition(struct store *store, const struct record_key *key)
{
    for (size_t i = 0; i < store->partition_count; i++)
        if (store->partitions[i].partition == key->partition &&
            slice_equals_text(key->topic, store->partitions[i].topic))
            return &store->partitions[i];
    return NULL;
}

/* The oldest offset that CLAIM holds of KEY's partition. */
static int64_t oldest_in(const struct claim *claim, const struct record_key *key)
{
    int64_t oldest = key->offset;
    for (size_t i = 0; i < claim->record_count; i++) {
        const struct record_key *other = &claim->records[i].key;
        if (other->partition == key->partition && slice_equals(other->topic, key->topic) &&
            other->offset < oldest)
            oldest = other->offset;
    }
    return oldest;
}

static struct fake_partition *add_partition(struct store *store, const struct record_key *key, int64_t oldest)
{
    store->partitions = grown(store->partitions, store->partition_count, sizeof store->partitions[0]);
    struct fake_partition *partition = &store->partitions[store->partition_count++];
    partition->topic = strndup(key->topic.at, key->topic.byte_count);
    assert(partition->topic != NULL);
    partition->partition = key->partition;
    if (oldest > 0)
        store->figures.first_sight_count++;
    return partition;
}

static struct fake_record *add(struct store *store, const struct record *from)
{
    store->records = grown(store->records, store->record_count, sizeof store->records[0]);
    struct fake_record *record = &store->records[store->record_count++];
    memcpy(record->topic, from->key.topic.at, from->key.topic.byte_count);
    record->partition = from->key.partition;
    record->offset = from->key.offset;
    record->mark = store->options.is_identity_checked ? from->mark : MARK_NONE;
    record->state = FAKE_IN_FLIGHT;
    return record;
}

static void forget(struct store *store, struct fake_record *record)
{
    free(record->type);
    free(record->body);
    *record = store->records[--store->record_count];
}

static char *copy_of(struct slice slice)
{
    char *copy = calloc(1, slice.byte_count + 1);
    assert(copy != NULL);
    if (slice.byte_count > 0)
        memcpy(copy, slice.at, slice.byte_count);
    return copy;
}

/* ---- finished postings ------------------------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct claim *claim_of(struct posting *posting)
{
    return (struct claim *)(void *)((char *)posting - offsetof(struct claim, posting));
}

static uint64_t deadline_ns(const struct claim *claim)
{
    return claim->posting.posted_ns + (uint64_t)claim->wait_ms * 1000000u;
}

/* The timer of PORT: 1 ns from now when something is finished. */
static void arm(struct store_port *port)
{
    uint64_t due_ns = port->first != NULL ? 1 : 0, now = now_ns();
    for (struct claim *claim = port->store->waiting; port->first == NULL && claim != NULL;
         claim = claim->posting.next == NULL ? NULL : claim_of(claim->posting.next)) {
        if (claim->posting.port != port)
            continue;
        uint64_t left_ns = deadline_ns(claim) > now ? deadline_ns(claim) - now : 1;
        due_ns = due_ns == 0 || left_ns < due_ns ? left_ns : due_ns;
    }
    struct itimerspec timer = { .it_value = { (time_t)(due_ns / 1000000000u),
                                              (long)(due_ns % 1000000000u) } };
    timerfd_settime(port->fd, 0, &timer, NULL);
}

static void finish(struct posting *posting, enum store_status status)
{
    struct store_port *port = posting->port;
    posting->status = status;
    posting->next = NULL;
    if (port->last != NULL)
        port->last->next = posting;
    else
        port->first = posting;
    port->last = posting;
    arm(port);
}

/* ---- replay windows --------------------------------------------------------------------------------------------- */

static uint64_t unix_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static void drop_replay(struct store *store, size_t index)
{
    memmove(&store->replays[index], &store->replays[index + 1],
            (--store->replay_count - index) * sizeof store->replays[0]);
    store->figures.replay_open_count--;
}

/* The window that RECORD lies in; NULL: none is open. */
static struct replay_row *replay_over(struct store *store, const struct fake_record *record)
{
    for (size_t i = store->replay_count; i > 0; i--)
        if (store->replays[i - 1].until_ms <= unix_ms())
            drop_replay(store, i - 1);
    for (size_t i = 0; i < store->replay_count; i++) {
        struct replay_row *replay = &store->replays[i];
        if (replay->partition == record->partition && strcmp(replay->topic, record->topic) == 0 &&
            record->offset >= replay->first && record->offset <= replay->last)
            return replay;
    }
    return NULL;
}

/* It is applied (again). */
static void become_applied(struct store *store, struct fake_record *record)
{
    for (size_t i = 0; record->replay_id != 0 && i < store->replay_count; i++)
        store->replays[i].replayed_count += store->replays[i].id == record->replay_id;
    store->figures.replayed_count += record->replay_id != 0;
    const struct replay_row *meanwhile = record->was_applied ? NULL : replay_over(store, record);
    if (record->replay_id != 0)
        record->replayed_in = record->replay_id;
    else if (meanwhile != NULL) /* for the first time: it need not come again */
        record->replayed_in = meanwhile->id;
    record->state = FAKE_APPLIED;
    record->was_applied = false;
    record->replay_id = 0;
    record->attempts = 0;
    record->context_bytes = 0;
}

/* It has no effect: unknown, or what the first delivery left. */
static void become_free(struct store *store, struct fake_record *record)
{
    if (!record->was_applied) {
        forget(store, record);
        return;
    }
    record->replay_id = 0;
    become_applied(store, record);
}

static void remember_ended(struct store *store, const struct fake_record *record)
{
    store->ended = grown(store->ended, store->ended_count, sizeof store->ended[0]);
    store->ended[store->ended_count++] = *record;
}

/* ---- claims ----------------------------------------------------------------------------------------------------- */

struct found {
    size_t new_count, replayed_count, retried_count, assumed_count;
    bool is_hindered, is_conflict, is_crowded;
};

static bool has_room(const struct store *store, size_t count)
{
    uint64_t max = store->options.partitions_max;
    return max == 0 || store->partition_count + count <= max;
}

/* How many partitions CLAIM would add. */
static size_t unknown_count(struct store *store, const struct claim *claim)
{
    size_t count = 0;
    for (size_t i = 0; i < claim->record_count; i++) {
        const struct record_key *key = &claim->records[i].key;
        bool is_first = find_partition(store, key) == NULL;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = claim->records[k].key.partition != key->partition ||
                       !slice_equals(claim->records[k].key.topic, key->topic);
        count += is_first;
    }
    return count;
}

static void open_conflict(struct store *store, const struct record *record, record_mark stored,
                          bool is_first_sight)
{
    struct fake_partition *partition = find_partition(store, &record->key);
    if (partition == NULL)
        partition = add_partition(store, &record->key, record->key.offset);
    if (partition->conflict.id != 0)
        return;
    partition->conflict = (struct conflict_row){ .id = store->next_id++,
                                                 .partition = record->key.partition,
                                                 .offset = record->key.offset,
                                                 .stored = stored,
                                                 .seen = record->mark,
                                                 .count = 1,
                                                 .is_first_sight = is_first_sight };
    memcpy(partition->conflict.topic, partition->topic, strlen(partition->topic) + 1);
    for (size_t i = 0; i < store->record_count; i++) /* something older is known */
        partition->conflict.is_tail |= store->records[i].partition == record->key.partition &&
                                       slice_equals_text(record->key.topic, store->records[i].topic) &&
                                       store->records[i].offset < record->key.offset;
    store->figures.conflict_count++;
    store->figures.conflict_open_count++;
}

static enum verdict judge_doubt(struct store *store, struct found *found)
{
    switch (store->options.policy) {
    case POLICY_RETRY:
        found->new_count++;
        found->retried_count++;
        return VERDICT_NEW;
    case POLICY_ASSUME_APPLIED:
        found->assumed_count++;
        return VERDICT_APPLIED;
    case POLICY_HOLD:
        break;
    }
    found->is_hindered = true;
    return VERDICT_IN_DOUBT;
}

static enum verdict judge_known(struct store *store, const struct record *record,
                                const struct fake_record *known, struct found *found)
{
    if (store->options.is_identity_checked && marks_contradict(known->mark, record->mark)) {
        found->is_conflict = true;
        open_conflict(store, record, known->mark, false);
        return VERDICT_CONFLICT;
    }
    if (known->state == FAKE_APPLIED) {
        const struct replay_row *replay = replay_over(store, known);
        if (replay == NULL || known->replayed_in == replay->id)
            return VERDICT_APPLIED;
        found->new_count++;
        found->replayed_count++;
        return VERDICT_NEW;
    }
    if (known->state == FAKE_IN_DOUBT)
        return judge_doubt(store, found);
    found->is_hindered = true;
    return VERDICT_IN_FLIGHT;
}

static enum verdict judge(struct store *store, const struct claim *claim, const struct record *record,
                          struct found *found)
{
    struct fake_partition *partition = find_partition(store, &record->key);
    struct fake_record *known = find(store, &record->key);
    bool is_first_sight = partition == NULL && store->options.is_first_sight_held && record->key.offset > 0 &&
                          oldest_in(claim, &record->key) > 0;
    if (is_first_sight && !has_room(store, 1))
        found->is_crowded = true;
    else if (is_first_sight)
        open_conflict(store, record, MARK_NONE, true);
    if (is_first_sight || (partition != NULL && partition->conflict.id != 0)) {
        found->is_conflict = true;
        return VERDICT_CONFLICT;
    }
    if (known != NULL)
        return judge_known(store, record, known, found);
    found->new_count++;
    return VERDICT_NEW;
}

static void keep_context(struct fake_record *record, const struct slice *context)
{
    if (context == NULL || context->byte_count == 0)
        return;
    record->context_bytes =
        context->byte_count < sizeof record->context ? context->byte_count : sizeof record->context;
    memcpy(record->context, context->at, record->context_bytes);
}

static void act_on(struct store *store, const struct claim *claim, size_t index)
{
    const struct record *record = &claim->records[index];
    const struct slice *context = claim->contexts == NULL ? NULL : &claim->contexts[index];
    enum verdict verdict = claim->ret_verdicts[index];
    struct fake_record *known = find(store, &record->key);
    bool is_doubt = known != NULL && known->state == FAKE_IN_DOUBT;
    if (is_doubt) {
        store->figures.in_doubt_records--;
        store->figures.doubts_by_cause[known->cause]--;
        remember_ended(store, known);
    }
    if (verdict == VERDICT_APPLIED && is_doubt) {
        become_applied(store, known);
        store->figures.resolved_assumed++;
    }
    if (verdict != VERDICT_NEW)
        return;
    store->figures.resolved_retry += is_doubt;
    if (find_partition(store, &record->key) == NULL)
        add_partition(store, &record->key, oldest_in(claim, &record->key));
    if (known == NULL)
        known = add(store, record);
    if (known->state == FAKE_APPLIED) {
        known->was_applied = true;
        known->replay_id = replay_over(store, known)->id;
    }
    keep_context(known, context);
    known->state = FAKE_IN_FLIGHT;
    known->claim_id = claim->ret_claim_id;
    known->attempts++;
}

static void give_reply(struct store *store, struct claim *claim)
{
    const struct fake_record *known = find(store, &claim->records[0].key);
    if (claim->record_count != 1 || known == NULL || known->state != FAKE_APPLIED || known->status == 0)
        return;
    size_t type_bytes = strlen(known->type);
    claim->reply_bytes = malloc(type_bytes + known->body_bytes + 1);
    assert(claim->reply_bytes != NULL);
    memcpy(claim->reply_bytes, known->type, type_bytes);
    memcpy(claim->reply_bytes + type_bytes, known->body, known->body_bytes);
    claim->ret_reply = (struct stored_reply){ known->status, slice_of(claim->reply_bytes, type_bytes),
                                              slice_of(claim->reply_bytes + type_bytes, known->body_bytes) };
}

/* Would CLAIM overtake one of those that wait, FIRST to itself, in one of its partitions? */
static bool is_behind(struct claim *claim, const struct posting *first)
{
    for (const struct posting *posting = first; posting != NULL && posting != &claim->posting;
         posting = posting->next) {
        const struct claim *other = (const void *)((const char *)posting - offsetof(struct claim, posting));
        for (size_t i = 0; i < claim->record_count; i++) {
            const struct record_key *own = &claim->records[i].key;
            for (size_t k = 0; k < other->record_count && claim->ret_verdicts[i] == VERDICT_NEW; k++) {
                const struct record_key *theirs = &other->records[k].key;
                if (theirs->partition == own->partition && slice_equals(theirs->topic, own->topic) &&
                    theirs->offset <= own->offset)
                    return true;
            }
        }
    }
    return false;
}

/* False: it has to wait.  FIRST: those that wait already. */
static bool try_claim(struct store *store, struct claim *claim, const struct posting *first, bool is_last)
{
    struct found found = { 0 };
    for (size_t i = 0; i < claim->record_count; i++)
        claim->ret_verdicts[i] = judge(store, claim, &claim->records[i], &found);
    bool is_late = !found.is_hindered && !found.is_conflict && is_behind(claim, first);
    if ((found.is_hindered || is_late) && !found.is_conflict && !is_last)
        return false;
    for (size_t i = 0; is_late && i < claim->record_count; i++) {
        if (claim->ret_verdicts[i] == VERDICT_NEW)
            claim->ret_verdicts[i] = VERDICT_IN_FLIGHT;
    }
    found.is_crowded =
        found.is_crowded || (!is_late && !found.is_hindered && !found.is_conflict && found.new_count > 0 &&
                             !has_room(store, unknown_count(store, claim)));
    if (found.is_crowded) {
        for (size_t i = 0; i < claim->record_count; i++)
            if (find_partition(store, &claim->records[i].key) == NULL)
                claim->ret_verdicts[i] = VERDICT_UNMET;
        finish(&claim->posting, STORE_CROWDED);
        return true;
    }
    if (!is_late && !found.is_hindered && !found.is_conflict) {
        if (found.new_count > 0 && found.retried_count == 0 &&
            store->figures.in_doubt_records > store->options.in_doubt_max) {
            finish(&claim->posting, STORE_BUSY);
            return true;
        }
        claim->ret_new_count = found.new_count;
        claim->ret_retried_count = found.retried_count;
        claim->ret_replayed_count = found.replayed_count;
        claim->ret_claim_id = found.new_count > 0 ? store->next_id++ : 0;
        for (size_t i = 0; i < claim->record_count; i++)
            act_on(store, claim, i);
        give_reply(store, claim);
    }
    finish(&claim->posting, STORE_OK);
    return true;
}

/* Judge all that wait once more, in their order. */
static void wake(struct store *store)
{
    struct posting *next = store->waiting == NULL ? NULL : &store->waiting->posting, *posting;
    struct posting **link = &next;
    while ((posting = *link) != NULL) {
        struct posting *behind = posting->next;
        if (try_claim(store, claim_of(posting), next, deadline_ns(claim_of(posting)) <= now_ns()))
            *link = behind;
        else
            link = &posting->next;
    }
    store->waiting = next == NULL ? NULL : claim_of(next);
}

static void post(struct store_port *port, struct posting *posting, enum kind kind)
{
    posting->port = port;
    posting->kind = (int)kind;
    posting->next = NULL;
    posting->posted_ns = now_ns();
}

void store_claim(struct store_port *port, struct claim *claim)
{
    post(port, &claim->posting, KIND_CLAIM);
    claim->reply_bytes = NULL;
    claim->ret_reply = (struct stored_reply){ 0 };
    claim->ret_claim_id = 0;
    claim->ret_new_count = claim->ret_retried_count = claim->ret_replayed_count = 0;
    struct posting **link = NULL,
                   *first = port->store->waiting == NULL ? NULL : &port->store->waiting->posting;
    if (try_claim(port->store, claim, first, claim->wait_ms == 0))
        return;
    for (link = &first; *link != NULL;)
        link = &(*link)->next;
    *link = &claim->posting;
    port->store->waiting = claim_of(first);
    arm(port);
}

void store_claim_deinit(struct claim *claim)
{
    free(claim->reply_bytes);
    claim->reply_bytes = NULL;
    claim->ret_reply = (struct stored_reply){ 0 };
}

/* ---- settlements ------------------------------------------------------------------------------------------------ */

static void keep_reply(struct store *store, struct fake_record *record, const struct stored_reply *reply)
{
    if (reply->status == 0 || reply->body.byte_count > store->options.reply_bytes_max)
        return;
    record->status = reply->status;
    record->type = copy_of(reply->content_type);
    record->body = copy_of(reply->body);
    record->body_bytes = reply->body.byte_count;
}

static void become_doubt(struct store *store, struct fake_record *record, enum doubt_cause cause,
                         const char *detail)
{
    record->state = FAKE_IN_DOUBT;
    record->doubt_id = store->next_id++;
    record->cause = cause;
    snprintf(record->detail, sizeof record->detail, "%s", detail == NULL ? "" : detail);
    store->figures.in_doubt_records++;
    store->figures.doubts_by_cause[record->cause]++;
    store->figures.entered_by_cause[record->cause]++;
}

static void settle_one(struct store *store, const struct settlement *settlement, size_t index)
{
    struct fake_record *record = find(store, &settlement->records[index].key);
    if (record == NULL || record->state != FAKE_IN_FLIGHT || record->claim_id != settlement->claim_id)
        return;
    switch (settlement->outcomes[index]) {
    case OUTCOME_APPLIED:
        become_applied(store, record);
        if (settlement->record_count == 1)
            keep_reply(store, record, &settlement->reply);
        break;
    case OUTCOME_NOT_SENT:
    case OUTCOME_NOT_APPLIED:
        if (record->attempts > 1) { /* a doubt that was re-opened in vain */
            record->attempts -= settlement->outcomes[index] == OUTCOME_NOT_SENT;
            become_doubt(store, record, record->cause, "re-opened in vain");
            break;
        }
        become_free(store, record);
        break;
    case OUTCOME_UNKNOWN:
        become_doubt(store, record, settlement->cause, settlement->detail);
        break;
    }
}

void store_settle(struct store_port *port, struct settlement *settlement)
{
    post(port, &settlement->posting, KIND_SETTLEMENT);
    for (size_t i = 0; i < settlement->record_count; i++)
        if (settlement->verdicts[i] == VERDICT_NEW)
            settle_one(port->store, settlement, i);
    finish(&settlement->posting, STORE_OK);
    wake(port->store);
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

static void fill_doubt(struct doubt_row *row, const struct fake_record *record)
{
    *row = (struct doubt_row){ .id = record->doubt_id,
                               .partition = record->partition,
                               .first = record->offset,
                               .last = record->offset,
                               .record_count = 1,
                               .since_ms = FAKE_SINCE_MS,
                               .attempts = record->attempts,
                               .cause = record->cause };
    memcpy(row->topic, record->topic, sizeof row->topic);
    memcpy(row->detail, record->detail, sizeof row->detail);
}

static bool is_asked(const struct question *question, const char *topic)
{
    return question->topic[0] == '\0' || strcmp(question->topic, topic) == 0;
}

static void ask_record(struct store *store, struct question *question)
{
    static const enum record_state states[] = { RECORD_IN_FLIGHT, RECORD_IN_DOUBT, RECORD_APPLIED };
    struct record_key key = { slice_of_text(question->topic), question->partition, question->first };
    struct fake_record *record = find(store, &key);
    question->ret_state = record == NULL ? RECORD_ABSENT : states[record->state];
    if (question->ret_state == RECORD_IN_DOUBT) {
        fill_doubt(question->ret.doubts, record);
        question->ret_row_count = 1;
    }
}

static void ask_doubts(struct store *store, struct question *question)
{
    for (uint64_t id = question->after_id + 1; id < store->next_id; id++) {
        for (size_t i = 0; i < store->record_count; i++) {
            struct fake_record *record = &store->records[i];
            if (record->state != FAKE_IN_DOUBT || record->doubt_id != id ||
                !is_asked(question, record->topic))
                continue;
            if (question->ret_row_count < question->row_count_max)
                fill_doubt(&question->ret.doubts[question->ret_row_count++], record);
            question->ret_count++;
        }
    }
}

static bool is_applied_before(struct store *store, const struct fake_record *record)
{
    struct record_key key = { slice_of_text(record->topic), record->partition, record->offset - 1 };
    const struct fake_record *before = record->offset == 0 ? NULL : find(store, &key);
    return before != NULL && before->state == FAKE_APPLIED;
}

static void fill_partition(struct store *store, struct partition_row *row,
                           const struct fake_partition *partition)
{
    *row = (struct partition_row){ .topic = partition->topic,
                                   .partition = partition->partition,
                                   .generation = partition->generation,
                                   .lowest = -1,
                                   .highest = -1,
                                   .is_in_conflict = partition->conflict.id != 0 };
    for (size_t i = 0; i < store->record_count; i++) {
        const struct fake_record *record = &store->records[i];
        if (record->partition != partition->partition || strcmp(record->topic, partition->topic) != 0)
            continue;
        row->in_doubt_count += record->state == FAKE_IN_DOUBT;
        row->in_flight_count += record->state == FAKE_IN_FLIGHT;
        if (record->state != FAKE_APPLIED)
            continue;
        row->applied_count++;
        row->interval_count += !is_applied_before(store, record);
        row->lowest = row->lowest < 0 || record->offset < row->lowest ? record->offset : row->lowest;
        row->highest = record->offset > row->highest ? record->offset : row->highest;
    }
    if (row->highest >= 0)
        row->gap_count = (uint64_t)(row->highest - row->lowest) + 1 - row->applied_count;
}

static bool comes_behind(const struct fake_partition *partition, const char *topic, int32_t number)
{
    int order = strcmp(partition->topic, topic);
    return order > 0 || (order == 0 && partition->partition > number);
}

/* The first behind that place; NULL: none. */
static const struct fake_partition *partition_behind(const struct store *store, const char *topic,
                                                     int32_t number)
{
    const struct fake_partition *found = NULL;
    for (size_t i = 0; i < store->partition_count; i++) {
        const struct fake_partition *one = &store->partitions[i];
        if (comes_behind(one, topic, number) &&
            (found == NULL || comes_behind(found, one->topic, one->partition)))
            found = one;
    }
    return found;
}

static void ask_partitions(struct store *store, struct question *question)
{
    int32_t number = question->after_topic[0] == '\0' ? -1 : question->after_partition;
    const struct fake_partition *partition = partition_behind(store, question->after_topic, number);
    for (; partition != NULL; partition = partition_behind(store, partition->topic, partition->partition)) {
        if (!is_asked(question, partition->topic))
            continue;
        if (question->ret_row_count < question->row_count_max)
            fill_partition(store, &question->ret.partitions[question->ret_row_count++], partition);
        question->ret_count++;
    }
}

static void ask_conflicts(struct store *store, struct question *question)
{
    for (uint64_t id = question->after_id + 1; id < store->next_id; id++) {
        for (size_t i = 0; i < store->partition_count; i++) {
            const struct conflict_row *conflict = &store->partitions[i].conflict;
            if (conflict->id != id || !is_asked(question, conflict->topic))
                continue;
            if (question->ret_row_count < question->row_count_max)
                question->ret.conflicts[question->ret_row_count++] = *conflict;
            question->ret_count++;
        }
    }
}

static void resolve(struct store *store, struct fake_record *record, bool is_applied)
{
    store->figures.in_doubt_records--;
    store->figures.doubts_by_cause[record->cause]--;
    store->figures.resolved_applied += is_applied;
    store->figures.resolved_not_applied += !is_applied;
    remember_ended(store, record);
    if (is_applied)
        become_applied(store, record);
    else
        become_free(store, record);
}

static enum record_state state_of(const struct fake_record *record)
{
    static const enum record_state states[] = { RECORD_IN_FLIGHT, RECORD_IN_DOUBT, RECORD_APPLIED };
    return record == NULL ? RECORD_ABSENT : states[record->state];
}

static void tell_ended(struct store *store, struct question *question)
{
    question->ret_status = QUESTION_NOT_FOUND;
    for (size_t i = 0; i < store->ended_count; i++) {
        struct fake_record *ended = &store->ended[i];
        if (ended->doubt_id != question->id)
            continue;
        struct record_key key = { slice_of_text(ended->topic), ended->partition, ended->offset };
        question->ret_id = question->id;
        question->ret_state = state_of(find(store, &key));
    }
}

/* One row of the real store may hold neighbours that went into doubt together; here a claim's doubts are one. */
static void do_resolve_one(struct store *store, struct question *question)
{
    uint64_t claim_id = 0;
    for (size_t i = 0; i < store->record_count; i++)
        if (store->records[i].state == FAKE_IN_DOUBT && store->records[i].doubt_id == question->id)
            claim_id = store->records[i].claim_id;
    for (size_t i = store->record_count; claim_id != 0 && i > 0; i--) {
        struct fake_record *record = &store->records[i - 1];
        if (record->state == FAKE_IN_DOUBT && record->claim_id == claim_id) {
            resolve(store, record, question->is_applied);
            question->ret_count++;
        }
    }
    if (claim_id == 0)
        tell_ended(store, question);
}

static bool is_named(const struct question *question, const struct fake_record *record)
{
    bool is_everywhere = question->first < 0 && question->last < 0;
    return record->state == FAKE_IN_DOUBT && is_asked(question, record->topic) &&
           (question->partition < 0 || question->partition == record->partition) &&
           (question->since_ms == 0 || question->since_ms == FAKE_SINCE_MS) &&
           (is_everywhere || (record->offset >= question->first && record->offset <= question->last));
}

static void do_resolve(struct store *store, struct question *question)
{
    for (size_t i = 0; i < store->record_count; i++)
        question->ret_count += is_named(question, &store->records[i]);
    if (question->ret_count != question->expect_count) {
        question->ret_status = QUESTION_MISMATCH;
        return;
    }
    for (size_t i = store->record_count; i > 0; i--)
        if (is_named(question, &store->records[i - 1]))
            resolve(store, &store->records[i - 1], question->is_applied);
}

static void begin_new_topic(struct store *store, struct fake_partition *partition)
{
    partition->generation++;
    for (size_t i = store->replay_count; i > 0; i--)
        if (store->replays[i - 1].partition == partition->partition &&
            strcmp(store->replays[i - 1].topic, partition->topic) == 0)
            drop_replay(store, i - 1);
    for (size_t i = store->record_count; i > 0; i--) {
        struct fake_record *record = &store->records[i - 1];
        if (record->partition == partition->partition && strcmp(record->topic, partition->topic) == 0)
            forget(store, record);
    }
}

static void do_decide(struct store *store, struct question *question)
{
    struct fake_partition *partition = store->partitions;
    struct fake_partition *end = store->partitions + store->partition_count;
    while (partition != end && (partition->conflict.id == 0 || partition->conflict.id != question->id))
        partition++;
    if (partition == end) {
        question->ret_status = QUESTION_NOT_FOUND;
        return;
    }
    struct record_key key = { slice_of_text(partition->topic), partition->partition,
                              partition->conflict.offset };
    struct fake_record *record = find(store, &key);
    if (question->is_new_topic)
        begin_new_topic(store, partition);
    else if (record != NULL)
        record->mark = partition->conflict.seen;
    partition->conflict = (struct conflict_row){ 0 };
    store->figures.conflict_open_count--;
    question->ret_count = 1;
}

static void ask_events(struct store *store, struct question *question)
{
    for (size_t i = 0; i < store->note_count; i++) {
        if (store->notes[i].id <= question->after_id)
            continue;
        if (question->ret_row_count < question->row_count_max)
            question->ret.events[question->ret_row_count++] = store->notes[i];
        question->ret_count++;
    }
}

/* Ascending by offset: the records of a partition; free it. */
static struct fake_record **sorted_records(struct store *store, const struct question *question,
                                           size_t *ret_count)
{
    struct fake_record **all = calloc(store->record_count + 1, sizeof all[0]);
    assert(all != NULL);
    *ret_count = 0;
    for (size_t i = 0; i < store->record_count; i++) {
        struct fake_record *record = &store->records[i];
        if (record->partition != question->partition || strcmp(record->topic, question->topic) != 0)
            continue;
        size_t at = (*ret_count)++;
        for (; at > 0 && all[at - 1]->offset > record->offset; at--)
            all[at] = all[at - 1];
        all[at] = record;
    }
    return all;
}

static void ask_intervals(struct store *store, struct question *question)
{
    struct record_key key = { slice_of_text(question->topic), question->partition, 0 };
    size_t count;
    if (find_partition(store, &key) == NULL) {
        question->ret_status = QUESTION_NOT_FOUND;
        return;
    }
    struct fake_record **all = sorted_records(store, question, &count);
    struct interval_row *rows = question->ret.intervals;
    for (size_t i = 0; i < count; i++) {
        if (all[i]->offset < question->first)
            continue;
        enum record_state state = state_of(all[i]);
        size_t row = question->ret_row_count;
        if (row > 0 && rows[row - 1].state == state && rows[row - 1].last == all[i]->offset - 1) {
            rows[row - 1].last = all[i]->offset;
            continue;
        }
        question->ret_count = row + 1;
        if (row == question->row_count_max)
            break;
        rows[question->ret_row_count++] = (struct interval_row){ all[i]->offset, all[i]->offset, state };
    }
    free(all);
}

static void fill_probe(struct probe_row *row, const struct fake_record *record)
{
    *row = (struct probe_row){ .doubt_id = record->doubt_id,
                               .partition = record->partition,
                               .offset = record->offset,
                               .since_ms = FAKE_SINCE_MS,
                               .attempts = record->attempts,
                               .context_bytes = (uint32_t)record->context_bytes };
    memcpy(row->topic, record->topic, sizeof row->topic);
    memcpy(row->context, record->context, record->context_bytes);
}

static void ask_probes(struct store *store, struct question *question)
{
    for (uint64_t id = question->after_id; id < store->next_id; id++) {
        for (size_t i = 0; i < store->record_count; i++) {
            const struct fake_record *record = &store->records[i];
            bool is_seen = id == question->after_id && record->offset <= question->after_offset;
            if (record->state != FAKE_IN_DOUBT || record->doubt_id != id || is_seen ||
                !is_asked(question, record->topic))
                continue;
            if (question->ret_row_count < question->row_count_max)
                fill_probe(&question->ret.probes[question->ret_row_count++], record);
            question->ret_count++;
        }
    }
}

static void ask_replays(struct store *store, struct question *question)
{
    struct fake_record nobody = { .partition = -1 };
    (void)replay_over(store, &nobody); /* those whose time is over go */
    for (size_t i = 0; i < store->replay_count; i++) {
        if (store->replays[i].id <= question->after_id || !is_asked(question, store->replays[i].topic))
            continue;
        if (question->ret_row_count < question->row_count_max)
            question->ret.replays[question->ret_row_count++] = store->replays[i];
        question->ret_count++;
    }
}

static void do_replay_open(struct store *store, struct question *question)
{
    struct record_key key = { slice_of_text(question->topic), question->partition, 0 };
    if (find_partition(store, &key) == NULL || question->first < 0 || question->last < question->first ||
        question->until_ms <= unix_ms()) {
        question->ret_status = QUESTION_NOT_FOUND;
        return;
    }
    for (size_t i = 0; i < store->replay_count; i++) {
        const struct replay_row *replay = &store->replays[i];
        if (replay->partition == question->partition && strcmp(replay->topic, question->topic) == 0 &&
            replay->first <= question->last && question->first <= replay->last)
            question->ret_status = QUESTION_MISMATCH;
    }
    if (question->ret_status != QUESTION_OK)
        return;
    store->replays = grown(store->replays, store->replay_count, sizeof store->replays[0]);
    struct replay_row *replay = &store->replays[store->replay_count++];
    *replay = (struct replay_row){ .id = store->next_id++,
                                   .partition = question->partition,
                                   .first = question->first,
                                   .last = question->last,
                                   .opened_ms = unix_ms(),
                                   .until_ms = question->until_ms };
    memcpy(replay->topic, question->topic, sizeof replay->topic);
    store->figures.replay_open_count++;
    question->ret_id = replay->id;
}

static void do_replay_close(struct store *store, struct question *question)
{
    for (size_t i = 0; i < store->replay_count; i++) {
        if (store->replays[i].id != question->id)
            continue;
        question->ret_count = store->replays[i].replayed_count;
        drop_replay(store, i);
        return;
    }
    question->ret_status = QUESTION_NOT_FOUND;
}

static bool is_forgotten(const struct question *question, const struct fake_record *record)
{
    bool is_everywhere = question->first < 0 && question->last < 0;
    return strcmp(question->topic, record->topic) == 0 &&
           (question->partition < 0 || question->partition == record->partition) &&
           (is_everywhere || (record->offset >= question->first && record->offset <= question->last)) &&
           (record->state == FAKE_APPLIED || record->was_applied);
}

static bool is_held(const struct store *store, const struct fake_partition *partition)
{
    bool is_held = partition->conflict.id != 0;
    for (size_t i = 0; i < store->record_count; i++)
        is_held = is_held || (store->records[i].partition == partition->partition &&
                              strcmp(store->records[i].topic, partition->topic) == 0);
    for (size_t i = 0; i < store->replay_count; i++)
        is_held = is_held || (store->replays[i].partition == partition->partition &&
                              strcmp(store->replays[i].topic, partition->topic) == 0);
    return is_held;
}

/* Those that were forgotten as a whole, and hold nothing any more. */
static void drop_partitions(struct store *store, const struct question *question)
{
    for (size_t i = store->partition_count; i > 0; i--) {
        struct fake_partition *partition = &store->partitions[i - 1];
        if (strcmp(partition->topic, question->topic) != 0 ||
            (question->partition >= 0 && question->partition != partition->partition) ||
            is_held(store, partition))
            continue;
        free(partition->topic);
        *partition = store->partitions[--store->partition_count];
    }
}

static void do_forget(struct store *store, struct question *question)
{
    bool is_met = false;
    for (size_t i = 0; i < store->partition_count; i++)
        is_met =
            is_met || (strcmp(store->partitions[i].topic, question->topic) == 0 &&
                       (question->partition < 0 || question->partition == store->partitions[i].partition));
    for (size_t i = 0; i < store->record_count; i++)
        question->ret_count += is_forgotten(question, &store->records[i]);
    question->ret_status = !is_met                                         ? QUESTION_NOT_FOUND
                           : question->ret_count != question->expect_count ? QUESTION_MISMATCH
                                                                           : QUESTION_OK;
    for (size_t i = store->record_count; question->ret_status == QUESTION_OK && i > 0; i--) {
        struct fake_record *record = &store->records[i - 1];
        if (!is_forgotten(question, record))
            continue;
        record->was_applied = false;
        if (record->state == FAKE_APPLIED)
            forget(store, record);
    }
    question->ret_done_count = question->ret_status == QUESTION_OK ? question->ret_count : 0;
    if (question->ret_status == QUESTION_OK && question->first < 0 && question->last < 0)
        drop_partitions(store, question);
}

/* A file with a word in it. */
static void do_backup(struct store *store, struct question *question)
{
    static const char word[] = "fake";
    int fd = open(question->detail, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    (void)store;
    question->ret_status = fd >= 0 ? QUESTION_OK : errno == EEXIST ? QUESTION_MISMATCH : QUESTION_FAILED;
    if (fd < 0) {
        snprintf(question->ret_why, sizeof question->ret_why, "%s", strerror(errno));
        return;
    }
    ssize_t written = write(fd, word, sizeof word);
    question->ret_count = written < 0 ? 0 : (uint64_t)written;
    close(fd);
}

static void do_note(struct store *store, struct question *question)
{
    store->notes = grown(store->notes, store->note_count, sizeof store->notes[0]);
    struct event_row *note = &store->notes[store->note_count++];
    *note = (struct event_row){ .id = store->note_count,
                                .time_ms = unix_ms(),
                                .kind = EVENT_ADMIN,
                                .partition = -1,
                                .first = -1,
                                .last = -1 };
    memcpy(note->detail, question->detail, sizeof note->detail);
}

static bool is_list(enum question_kind kind)
{
    return kind == ASK_RECORD || kind == ASK_DOUBTS || kind == ASK_PARTITIONS || kind == ASK_CONFLICTS ||
           kind == ASK_INTERVALS || kind == ASK_PROBES || kind == ASK_REPLAYS || kind == ASK_EVENTS;
}

void store_ask(struct store_port *port, struct question *question)
{
    static void (*const ways[])(struct store *, struct question *) = {
        [ASK_RECORD] = ask_record,
        [ASK_DOUBTS] = ask_doubts,
        [ASK_PARTITIONS] = ask_partitions,
        [ASK_CONFLICTS] = ask_conflicts,
        [ASK_INTERVALS] = ask_intervals,
        [ASK_PROBES] = ask_probes,
        [ASK_REPLAYS] = ask_replays,
        [DO_REPLAY_OPEN] = do_replay_open,
        [DO_REPLAY_CLOSE] = do_replay_close,
        [DO_FORGET] = do_forget,
        [DO_BACKUP] = do_backup,
        [ASK_EVENTS] = ask_events,
        [DO_RESOLVE_ONE] = do_resolve_one,
        [DO_RESOLVE] = do_resolve,
        [DO_DECIDE] = do_decide,
        [DO_NOTE] = do_note,
    };
    post(port, &question->posting, KIND_QUESTION);
    question->ret.any = NULL;
    if (is_list(question->kind)) {
        question->ret.any =
            calloc(question->row_count_max + 1, sizeof(struct event_row) + sizeof(struct probe_row));
        assert(question->ret.any != NULL);
    }
    question->ret_row_count = 0;
    question->ret_count = question->ret_id = 0;
    question->ret_state = RECORD_ABSENT;
    question->ret_status = QUESTION_OK;
    ways[question->kind](port->store, question);
    finish(&question->posting, STORE_OK);
    wake(port->store);
}

void store_question_deinit(struct question *question)
{
    free(question->ret.any);
    question->ret.any = NULL;
    question->ret_row_count = 0;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

enum store_open_status store_open(const struct store_options *options, struct store **ret_store,
                                  char ret_why[], size_t why_bytes_max)
{
    struct store *store = calloc(1, sizeof *store);
    assert(store != NULL && why_bytes_max > 0);
    ret_why[0] = '\0';
    store->options = *options;
    store->next_id = 1;
    store->figures.max_bytes = options->ledger_bytes_max;
    store->figures.boot_count = 1;
    *ret_store = store;
    return STORE_OPENED;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    while (store->record_count > 0)
        forget(store, &store->records[store->record_count - 1]);
    for (size_t i = 0; i < store->partition_count; i++)
        free(store->partitions[i].topic);
    free(store->records);
    free(store->partitions);
    free(store->replays);
    free(store->notes);
    free(store->ended);
    free(store);
}

struct store_port *store_port_new(struct store *store)
{
    struct store_port *port = calloc(1, sizeof *port);
    assert(port != NULL);
    port->store = store;
    port->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return port;
}

void store_port_free(struct store_port *port)
{
    if (port == NULL)
        return;
    close(port->fd);
    free(port);
}

int store_port_fd(const struct store_port *port)
{
    return port->fd;
}

void store_port_deliver(struct store_port *port)
{
    wake(port->store);
    struct posting *next = port->first;
    port->first = port->last = NULL;
    arm(port);
    while (next != NULL) {
        struct posting *posting = next;
        next = posting->next;
        if (posting->kind == KIND_CLAIM) {
            claim_of(posting)->done(claim_of(posting), posting->status);
        } else if (posting->kind == KIND_SETTLEMENT) {
            struct settlement *settlement = (void *)((char *)posting - offsetof(struct settlement, posting));
            settlement->done(settlement, posting->status);
        } else {
            struct question *question = (void *)((char *)posting - offsetof(struct question, posting));
            question->done(question, posting->status);
        }
    }
}

void store_figures_get(const struct store *store, struct store_figures *ret_figures)
{
    *ret_figures = store->figures;
}

const atomic_bool *store_failing(const struct store *store)
{
    static const atomic_bool is_failing = false; /* it has no disk */
    (void)store;
    return &is_failing;
}

const char *store_id(const struct store *store)
{
    (void)store;
    return "fa4e0000000000000000000000000001";
}
