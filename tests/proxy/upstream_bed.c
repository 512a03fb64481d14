/*
 * upstream_bed.c - see the header.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include "upstream_bed.h"

void bed_init(struct bed *bed, const char *host, int port)
{
    struct settings *settings = &bed->settings;
    memset(bed, 0, sizeof *bed);
    (void)snprintf(bed->host, sizeof bed->host, "%s", host);
    (void)snprintf(bed->authority, sizeof bed->authority, "%s:%d", host, port);
    settings->target.host = bed->host;
    settings->target.port = (uint16_t)port;
    settings->target.authority = bed->authority;
    settings->target.base_path = settings->target.base_query = bed->nothing;
    settings->connect_timeout_ms = 2000;
    settings->target_timeout_ms = 10000;
    settings->target_idle_ms = 2000;
    settings->is_target_verified = true;
    settings->response_bytes_max = 1 << 20;
    for (int status = 200; status <= 299; status++)
        settings->applied_status.bits[status / 64] |= UINT64_C(1) << (status % 64);
}

void bed_start(struct bed *bed, unsigned connections_max)
{
    bed->base = event_base_new();
    bed->resolver = resolver_new();
    assert(bed->base != NULL && bed->resolver != NULL);
    bed->upstream = upstream_new(bed->base, &bed->settings, bed->resolver, connections_max);
    assert(bed->upstream != NULL);
    struct settings_mistakes mistakes;
    struct credentials *credentials = credentials_of(&bed->settings, &mistakes);
    assert(credentials != NULL);
    upstream_credentials_set(bed->upstream, credentials);
    credentials_release(credentials);
}

void bed_stop(struct bed *bed)
{
    upstream_free(bed->upstream);
    resolver_free(bed->resolver);
    event_base_free(bed->base);
}

static void on_done(struct flight *flight)
{
    struct trip *trip = (struct trip *)(void *)flight; /* its first member */
    trip->done_count++;
    if (trip->then != NULL)
        trip->then(trip);
}

void trip_init(struct trip *trip, struct bed *bed, const char *method, const char *target, const char *body,
               size_t body_bytes)
{
    memset(trip, 0, sizeof *trip);
    trip->bed = bed;
    trip->flight.method = slice_of_text(method);
    trip->flight.target = slice_of_text(target);
    trip->flight.fields = trip->fields;
    trip->flight.is_head_request = strcmp(method, "HEAD") == 0;
    trip->flight.done = on_done;
    if (body == NULL)
        return;
    trip->part = slice_of(body, body_bytes);
    trip->flight.has_body = true;
    trip->flight.parts = &trip->part;
    trip->flight.part_count = 1;
    trip->flight.body_bytes = body_bytes;
}

void trip_field(struct trip *trip, const char *name, const char *value)
{
    assert(trip->flight.field_count < sizeof trip->fields / sizeof trip->fields[0]);
    trip->fields[trip->flight.field_count++] =
        (struct http1_field){ slice_of_text(name), slice_of_text(value) };
}

void trip_send(struct trip *trip)
{
    unsigned before = trip->done_count;
    upstream_send(trip->bed->upstream, &trip->flight);
    trip->is_from_inside = trip->done_count != before;
}

void trip_wait(struct trip *trip)
{
    while (trip->done_count == 0)
        (void)event_base_loop(trip->bed->base, EVLOOP_ONCE);
}

void bed_spin_ms(struct bed *bed, int ms)
{
    struct timeval left = { ms / 1000, (ms % 1000) * 1000 };
    (void)event_base_loopexit(bed->base, &left);
    (void)event_base_dispatch(bed->base);
}

void trip_run(struct trip *trip, struct bed *bed, const char *method, const char *target, const char *body)
{
    trip_init(trip, bed, method, target, body, body == NULL ? 0 : strlen(body));
    trip_send(trip);
    trip_wait(trip);
}

void bed_warm(struct bed *bed)
{
    struct trip trip;
    trip_run(&trip, bed, "GET", "/warm", NULL);
    assert(trip.flight.attempt_class == ATTEMPT_KNOWN);
    flight_deinit(&trip.flight);
}

const char *class_name(enum attempt_class class)
{
    static const char *const names[] = { "not_sent", "known", "unknown" };
    return names[class];
}
