/*
 * locator.h - where in a request a coordinate stands, as the operator wrote it.
 *
 * Parsed at start from "header:x-kafka-topic,json:/__topic"; read by the identification.
 */
#ifndef SINKONCE_LOCATOR_H
#define SINKONCE_LOCATOR_H

#include <stdint.h>
#include "slice.h"

enum locator_kind {
    LOCATOR_HEADER,   /* field name, compared without case */
    LOCATOR_FRAGMENT, /* what follows the last '#' of a header's value; default locators only, never parsed */
    LOCATOR_JSON,     /* RFC 6901 pointer, relative to the record */
    LOCATOR_QUERY,    /* query parameter, percent-decoded */
    LOCATOR_CONST,    /* the value itself */
    LOCATOR_PATH,     /* the request's path; for composite values only */
    LOCATOR_BULK_ID,  /* the _id of a bulk request's action; for composite values only */
};

enum { LOCATORS_MAX = 8, POINTER_DEPTH_MAX = 16 };

struct locator {
    enum locator_kind kind;
    char *text;                       /* owned: header name in lower case, parameter name, constant; for JSON the
                                         pointer as given */
    size_t token_count;               /* JSON: unescaped reference tokens of the pointer */
    char *tokens[POINTER_DEPTH_MAX];  /* owned */
};

struct locator_list {
    struct locator items[LOCATORS_MAX];
    size_t count;
};

/* A composite format such as "/t/{topic}/{partition}/{offset}": literals around the three placeholders.  The numbers
 * are split off from the outside, those behind the topic from the right, so that a topic may hold the literals'
 * characters. */
struct id_format {
    char *text;                /* owned; NULL when none */
    char *literals[4];         /* owned: before, between and after the placeholders, in the order of the format */
    enum id_part { ID_TOPIC, ID_PARTITION, ID_OFFSET } parts[3];
    size_t part_count;         /* 2 or 3: the topic may come from elsewhere */
};

/* [main] NULL when TEXT was understood, else what is wrong, in words that follow the setting's name (static).  RET must
 * be deinitialised in both cases. */
const char *locator_list_parse(const char *text, bool is_composite, struct locator_list *ret);
/* TEXT is a pointer alone, without "json:"; RET holds that one. */
const char *locator_pointer_parse(const char *text, struct locator_list *ret);
void locator_list_deinit(struct locator_list *list);
const char *id_format_parse(const char *text, struct id_format *ret);
void id_format_deinit(struct id_format *format);

/* What a composite value says. */
struct id_value {
    struct slice topic; /* into the value; nothing when the format has no topic */
    int32_t partition;
    int64_t offset;
};
/* False: VALUE does not have the form of FORMAT, or a number is no plain decimal in range.  The topic is not checked. */
MUST_CHECK bool id_format_match(const struct id_format *format, struct slice value, struct id_value *ret_value);

#endif
