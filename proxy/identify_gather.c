/*
 * identify_gather.c - see identify_gather.h.
 *
 *     topics:        "orderspayments"                each topic once, end to end
 *     topic_places:  {0,6} {6,8}                     numbered; topic_table finds them by their bytes
 *     records:       {orders 0 100} {orders 0 101}   each key once; record_table finds them by key
 *     sites:         0 1 0 -                         each element; the third repeats the first, the last has no key
 *
 * A record's topic points into TOPICS, and two records of one topic to the same place: to compare them is to compare
 * pointers.  When TOPICS grows, all records are pointed anew, which geometric growth makes rare.
 */
#include "identify_gather.h"

#include <assert.h>
#include <stdlib.h>
#include <xxhash.h>

#include "identify_cut.h"
#include "identify_mark.h"

void gather_init(struct gather *gather, const struct identifier *identifier, const struct request *request,
                 enum place place, struct identified *ret)
{
    gather->identifier = identifier;
    gather->request = request;
    gather->ret = ret;
    gather->rules = &identifier->sets[place];
    json_view_init(&gather->view, gather->rules);
    gather->site_room = gather->action_room = gather->record_room = gather->content_room = 0;
    gather->range_room = 0;
    gather->contents = NULL;
    gather->topic_room = gather->topic_place_room = gather->topic_count = gather->topic_bytes = 0;
    gather->topic_places = NULL;
    gather->topic_table = gather->record_table = (struct number_table){ .slots = NULL };
}

void gather_deinit(struct gather *gather)
{
    free(gather->contents);
    free(gather->topic_places);
    free(gather->topic_table.slots);
    free(gather->record_table.slots);
}

static void table_clear(struct number_table *table)
{
    if (table->slots != NULL)
        memset(table->slots, 0, table->slot_count * sizeof table->slots[0]);
    table->used_count = 0;
}

void gather_reset(struct gather *gather, enum place place)
{
    struct identified *ret = gather->ret;
    gather->rules = &gather->identifier->sets[place];
    json_view_init(&gather->view, gather->rules);
    table_clear(&gather->topic_table);
    table_clear(&gather->record_table);
    gather->topic_count = gather->topic_bytes = 0;
    ret->record_count = ret->site_count = ret->strip_range_count = ret->strip_header_count = 0;
    ret->is_contradictory = false;
    ret->rule = "";
}

/* ---- growing ------------------------------------------------------------------------------------------------- */

/* Make room for MORE cells behind COUNT.  False: no memory, and nothing has changed. */
static bool grow(void *array, size_t cell_bytes, size_t count, size_t more, size_t *room)
{
    if (more <= *room - count)
        return true;
    size_t wanted = *room < 8 ? 16 : *room * 2;
    if (wanted < count + more)
        wanted = count + more;
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, wanted * cell_bytes);
    if (grown == NULL)
        return false;
    memcpy(array, &grown, sizeof grown);
    *room = wanted;
    return true;
}

/* As grow(), for the bytes to which the records point. */
static bool topics_grow(struct gather *gather, size_t more)
{
    struct identified *ret = gather->ret;
    if (more <= gather->topic_room - gather->topic_bytes)
        return true;
    size_t wanted = gather->topic_room * 2 + more + 64;
    char *grown = malloc(wanted);
    if (grown == NULL)
        return false;
    if (gather->topic_bytes > 0)
        memcpy(grown, ret->topics, gather->topic_bytes);
    for (size_t i = 0; i < ret->record_count; i++)
        ret->records[i].key.topic.at = grown + (ret->records[i].key.topic.at - ret->topics);
    free(ret->topics);
    ret->topics = grown;
    gather->topic_room = wanted;
    return true;
}

/* ---- tables -------------------------------------------------------------------------------------------------- */

static void table_put(struct number_table *table, uint64_t hash, size_t number)
{
    size_t at = hash & (table->slot_count - 1);
    while (table->slots[at] != 0)
        at = (at + 1) & (table->slot_count - 1);
    table->slots[at] = (uint32_t)number + 1;
    table->used_count++;
}

/* Room for one more, at most half full.  HASH_OF gives the hash of what is in already.  False: no memory. */
static bool table_grow(struct number_table *table, const struct gather *gather,
                       uint64_t (*hash_of)(const struct gather *gather, size_t number))
{
    if (table->used_count < table->slot_count / 2)
        return true;
    size_t used_count = table->used_count;
    size_t slot_count = table->slot_count == 0 ? 64 : table->slot_count * 4;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL)
        return false;
    free(table->slots);
    *table = (struct number_table){ .slots = slots, .slot_count = slot_count };
    for (size_t i = 0; i < used_count; i++)
        table_put(table, hash_of(gather, i), i);
    return true;
}

/* ---- topics -------------------------------------------------------------------------------------------------- */

static struct slice topic_at(const struct gather *gather, size_t number)
{
    const struct topic_place *place = &gather->topic_places[number];
    return slice_of(gather->ret->topics + place->begin, place->byte_count);
}

