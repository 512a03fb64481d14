/*
 * partitions.c - the partitions that the ledger has met: a hash table over the PART rows, and a list by name.
 *
 * One leaves only when a person forgets it, so the list is put in order only when one has come, and only for who asks:
 * claims need no order.  Nor is one taken out of the list when it leaves: that would be a pass over all of them each time.
 */
#include "partitions.h"

#include <assert.h>
#include <stdlib.h>
#include "opens.h"
#include "replays.h"

enum { BUCKETS_AT_FIRST = 64, LISTED_AT_FIRST = 64 };

/* FNV-1a: topics are short, and whoever may choose them may also write to the target. */
static uint64_t hash_of(struct slice topic, int32_t number)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < topic.byte_count; i++)
        hash = (hash ^ (uint8_t)topic.at[i]) * 1099511628211u;
    hash = (hash ^ (uint32_t)number) * 1099511628211u;
    return hash ^ hash >> 32;
}

static struct slice topic_of(const struct partition *partition)
{
    return slice_of(partition->topic, partition->topic_bytes);
}

static struct partition **bucket_of(const struct machine *machine, struct slice topic, int32_t number)
{
    return &machine->buckets[hash_of(topic, number) & (machine->bucket_count - 1)];
}

struct partition *partitions_find(const struct machine *machine, struct slice topic, int32_t number)
{
    if (machine->bucket_count == 0)
        return NULL;
    struct partition *partition = *bucket_of(machine, topic, number);
    while (partition != NULL && (partition->number != number || !slice_equals(topic_of(partition), topic)))
        partition = partition->next_in_bucket;
    return partition;
}

/* Twice the buckets, so that a chain stays about one long. */
static bool grow(struct machine *machine)
{
    size_t old_count = machine->bucket_count;
    struct partition **old = machine->buckets;
    size_t count = old_count == 0 ? BUCKETS_AT_FIRST : 2 * old_count;
    struct partition **buckets = calloc(count, sizeof buckets[0]);
    if (buckets == NULL)
        return old_count > 0; /* longer chains will do */
    machine->buckets = buckets;
    machine->bucket_count = count;
    for (size_t i = 0; i < old_count; i++) {
        for (struct partition *next, *partition = old[i]; partition != NULL; partition = next) {
            next = partition->next_in_bucket;
            struct partition **bucket = bucket_of(machine, topic_of(partition), partition->number);
            partition->next_in_bucket = *bucket;
            *bucket = partition;
        }
    }
    free(old);
    return true;
}

/* Room for one more in the list. */
static bool list_grow(struct machine *machine)
{
    partitions_sweep(machine);
    if (machine->listed_count < machine->by_name_room)
        return true;
    size_t room = machine->by_name_room == 0 ? LISTED_AT_FIRST : 2 * machine->by_name_room;
    struct partition **by_name = realloc(machine->by_name, room * sizeof by_name[0]);
    if (by_name == NULL)
        return false;
    machine->by_name = by_name;
    machine->by_name_room = room;
    return true;
}

static struct partition *insert(struct machine *machine, struct slice topic, int32_t number)
{
    if ((machine->partition_count >= machine->bucket_count && !grow(machine)) ||
        (machine->listed_count >= machine->by_name_room && !list_grow(machine)))
        return NULL;
    struct partition *partition = calloc(1, sizeof *partition);
    if (partition == NULL)
        return NULL;
    memcpy(partition->topic, topic.at, topic.byte_count);
    partition->topic_bytes = topic.byte_count;
    partition->number = number;
    struct partition **bucket = bucket_of(machine, topic, number);
    partition->next_in_bucket = *bucket;
    *bucket = partition;
    machine->by_name[machine->listed_count++] = partition;
    machine->partition_count++;
    return partition;
}

bool partitions_have_room(const struct machine *machine, size_t count)
{
    uint64_t max = machine->settings.partitions_max;
    return max == 0 || (machine->partition_count <= max && max - machine->partition_count >= count);
}

static void begin_history(struct machine *machine, struct partition *partition, uint32_t generation)
{
    partition->row = (struct part_row){ .pid = machine->counters.next_pid++,
                                        .generation = generation,
                                        .seen_first = -1,
                                        .lowest = -1,
                                        .highest = -1,
                                        .last_ms = partition->row.last_ms };
    machine->is_counters_dirty = true;
    partitions_touch(machine, partition);
}

struct partition *partitions_add(struct machine *machine, struct slice topic, int32_t number)
{
    struct partition *partition = insert(machine, topic, number);
    if (partition == NULL) {
        rows_spoil(machine->rows);
        return NULL;
    }
    begin_history(machine, partition, 0);
    return partition;
}

