/*
 * firsts.c - the partitions of a claim that were never met: its stretches, sorted.
 */
#include "firsts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "partitions.h"

/* By topic and partition, in any order that is the same each time. */
static int compare_partitions(const struct record_key *a, const struct record_key *b)
{
    if (a->topic.byte_count != b->topic.byte_count)
        return a->topic.byte_count < b->topic.byte_count ? -1 : 1;
    int order = memcmp(a->topic.at, b->topic.at, a->topic.byte_count);
    return order != 0 ? order : (a->partition > b->partition) - (a->partition < b->partition);
}

static int compare_records(const void *left, const void *right)
{
    const struct record_key *a = &(*(const struct record *const *)left)->key;
    const struct record_key *b = &(*(const struct record *const *)right)->key;
    int order = compare_partitions(a, b);
    return order != 0 ? order : (a->offset > b->offset) - (a->offset < b->offset);
}

static int compare_key(const void *key, const void *element)
{
    return compare_partitions(key, &(*(const struct record *const *)element)->key);
}

/* The head of each stretch in a partition that was never met; AT NULL: only counted. */
static size_t heads_list(const struct machine *machine, const struct claim *claim, const struct record **at)
{
    size_t count = 0;
    for (size_t index = 0; index < claim->record_count;
         index += records_stretch(claim->records, claim->record_count, index)) {
        const struct record_key *key = &claim->records[index].key;
        if (partitions_find(machine, key->topic, key->partition) != NULL)
            continue;
        if (at != NULL)
            at[count] = &claim->records[index];
        count++;
    }
    return count;
}

bool firsts_find(const struct machine *machine, const struct claim *claim, struct firsts *ret_firsts)
{
    size_t head_count = heads_list(machine, claim, NULL);
    *ret_firsts = (struct firsts){ 0 };
    if (head_count == 0)
        return true;
    const struct record **at = calloc(head_count, sizeof(struct record *));
    if (at == NULL)
        return false;
    (void)heads_list(machine, claim, at);
    qsort(at, head_count, sizeof at[0], compare_records);
    size_t count = 1;
    for (size_t i = 1; i < head_count; i++)
        if (compare_partitions(&at[count - 1]->key, &at[i]->key) != 0)
            at[count++] = at[i];
    *ret_firsts = (struct firsts){ at, count };
    return true;
}

int64_t firsts_lowest(const struct firsts *firsts, const struct record_key *key)
{
    const struct record *const *first =
        bsearch(key, firsts->at, firsts->count, sizeof firsts->at[0], compare_key);
    assert(first != NULL);
    return (*first)->key.offset;
}

void firsts_deinit(struct firsts *firsts)
{
    free(firsts->at);
    *firsts = (struct firsts){ 0 };
}
