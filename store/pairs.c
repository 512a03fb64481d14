/*
 * pairs.c - many rows of one table and pid at once.
 */
#include "pairs.h"

bool pairs_next(struct rows *rows, enum table table, uint32_t pid, uint64_t number, uint64_t *ret_number,
                struct slice *ret_value)
{
    struct key from = key_pair(table, pid, number);
    struct slice key;
    uint32_t pid_found;
    return rows_seek(rows, key_slice(&from), &key, ret_value) &&
           key_read_pair(key, table, &pid_found, ret_number) && pid_found == pid;
}

bool pairs_before(struct rows *rows, enum table table, uint32_t pid, uint64_t number, uint64_t *ret_number,
                  struct slice *ret_value)
{
    struct key from = key_pair(table, pid, number);
    struct slice key;
    uint32_t pid_found;
    return rows_seek_back(rows, key_slice(&from), &key, ret_value) &&
           key_read_pair(key, table, &pid_found, ret_number) && pid_found == pid;
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
