/*
 * rows_mem.c - rows.h in memory: a sorted array.
 */
#include "rows_mem.h"

#include <assert.h>
#include <stdlib.h>

struct row {
    char *key, *value; /* owned */
    size_t key_bytes, value_bytes;
};

struct rows {
    struct row *at; /* owned, ascending */
    size_t count, room;
    enum rows_status status, planned_status;
    size_t fail_in; /* changes; 0: never */
    bool is_changed;
};

static int compare(const struct row *row, struct slice key)
{
    size_t shorter = row->key_bytes < key.byte_count ? row->key_bytes : key.byte_count;
    int order = memcmp(row->key, key.at, shorter);
    return order != 0 ? order : (row->key_bytes > key.byte_count) - (row->key_bytes < key.byte_count);
}

/* The first row at KEY or behind it. */
static size_t search(const struct rows *rows, struct slice key)
{
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare(&rows->at[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct rows *rows, size_t index, struct slice key)
{
    return index < rows->count && compare(&rows->at[index], key) == 0;
}

static char *copy(struct slice bytes)
{
    char *room = malloc(bytes.byte_count + 1);
    assert(room != NULL);
    if (bytes.byte_count > 0)
        memcpy(room, bytes.at, bytes.byte_count);
    return room;
}

static struct slice key_of(const struct row *row)
{
    return slice_of(row->key, row->key_bytes);
}

static struct slice value_of(const struct row *row)
{
    return slice_of(row->value, row->value_bytes);
}

struct rows *rows_mem_new(void)
{
    struct rows *rows = calloc(1, sizeof *rows);
    assert(rows != NULL);
    return rows;
}

struct rows *rows_mem_copy(const struct rows *rows)
{
    struct rows *twin = rows_mem_new();
    twin->at = malloc((rows->count + 1) * sizeof twin->at[0]);
    assert(twin->at != NULL);
    twin->count = rows->count;
    twin->room = rows->count + 1;
    for (size_t i = 0; i < rows->count; i++) {
        twin->at[i] = rows->at[i];
        twin->at[i].key = copy(key_of(&rows->at[i]));
        twin->at[i].value = copy(value_of(&rows->at[i]));
    }
    return twin;
}

void rows_mem_free(struct rows *rows)
{
    if (rows == NULL)
        return;
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->at[i].key);
        free(rows->at[i].value);
    }
    free(rows->at);
    free(rows);
}

size_t rows_mem_count(const struct rows *rows)
{
    return rows->count;
}

void rows_mem_fail_at(struct rows *rows, size_t count, enum rows_status status)
{
    rows->fail_in = count;
    rows->planned_status = status;
}

void rows_mem_damage(struct rows *rows, unsigned *which)
{
    assert(rows->count > 0);
    struct row *row = &rows->at[(size_t)rand_r(which) % rows->count];
    if (row->value_bytes == 0)
        return;
    size_t at = (size_t)rand_r(which) % row->value_bytes;
    if (rand_r(which) % 8 == 0)
        row->value_bytes = at;
    else
        row->value[at] = (char)(row->value[at] ^ (1 << rand_r(which) % 8));
}

void rows_mem_begin(struct rows *rows)
{
    rows->is_changed = false;
    rows->status = ROWS_OK;
    rows->fail_in = 0;
}

bool rows_get(struct rows *rows, struct slice key, struct slice *ret_value)
{
    size_t index = search(rows, key);
    if (rows->status != ROWS_OK || !is_at(rows, index, key))
        return false;
    *ret_value = value_of(&rows->at[index]);
    return true;
}

static bool give(const struct rows *rows, size_t index, struct slice *ret_key, struct slice *ret_value)
{
    if (rows->status != ROWS_OK || index >= rows->count)
        return false;
    *ret_key = key_of(&rows->at[index]);
    *ret_value = value_of(&rows->at[index]);
    return true;
}

bool rows_seek(struct rows *rows, struct slice key, struct slice *ret_key, struct slice *ret_value)
{
    return give(rows, search(rows, key), ret_key, ret_value);
}

bool rows_seek_back(struct rows *rows, struct slice key, struct slice *ret_key, struct slice *ret_value)
{
    size_t index = search(rows, key);
    return give(rows, is_at(rows, index, key) ? index : index - 1, ret_key, ret_value);
}

/* False: this change is not made. */
static bool may_change(struct rows *rows)
{
    rows->is_changed = true;
    if (rows->status == ROWS_OK && rows->fail_in > 0 && --rows->fail_in == 0)
        rows->status = rows->planned_status;
    return rows->status == ROWS_OK;
}

void rows_put(struct rows *rows, struct slice key, struct slice value)
{
    size_t index = search(rows, key);
    if (!may_change(rows))
        return;
    char *value_copy = copy(value); /* it may come out of the row that it goes into */
    if (!is_at(rows, index, key)) {
        if (rows->count == rows->room) {
            rows->room = 2 * rows->room + 8;
            rows->at = realloc(rows->at, rows->room * sizeof rows->at[0]);
            assert(rows->at != NULL);
        }
        memmove(&rows->at[index + 1], &rows->at[index], (rows->count - index) * sizeof rows->at[0]);
        rows->at[index] = (struct row){ .key = copy(key), .key_bytes = key.byte_count };
        rows->count++;
    }
    free(rows->at[index].value);
    rows->at[index].value = value_copy;
    rows->at[index].value_bytes = value.byte_count;
}

void rows_delete(struct rows *rows, struct slice key)
{
    size_t index = search(rows, key);
    if (!may_change(rows) || !is_at(rows, index, key))
        return;
    free(rows->at[index].key);
    free(rows->at[index].value);
    rows->count--;
    memmove(&rows->at[index], &rows->at[index + 1], (rows->count - index) * sizeof rows->at[0]);
}

void rows_spoil(struct rows *rows)
{
    if (rows->status == ROWS_OK)
        rows->status = ROWS_FAILED;
}

enum rows_status rows_status(const struct rows *rows)
{
    return rows->status;
}

bool rows_is_changed(const struct rows *rows)
{
    return rows->is_changed;
}
