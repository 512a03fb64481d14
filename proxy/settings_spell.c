/*
 * settings_spell.c - the number of slips of the hand between two names.
 *
 * A decider.  A slip is a letter more, less or other, or two that changed places; upper and lower case are alike.
 */
#include "settings_spell.h"
#include <stdint.h>

enum { NAME_BYTES_MAX = 63 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Optimal string alignment, with the last two rows of the matrix kept beside the one that is filled. */
static size_t slips(const char *a, const char *b)
{
    size_t rows[3][NAME_BYTES_MAX + 1];
    const size_t a_bytes = strlen(a), b_bytes = strlen(b);
    if (a_bytes > NAME_BYTES_MAX || b_bytes > NAME_BYTES_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_bytes; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_bytes; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            const bool is_other = lower(a[i - 1]) != lower(b[j - 1]);
            row[j] = least(above[j - 1] + is_other, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_bytes % 3][b_bytes];
}

struct spelling spelling_of(const char *wanted)
{
    /* one slip in three letters is a slip; more is another word */
    return (struct spelling){ .wanted = wanted, .distance = strlen(wanted) / 3 + 1 };
}

void spelling_offer(struct spelling *spelling, const char *name)
{
    const size_t distance = slips(spelling->wanted, name);
    if (distance >= spelling->distance)
        return;
    spelling->distance = distance;
    spelling->nearest = name;
}