static uint64_t topic_hash(const struct gather *gather, struct slice topic)
{
    return XXH3_64bits_withSeed(topic.at, topic.byte_count, gather->identifier->seed);
}

static uint64_t topic_hash_of(const struct gather *gather, size_t number)
{
    return topic_hash(gather, topic_at(gather, number));
}

/* TOPIC as it stands in the topics, put there when it is new.  False: no memory. */
static bool topic_intern(struct gather *gather, struct slice topic, struct slice *ret_topic)
{
    struct number_table *table = &gather->topic_table;
    if (!table_grow(table, gather, topic_hash_of))
        return false;
    uint64_t hash = topic_hash(gather, topic);
    for (size_t at = hash & (table->slot_count - 1); table->slots[at] != 0;
         at = (at + 1) & (table->slot_count - 1)) {
        *ret_topic = topic_at(gather, table->slots[at] - 1);
        if (slice_equals(*ret_topic, topic))
            return true;
    }
    if (!topics_grow(gather, topic.byte_count) || !grow(&gather->topic_places, sizeof *gather->topic_places,
                                                        gather->topic_count, 1, &gather->topic_place_room))
        return false;
    memcpy(gather->ret->topics + gather->topic_bytes, topic.at, topic.byte_count);
    gather->topic_places[gather->topic_count] = (struct topic_place){ gather->topic_bytes, topic.byte_count };
    gather->topic_bytes += topic.byte_count;
    *ret_topic = topic_at(gather, gather->topic_count);
    table_put(table, hash, gather->topic_count++);
    return true;
}

/* Most records have the topic of the one before. */
static bool topic_keep(struct gather *gather, struct slice topic, struct slice *ret_topic)
{
    const struct identified *ret = gather->ret;
    if (ret->record_count > 0) {
        *ret_topic = ret->records[ret->record_count - 1].key.topic;
        if (slice_equals(*ret_topic, topic))
            return true;
    }
    return topic_intern(gather, topic, ret_topic);
}

/* ---- records ------------------------------------------------------------------------------------------------- */

/* The pointer stands for the topic, but moves when the topics grow: its place is hashed. */
static uint64_t record_hash(const struct gather *gather, const struct record_key *key)
{
    struct {
        uint64_t topic, partition, offset;
    } words = { (uint64_t)(key->topic.at - gather->ret->topics), (uint64_t)key->partition,
                (uint64_t)key->offset };
    return XXH3_64bits_withSeed(&words, sizeof words, gather->identifier->seed);
}

static uint64_t record_hash_of(const struct gather *gather, size_t number)
{
    return record_hash(gather, &gather->ret->records[number].key);
}

static bool is_same_key(const struct record_key *a, const struct record_key *b)
{
    return a->topic.at == b->topic.at && a->partition == b->partition && a->offset == b->offset;
}

/* What is known of one record: its mark, and what tells its bytes from others that have the same timestamp. */
struct likeness {
    record_mark mark, content;
};

static bool differs(record_mark a, record_mark b)
{
    return a != b && a != MARK_NONE && b != MARK_NONE;
}

/* One record is the same bytes wherever it stands: others at its coordinates are no repeat of it. */
static void repeat_compare(const struct gather *gather, size_t record, const struct likeness *likeness)
{
    struct identified *ret = gather->ret;
    if (ret->is_contradictory || (!differs(ret->records[record].mark, likeness->mark) &&
                                  !differs(gather->contents[record], likeness->content)))
        return;
    ret->is_contradictory = true;
    ret->contradicted = record;
}

/* Which of the records KEY is, whose topic is one of TOPICS; a new one is added. */
static enum read_status record_keep(struct gather *gather, const struct record_key *key,
                                    const struct likeness *likeness, struct record_site *site)
{
    struct identified *ret = gather->ret;
    struct number_table *table = &gather->record_table;
    if (!table_grow(table, gather, record_hash_of))
        return READ_NO_MEMORY;
    uint64_t hash = record_hash(gather, key);
    for (size_t at = hash & (table->slot_count - 1); table->slots[at] != 0;
         at = (at + 1) & (table->slot_count - 1)) {
        site->record = table->slots[at] - 1;
        site->is_repeat = is_same_key(&ret->records[site->record].key, key);
        if (site->is_repeat) {
            repeat_compare(gather, site->record, likeness);
            return READ_OK;
        }
    }
    if (!grow(&ret->records, sizeof *ret->records, ret->record_count, 1, &gather->record_room) ||
        !grow(&gather->contents, sizeof *gather->contents, ret->record_count, 1, &gather->content_room))
        return READ_NO_MEMORY;
    site->record = ret->record_count++;
    ret->records[site->record] = (struct record){ .key = *key, .mark = likeness->mark };
    gather->contents[site->record] = likeness->content;
    table_put(table, hash, site->record);
    return READ_OK;
}

