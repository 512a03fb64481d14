/*
 * settings_quantity.c - "250ms", "16MiB", "512".
 */
#include "settings_quantity.h"
#include <inttypes.h>

struct unit {
    const char *name;
    uint64_t scale;
    bool is_in_bounds; /* used to write a bound down */
};

static const struct unit plain_units[] = { { "", 1, true }, { NULL, 0, false } };
static const struct unit duration_units[] = {
    { "ms", 1, true },      { "s", 1000, true },     { "m", 60000, true },
    { "h", 3600000, true }, { "d", 86400000, true }, { NULL, 0, false },
};
static const struct unit size_units[] = {
    { "B", 1, true },
    { "KB", 1000, false },
    { "KiB", UINT64_C(1) << 10, true },
    { "MB", 1000000, false },
    { "MiB", UINT64_C(1) << 20, true },
    { "GB", 1000000000, false },
    { "GiB", UINT64_C(1) << 30, true },
    { "TB", UINT64_C(1000000000000), false },
    { "TiB", UINT64_C(1) << 40, true },
    { NULL, 0, false },
};

static const struct {
    const struct unit *units;
    const char *not_a_number, *no_unit, *unknown_unit;
} kinds[] = {
    [QUANTITY_COUNT] = { plain_units, "must be a whole number", NULL,
                         "must be a whole number, without a unit" },
    [QUANTITY_DURATION] = { duration_units, "must be a whole number with a unit: ms, s, m, h or d",
                            "needs a unit: ms, s, m, h or d",
                            "must be a whole number with one of these units: ms, s, m, h or d" },
    [QUANTITY_SIZE] = { size_units, "must be a whole number with a unit: KiB, MiB, GiB, KB, MB, GB or B",
                        "needs a unit: KiB, MiB, GiB, KB, MB, GB or B",
                        "must be a whole number with one of these units: KiB, MiB, GiB, KB, MB, GB or B" },
};

/* Digits off TEXT; what does not fit into 64 bits is the largest number, which every bound refuses. */
static const char *parse_digits(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    bool is_too_large = false;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            is_too_large = true;
    }
    *ret = is_too_large ? UINT64_MAX : value;
    return text;
}

/* In the largest unit in which it is whole. */
static void write_bound(enum quantity_kind kind, uint64_t value, char room[32])
{
    const struct unit *best = kinds[kind].units;
    for (const struct unit *unit = best; unit->name != NULL; unit++) {
        if (unit->is_in_bounds && value >= unit->scale && value % unit->scale == 0)
            best = unit;
    }
    snprintf(room, 32, "%" PRIu64 "%s", value / best->scale, value == 0 ? "" : best->name);
}

static const char *out_of_bounds(enum quantity_kind kind, const struct settings_row *row,
                                 char room[SETTINGS_WORDS_MAX])
{
    char low[32], high[32];
    write_bound(kind, row->low, low);
    write_bound(kind, row->high, high);
    snprintf(room, SETTINGS_WORDS_MAX, "must be from %s to %s", low, high);
    return room;
}

const char *quantity_parse(enum quantity_kind kind, const char *text, const struct settings_row *row,
                           uint64_t *ret, char room[SETTINGS_WORDS_MAX])
{
    const struct unit *unit = kinds[kind].units;
    uint64_t value;
    const char *rest = parse_digits(text, &value);
    if (rest == text || *rest == '.' || *rest == ',')
        return kinds[kind].not_a_number;
    if (*rest == '\0' && value != 0 && kinds[kind].no_unit != NULL)
        return kinds[kind].no_unit;
    while (*rest != '\0' && unit->name != NULL && strcmp(rest, unit->name) != 0)
        unit++;
    if (unit->name == NULL)
        return kinds[kind].unknown_unit;
    if (__builtin_mul_overflow(value, unit->scale, &value) || value < row->low || value > row->high)
        return out_of_bounds(kind, row, room);
    *ret = value;
    return NULL;
}
