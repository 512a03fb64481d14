/*
 * request.c - the memory of a request.
 */
#include "request.h"

#include <stdlib.h>

#include "clock.h"
#include "metrics.h"

void body_pool_add(struct body_pool *pool, size_t byte_count)
{
    if (pool == NULL)
        return;
    atomic_fetch_add(&pool->taken_bytes, byte_count);
    metrics_gauge_add(GAUGE_BODY_BYTES, (int64_t)byte_count);
}

void body_pool_give_back(struct body_pool *pool, size_t byte_count)
{
    if (pool == NULL)
        return;
    atomic_fetch_sub(&pool->taken_bytes, byte_count);
    metrics_gauge_add(GAUGE_BODY_BYTES, -(int64_t)byte_count);
}

bool body_pool_is_full(const struct body_pool *pool)
{
    return atomic_load_explicit(&pool->taken_bytes, memory_order_relaxed) > pool->bytes_max;
}

struct request *request_new(struct body_pool *pool, const char peer[REQUEST_PEER_BYTES], bool is_trusted_peer)
{
    struct request *request = malloc(sizeof *request);
    if (request == NULL)
        return NULL;
    request->bytes = NULL;
    request->body = NULL;
    request->byte_count = request->body_bytes = request->body_room = 0;
    request->pool = pool;
    request->pool_bytes = 0;
    request->started_ns = clock_monotonic_ns();
    request->is_trusted_peer = is_trusted_peer;
    memcpy(request->peer, peer, sizeof request->peer);
    return request;
}

void request_free(struct request *request)
{
    if (request == NULL)
        return;
    if (request->pool_bytes > 0)
        body_pool_give_back(request->pool, request->pool_bytes);
    free(request->bytes);
    free(request->body);
    free(request);
}

static struct slice moved(struct slice slice, const char *from, char *to)
{
    return slice.byte_count == 0 ? slice_of(to, 0) : slice_of(to + (slice.at - from), slice.byte_count);
}

static void head_move(struct http1_head *head, const char *from, char *to)
{
    struct slice *own[] = { &head->method_text, &head->target, &head->path, &head->query, &head->host };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        *own[i] = moved(*own[i], from, to);
    for (size_t i = 0; i < head->field_count; i++) {
        head->fields[i].name = moved(head->fields[i].name, from, to);
        head->fields[i].value = moved(head->fields[i].value, from, to);
    }
}

bool request_head_keep(struct request *request, const char bytes[])
{
    char *copy = malloc(request->head.byte_count);
    if (copy == NULL)
        return false;
    memcpy(copy, bytes, request->head.byte_count);
    head_move(&request->head, bytes, copy);
    request->bytes = copy;
    request->byte_count = request->head.byte_count;
    return true;
}

bool request_room_take(struct request *request, size_t byte_count)
{
    struct body_pool *pool = request->pool;
    if (pool == NULL)
        return true;
    size_t before = atomic_fetch_add(&pool->taken_bytes, byte_count);
    if (before + byte_count > pool->bytes_max && before > request->pool_bytes) {
        atomic_fetch_sub(&pool->taken_bytes, byte_count);
        return false;
    }
    request->pool_bytes += byte_count;
    metrics_gauge_add(GAUGE_BODY_BYTES, (int64_t)byte_count);
    return true;
}

enum finish request_body_grow(struct request *request, size_t more_bytes, size_t room_max)
{
    size_t wanted = request->body_bytes + more_bytes;
    if (wanted <= request->body_room)
        return FINISH_NONE;
    size_t room = request->body_room == 0 ? REQUEST_BODY_ROOM_FIRST : request->body_room;
    while (room < wanted)
        room *= 2;
    if (room > room_max)
        room = room_max;
    if (!request_room_take(request, room - request->body_room))
        return FINISH_BUSY;
    char *body = realloc(request->body, room);
    if (body == NULL)
        return FINISH_NO_MEMORY;
    request->body = body;
    request->body_room = room;
    return FINISH_NONE;
}