/* Sorts the finding's members. */
static bool ranges_keep(struct gather *gather, struct range hashed, struct record_site *site)
{
    struct identified *ret = gather->ret;
    struct finding *finding = &gather->finding;
    if (!grow(&ret->strip_ranges, sizeof *ret->strip_ranges, ret->strip_range_count, finding->member_count,
              &gather->range_room))
        return false;
    struct range *ranges = ret->strip_ranges + ret->strip_range_count;
    site->strip_count = cut_members(ret->body.at + hashed.begin, hashed.end - hashed.begin, finding->members,
                                    finding->member_count, ranges);
    for (size_t i = 0; i < site->strip_count; i++) {
        ranges[i].begin += hashed.begin;
        ranges[i].end += hashed.begin;
    }
    ret->strip_range_count += site->strip_count;
    return true;
}

/* A signature covers what would be cut, so then nothing is to be stripped. */
static bool strip_keep(struct gather *gather, struct range hashed, struct record_site *site)
{
    struct identified *ret = gather->ret;
    const struct finding *finding = &gather->finding;
    site->strip_first = ret->strip_range_count;
    if (ret->is_uncuttable)
        return true;
    if (ret->strip_header_count == 0) {
        ret->strip_header_count = finding->header_count;
        memcpy(ret->strip_headers, finding->headers, finding->header_count * sizeof finding->headers[0]);
    }
    return finding->member_count == 0 || ranges_keep(gather, hashed, site);
}

/* A timestamp tells the deliveries of a record apart from another record's; within one request it is not enough, as one
 * record may have become several elements.  False: no memory. */
static bool likeness_find(const struct gather *gather, struct slice bytes, struct likeness *ret)
{
    enum identity_setting identity = gather->identifier->settings->identity;
    const struct finding *finding = &gather->finding;
    if (!mark_make(identity, bytes, finding, &ret->mark))
        return false;
    ret->content = ret->mark;
    return identity != IDENTITY_AUTO || !finding->has_timestamp ||
           mark_make(IDENTITY_BODY, bytes, finding, &ret->content);
}

static enum read_status finding_keep(struct gather *gather, struct range hashed, struct record_site *site)
{
    struct identified *ret = gather->ret;
    struct record_key key = gather->finding.key;
    struct likeness likeness;
    struct slice bytes = slice_of(ret->body.at + hashed.begin, hashed.end - hashed.begin);
    if (!likeness_find(gather, bytes, &likeness) ||
        !topic_keep(gather, gather->finding.key.topic, &key.topic) || !strip_keep(gather, hashed, site))
        return READ_NO_MEMORY;
    if (ret->record_count == 0)
        ret->rule = gather->finding.rule;
    return record_keep(gather, &key, &likeness, site);
}

/* ---- elements ------------------------------------------------------------------------------------------------ */

static bool site_keep(struct gather *gather, const struct record_site *site, const struct bulk_action *action)
{
    struct identified *ret = gather->ret;
    if (!grow(&ret->sites, sizeof *ret->sites, ret->site_count, 1, &gather->site_room) ||
        (action != NULL &&
         !grow(&ret->actions, sizeof *ret->actions, ret->site_count, 1, &gather->action_room)))
        return false;
    if (action != NULL)
        ret->actions[ret->site_count] = *action;
    ret->sites[ret->site_count++] = *site;
    return true;
}

enum read_status gather_add(struct gather *gather, struct range whole, struct range hashed, bool is_found,
                            const struct bulk_action *action)
{
    struct identified *ret = gather->ret;
    struct record_site site = { .whole = whole, .record = NO_RECORD };
    if (ret->site_count >= gather->identifier->settings->records_max) {
        /* As long as no element is a record, any number of them is an ordinary body: they are passed over. */
        bool is_plain = ret->record_count == 0 && !is_found;
        return is_plain ? READ_OK : READ_TOO_MANY;
    }
    if (is_found) {
        enum read_status status = finding_keep(gather, hashed, &site);
        if (status != READ_OK)
            return status;
    }
    return site_keep(gather, &site, action) ? READ_OK : READ_NO_MEMORY;
}

enum look gather_look(struct gather *gather)
{
    const struct sight sight = { .request = gather->request, .rules = gather->rules, .view = &gather->view };
    return coordinates_find(&sight, &gather->finding);
}

enum read_status gather_add_viewed(struct gather *gather, struct range whole)
{
    return gather_add(gather, whole, whole, gather_look(gather) == LOOK_FOUND, NULL);
}

enum read_status gather_add_value(struct gather *gather, size_t begin, size_t *ret_end)
{
    struct slice body = gather->ret->body;
    size_t byte_count;
    if (json_view_read(&gather->view, body.at + begin, body.byte_count - begin, &byte_count) != JSON_DONE)
        return READ_NONE;
    *ret_end = begin + byte_count;
    return gather_add_viewed(gather, (struct range){ begin, *ret_end });
}