void partitions_renew(struct machine *machine, struct partition *partition)
{
    struct past_row past = { .partition = partition->number, .generation = partition->row.generation };
    struct key key = key_pair(TABLE_PAST, partition->row.pid, 0);
    struct value value;
    memcpy(past.topic, partition->topic, partition->topic_bytes + 1);
    past_row_write(&past, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
    machine->figures.interval_count -= partition->row.interval_count;
    begin_history(machine, partition, partition->row.generation + 1);
}

void partitions_touch(struct machine *machine, struct partition *partition)
{
    if (partition->is_dirty)
        return;
    partition->is_dirty = true;
    partition->next_dirty = machine->dirty_partitions;
    machine->dirty_partitions = partition;
}

void partitions_untouch(struct machine *machine, struct partition *partition)
{
    struct partition **link = &machine->dirty_partitions;
    while (*link != NULL && *link != partition)
        link = &(*link)->next_dirty;
    if (*link != NULL)
        *link = partition->next_dirty;
    partition->is_dirty = false;
    partition->next_dirty = NULL;
}

static void unlink_from_bucket(struct machine *machine, const struct partition *partition)
{
    struct partition **link = bucket_of(machine, topic_of(partition), partition->number);
    while (*link != partition)
        link = &(*link)->next_in_bucket;
    *link = partition->next_in_bucket;
}

void partitions_drop(struct machine *machine, struct partition *partition)
{
    struct key key = key_part(topic_of(partition), partition->number);
    assert(partition->opens.count == 0 && partition->conflict == NULL && partition->replay_count == 0);
    if (partition->is_dirty)
        partitions_untouch(machine, partition);
    for (size_t i = 0; i < ENDED_DOUBTS; i++)
        if (machine->ended[i].partition == partition)
            machine->ended[i] = (struct ended_doubt){ 0 };
    rows_delete(machine->rows, key_slice(&key));
    unlink_from_bucket(machine, partition);
    opens_forget(machine, partition);
    partition->is_over = true;
    machine->partition_count--;
}

void partitions_sweep(struct machine *machine)
{
    size_t kept_count = 0, sorted_count = 0;
    if (machine->listed_count == machine->partition_count)
        return;
    for (size_t i = 0; i < machine->listed_count; i++) {
        struct partition *partition = machine->by_name[i];
        if (partition->is_over) {
            free(partition);
            continue;
        }
        machine->by_name[kept_count++] = partition;
        sorted_count += i < machine->sorted_count;
    }
    machine->listed_count = kept_count;
    machine->sorted_count = sorted_count;
}

static int order_of(const struct partition *partition, const char *topic, int32_t number)
{
    int order = strcmp(partition->topic, topic);
    return order != 0 ? order : (partition->number > number) - (partition->number < number);
}

static int compare_names(const void *a, const void *b)
{
    const struct partition *const *left = a, *const *right = b;
    return order_of(*left, (*right)->topic, (*right)->number);
}

struct partition *const *partitions_by_name(struct machine *machine)
{
    partitions_sweep(machine);
    if (machine->sorted_count < machine->partition_count)
        qsort(machine->by_name, machine->partition_count, sizeof machine->by_name[0], compare_names);
    machine->sorted_count = machine->partition_count;
    return machine->by_name;
}

size_t partitions_behind(struct machine *machine, const char *topic, int32_t number)
{
    struct partition *const *all = partitions_by_name(machine);
    size_t low = 0, high = machine->partition_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order_of(all[middle], topic, number) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct partition *partitions_next(const struct machine *machine, const struct partition *partition)
{
    if (partition != NULL && partition->next_in_bucket != NULL)
        return partition->next_in_bucket;
    size_t bucket = 0;
    if (partition != NULL)
        bucket = (size_t)(bucket_of(machine, topic_of(partition), partition->number) - machine->buckets) + 1;
    while (bucket < machine->bucket_count && machine->buckets[bucket] == NULL)
        bucket++;
    return bucket < machine->bucket_count ? machine->buckets[bucket] : NULL;
}

static bool load_row(struct machine *machine, struct slice key, struct slice value)
{
    struct slice topic;
    struct part_row row;
    int32_t number;
    if (!key_read_part(key, &topic, &number) || !part_row_read(value, &row) ||
        row.pid >= machine->counters.next_pid)
        return false;
    struct partition *partition = insert(machine, topic, number);
    if (partition == NULL)
        return false;
    partition->row = row;
    machine->figures.interval_count += row.interval_count;
    return true;
}

void partitions_load(struct machine *machine)
{
    struct key from = { .bytes = { TABLE_PART }, .byte_count = 1 };
    struct slice key = key_slice(&from), value;
    machine->figures.interval_count = 0;
    while (rows_seek(machine->rows, key, &key, &value) && key_is_of(key, TABLE_PART)) {
        if (!load_row(machine, key, value)) {
            rows_spoil(machine->rows);
            return;
        }
        memcpy(from.bytes, key.at, key.byte_count);
        from.bytes[key.byte_count] = 0; /* the least key behind this one */
        key = slice_of((const char *)from.bytes, key.byte_count + 1);
    }
}

static void write_row(struct machine *machine, const struct partition *partition)
{
    struct key key = key_part(topic_of(partition), partition->number);
    struct value value;
    part_row_write(&partition->row, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
    if (partition->conflict == NULL)
        return;
    key = key_number(TABLE_CONFLICTS, partition->conflict->id);
    conflict_row_write(partition->conflict, partition->row.pid, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
}

void partitions_flush(struct machine *machine)
{
    for (struct partition *next, *partition = machine->dirty_partitions; partition != NULL;
         partition = next) {
        next = partition->next_dirty;
        if (partition->replay != NULL)
            replays_save(machine, partition->replay);
        else
            write_row(machine, partition);
        partition->is_dirty = false;
        partition->next_dirty = NULL;
    }
    machine->dirty_partitions = NULL;
}

void partitions_forget(struct machine *machine)
{
    partitions_sweep(machine);
    for (size_t i = 0; i < machine->partition_count; i++) {
        opens_forget(machine, machine->by_name[i]);
        free(machine->by_name[i]->conflict);
        free(machine->by_name[i]);
    }
    free(machine->buckets);
    free(machine->by_name);
    machine->buckets = NULL;
    machine->by_name = NULL;
    machine->bucket_count = machine->by_name_room = 0;
    machine->partition_count = machine->listed_count = machine->sorted_count = 0;
    machine->dirty_partitions = NULL;
}
