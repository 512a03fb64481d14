/*
 * pairs.c - many rows of one table at once.
 */
#include "pairs.h"

static bool is_pair_of(struct rows *rows, struct slice key, enum table table, uint32_t pid,
                       uint64_t *ret_number)
{
    uint32_t pid_found;
    if (!key_is_of(key, table))
        return false;
    if (key_read_pair(key, table, &pid_found, ret_number))
        return pid_found == pid;
    rows_spoil(rows);
    return false;
}

bool pairs_next(struct rows *rows, enum table table, uint32_t pid, uint64_t number, uint64_t *ret_number,
                struct slice *ret_value)
{
    struct key from = key_pair(table, pid, number);
    struct slice key;
    return rows_seek(rows, key_slice(&from), &key, ret_value) &&
           is_pair_of(rows, key, table, pid, ret_number);
}

bool pairs_before(struct rows *rows, enum table table, uint32_t pid, uint64_t number, uint64_t *ret_number,
                  struct slice *ret_value)
{
    struct key from = key_pair(table, pid, number);
    struct slice key;
    return rows_seek_back(rows, key_slice(&from), &key, ret_value) &&
           is_pair_of(rows, key, table, pid, ret_number);
}

bool numbers_next(struct rows *rows, enum table table, uint64_t number, uint64_t *ret_number,
                  struct slice *ret_value)
{
    struct key from = key_number(table, number);
    struct slice key;
    if (!rows_seek(rows, key_slice(&from), &key, ret_value) || !key_is_of(key, table))
        return false;
    if (key_read_number(key, table, ret_number))
        return true;
    rows_spoil(rows);
    return false;
}

void pairs_delete(struct rows *rows, enum table table, uint32_t pid, uint64_t first, uint64_t last)
{
    struct slice value;
    uint64_t number;
    while (pairs_next(rows, table, pid, first, &number, &value) && number <= last) {
        struct key key = key_pair(table, pid, number);
        rows_delete(rows, key_slice(&key));
        if (number == last)
            return;
        first = number + 1;
    }
}

bool pairs_drop(struct rows *rows, enum table table, uint32_t pid, size_t *rows_left)
{
    struct slice value;
    uint64_t number;
    while (pairs_next(rows, table, pid, 0, &number, &value)) {
        if (*rows_left == 0)
            return false;
        struct key key = key_pair(table, pid, number);
        rows_delete(rows, key_slice(&key));
        --*rows_left;
    }
    return true;
}
