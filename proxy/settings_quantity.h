/*
 * settings_quantity.h - whole numbers, durations and sizes, with their bounds.
 *
 * A decider.  A unit is demanded, since 5 is five of what the reader happens to think of.
 */
#ifndef SINKONCE_SETTINGS_QUANTITY_H
#define SINKONCE_SETTINGS_QUANTITY_H

#include "settings_rows.h"

enum quantity_kind { QUANTITY_COUNT, QUANTITY_DURATION, QUANTITY_SIZE };

/* NULL and *RET (plain, milliseconds or bytes) within the row's bounds, or what is wrong as settings_type.parse. */
const char *quantity_parse(enum quantity_kind kind, const char *text, const struct settings_row *row,
                           uint64_t *ret, char room[SETTINGS_WORDS_MAX]);

#endif
