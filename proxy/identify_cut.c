/*
 * identify_cut.c - see identify_cut.h.
 *
 * Members that follow each other go as one run, because they share commas:
 *
 *     {"a":1, "b":2, "c":3, "d":4}
 *             ^^^^^^^^^^^^^^           a comma follows: up to the next member
 *           ^^^^^^^^^^^^^^^^^^^^^^     the run ends the object: with the comma in front
 */
#include "identify_cut.h"

#include <assert.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* By their first byte; there are few, and they mostly come in order. */
static void members_sort(struct slice members[], size_t member_count)
{
    for (size_t i = 1; i < member_count; i++) {
        struct slice member = members[i];
        size_t place = i;
        for (; place > 0 && members[place - 1].at > member.at; place--)
            members[place] = members[place - 1];
        members[place] = member;
    }
}

static size_t blank_end(const char bytes[], size_t byte_count, size_t from)
{
    while (from < byte_count && is_blank(bytes[from]))
        from++;
    return from;
}

static size_t blank_begin(const char bytes[], size_t until)
{
    while (until > 0 && is_blank(bytes[until - 1]))
        until--;
    return until;
}

/* Where the member behind the one that ends at END begins; END itself when none follows. */
static size_t next_begin(const char bytes[], size_t byte_count, size_t end)
{
    size_t comma = blank_end(bytes, byte_count, end);
    if (comma == byte_count || bytes[comma] != ',')
        return end;
    return blank_end(bytes, byte_count, comma + 1);
}

static struct range run_range(const char bytes[], size_t byte_count, size_t begin, size_t end)
{
    size_t next = next_begin(bytes, byte_count, end);
    if (next != end)
        return (struct range){ begin, next };
    size_t before = blank_begin(bytes, begin);
    if (before > 0 && bytes[before - 1] == ',')
        begin = before - 1;
    return (struct range){ begin, end };
}

size_t cut_members(const char bytes[], size_t byte_count, struct slice members[], size_t member_count,
                   struct range ret_ranges[])
{
    size_t range_count = 0;
    members_sort(members, member_count);
    for (size_t i = 0; i < member_count;) {
        size_t begin = (size_t)(members[i].at - bytes), end = begin + members[i].byte_count;
        assert(end <= byte_count);
        for (i++; i < member_count; i++) {
            size_t next = (size_t)(members[i].at - bytes), next_end = next + members[i].byte_count;
            bool is_inside = next_end <= end;
            if (!is_inside && next != next_begin(bytes, byte_count, end))
                break;
            end = is_inside ? end : next_end;
        }
        ret_ranges[range_count++] = run_range(bytes, byte_count, begin, end);
    }
    return range_count;
}
