/*
 * identify_rules.h - what is looked for in every request, worked out once: rules, their locators, their JSON wants.
 *
 * A rule is a set of places that belong together, such as the three headers of one product.  It holds when it yields
 * topic, partition and offset; a rule of which one place is missing yields nothing.  Private to identify*.c.
 */
#ifndef SINKONCE_IDENTIFY_RULES_H
#define SINKONCE_IDENTIFY_RULES_H

#include "json_scan.h"
#include "settings.h"

/* The columns of a rule, in the order of the settings. */
enum coordinate { IN_TOPIC, IN_PARTITION, IN_OFFSET, IN_TIMESTAMP, COORDINATE_COUNT };

enum { RULES_MAX = 12, TELLTALES_MAX = 4, NO_WANT = JSON_WANTS_MAX };

/* What a record is to its request: which rules may hold for it. */
enum place {
    PLACE_WHOLE,   /* the request itself */
    PLACE_ELEMENT, /* one of several JSON values */
    PLACE_SOURCE,  /* the source line of a bulk action, or the document inside it */
    PLACE_COUNT
};

/* One place to look at. */
struct source {
    const struct locator *locator; /* borrowed from the settings or the identifier */
    size_t want;                   /* LOCATOR_JSON: which of the wants; else NO_WANT */
};

struct column {
    struct source sources[LOCATORS_MAX]; /* tried in order */
    size_t count;
};

/* A member that must be there for a rule to hold. */
struct telltale {
    const char *pointer; /* as a locator, "json:/..." */
    unsigned kinds;      /* a bit for each json_kind that is right */
    const char *text;    /* the value's bytes; NULL: any */
    size_t want;
};

struct rule {
    const char *name;                  /* static */
    struct column id;                  /* the composite value: one source or none */
    const struct id_format *id_format; /* borrowed from the settings or the identifier */
    struct column columns[COORDINATE_COUNT];
    struct telltale telltales[TELLTALES_MAX];
    size_t telltale_count;
    size_t needs[3]; /* wants without which the rule cannot hold, so that most rules are passed by quickly */
    size_t need_count;
    size_t unhashed;      /* want that differs between deliveries of one record; NO_WANT: none */
    bool is_witness_only; /* is compared with other rules, but finds nothing by itself */
};

struct rule_set {
    struct rule rules[RULES_MAX];
    size_t rule_count;
    struct json_want wants[JSON_WANTS_MAX]; /* tokens are borrowed from settings and the identifier's lists */
    size_t want_count;
    struct json_search search; /* for these wants: copied for each request */
    size_t envelope;           /* want of the array by which a known envelope shows itself; NO_WANT: none */
};

struct identifier {
    struct rule_set sets[PLACE_COUNT];
    const struct settings *settings;      /* borrowed */
    uint64_t seed;                        /* of the tables that a sender could fill on purpose */
    struct locator_list dapr_envelope;    /* owned */
    struct locator_list relic_envelope;   /* owned */
    struct locator_list document, upsert; /* owned: the two places of a bulk update */
    struct id_format bulk_format;         /* owned: topic+partition+offset */
    struct locator_list *lists;           /* owned: what the default rules' texts were parsed into */
    size_t list_count;
};

#endif
