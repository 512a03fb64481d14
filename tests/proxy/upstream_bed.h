/*
 * upstream_bed.h - an event loop with an upstream on it, and flights that remember how they ended.
 */
#ifndef SINKONCE_UPSTREAM_BED_H
#define SINKONCE_UPSTREAM_BED_H

#include "resolver.h"
#include "upstream.h"

struct bed {
    struct event_base *base;
    struct settings settings;
    struct resolver *resolver;
    struct upstream *upstream;
    char host[64], authority[80], nothing[1];
};

/* One flight with room for what it borrows. */
struct trip {
    struct flight flight;
    struct http1_field fields[16];
    struct slice part;
    unsigned done_count;
    bool is_from_inside; /* done() ran inside upstream_send() */
    struct bed *bed;
    void (*then)(struct trip *trip); /* called from done(); may be NULL */
};

/* Settings with short times; change them before bed_start(). */
void bed_init(struct bed *bed, const char *host, int port);
void bed_start(struct bed *bed, unsigned connections_max);
void bed_stop(struct bed *bed);
/* METHOD and TARGET are literals; BODY NULL: none. */
void trip_init(struct trip *trip, struct bed *bed, const char *method, const char *target, const char *body,
               size_t body_bytes);
void trip_field(struct trip *trip, const char *name, const char *value);
void trip_send(struct trip *trip);
void trip_wait(struct trip *trip);
void bed_spin_ms(struct bed *bed, int ms);
/* Init, send, wait. */
void trip_run(struct trip *trip, struct bed *bed, const char *method, const char *target, const char *body);
/* Makes a kept connection: GET /warm. */
void bed_warm(struct bed *bed);
const char *class_name(enum attempt_class class);

#endif
