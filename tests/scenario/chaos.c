/*
 * chaos.c - F-40: a target that closes, resets or stalls at each moment of an exchange.
 *
 *     {close, reset, stall} x {before request, mid request, after request, mid status, mid head, mid body}
 *     x {fresh, used connection} x {small POST, big POST, DELETE} = 108 cells
 * In each the target may see the write at most once, and the class is what the moment proves.  All cells run at once on
 * one loop; each has its own target.  Prints one line per wrong cell and the sum.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "upstream_bed.h"
#include "upstream_target.h"

enum action { ACTION_CLOSE, ACTION_RESET, ACTION_STALL, ACTION_COUNT };
enum moment { BEFORE_REQUEST, MID_REQUEST, AFTER_REQUEST, MID_STATUS, MID_HEAD, MID_BODY, MOMENT_COUNT };
enum write_kind { SMALL_POST, BIG_POST, DELETION, WRITE_COUNT };

static const char *const action_names[] = { "close", "reset", "stall" };
static const char *const moment_names[] = { "before request", "mid request", "after request",
                                            "mid status",     "mid head",    "mid body" };
static const char *const write_names[] = { "small POST", "big POST", "DELETE" };

struct cell {
    enum action action;
    enum moment moment;
    enum write_kind write;
    bool is_used;
    struct target target;
    struct settings settings;
    struct upstream *upstream;
    struct trip warm, trip;
};

enum { CELL_COUNT = ACTION_COUNT * MOMENT_COUNT * WRITE_COUNT * 2, BIG_BYTES = 512 << 10, STALL_MS = 2000 };
static struct bed bed;
static char big[BIG_BYTES];
static unsigned left_count;

/* ---- the target's side ---- */

static void act(const struct cell *cell, struct target *target, int fd, unsigned index)
{
    if (cell->action == ACTION_RESET) {
        usleep(20000); /* what was written may arrive first: a reset drops what has not been read */
        target_reset(target, index);
    } else if (cell->action == ACTION_STALL) {
        target_stall(target, fd);
    }
}

static void speak_until(enum moment moment, int fd)
{
    static const char *const answers[MOMENT_COUNT] = {
        [MID_STATUS] = "HTTP/1.1 2",
        [MID_HEAD] = "HTTP/1.1 200 OK\r\nContent-Le",
        [MID_BODY] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    };
    if (answers[moment] != NULL)
        target_write(fd, answers[moment]);
}

/* Only a first piece of the request, so that the rest is still to come. */
static void read_a_piece(struct target *target, int fd)
{
    char bytes[20];
    if (read(fd, bytes, sizeof bytes) > 0)
        atomic_fetch_add(&target->begun_count, 1);
}

static void chaos_script(struct target *target, int fd, unsigned index)
{
    const struct cell *cell = target->context;
    struct target_request request;
    if (index > 0) {
        target_answer_ok(target, fd, index); /* a second send would be served, and counted */
        return;
    }
    if (cell->is_used) {
        if (!target_read(target, fd, &request))
            return;
        target_write(fd, TARGET_OK);
    }
    if (cell->moment == MID_REQUEST)
        read_a_piece(target, fd);
    else if (cell->moment > MID_REQUEST && !target_read(target, fd, &request))
        return;
    speak_until(cell->moment, fd);
    act(cell, target, fd, index);
}

/* ---- our side ---- */

static void write_done(struct trip *trip)
{
    (void)trip;
    left_count--;
}

static void send_write(struct cell *cell)
{
    upstream_send(cell->upstream, &cell->trip.flight);
}

static void warm_done(struct trip *trip)
{
    struct cell *cell = (struct cell *)(void *)((char *)trip - offsetof(struct cell, warm));
    send_write(cell);
}

static void cell_start(struct cell *cell)
{
    target_start(&cell->target, chaos_script, cell);
    cell->settings = bed.settings;
    cell->settings.target.port = (uint16_t)cell->target.port;
    if (cell->action == ACTION_STALL)
        cell->settings.target_timeout_ms = STALL_MS;
    cell->upstream = upstream_new(bed.base, &cell->settings, bed.resolver, 2);
    if (cell->upstream == NULL)
        abort();
    if (cell->write == DELETION)
        trip_init(&cell->trip, &bed, "DELETE", "/write/1", NULL, 0);
    else
        trip_init(&cell->trip, &bed, "POST", "/write", cell->write == BIG_POST ? big : "12345",
                  cell->write == BIG_POST ? BIG_BYTES : 5);
    cell->trip.then = write_done;
    trip_init(&cell->warm, &bed, "GET", "/warm", NULL, 0);
    cell->warm.then = warm_done;
    left_count++;
    if (cell->is_used)
        upstream_send(cell->upstream, &cell->warm.flight);
    else
        send_write(cell);
}

/* A write may be half sent only when it is big; when the peer ends a connection before it has read, what it says and
 * what it does race on the wire.  Those cells have more than one right class, and UNKNOWN is always one of them. */
static bool is_class_right(const struct cell *cell)
{
    enum attempt_class class = cell->trip.flight.attempt_class;
    if (cell->moment == MID_BODY)
        return class == ATTEMPT_KNOWN && cell->trip.flight.response.status == 200 &&
               cell->trip.flight.is_answer_damaged;
    if (class == ATTEMPT_UNKNOWN)
        return true;
    if (cell->moment != BEFORE_REQUEST || cell->action == ACTION_STALL)
        return false;
    /* A close seen in time: a new connection served the write.  A reset seen while connecting: nothing was sent. */
    return cell->is_used ? class == ATTEMPT_KNOWN && cell->target.whole_count == 1
                         : class == ATTEMPT_NOT_SENT;
}

static bool cell_check(const struct cell *cell)
{
    const struct flight *flight = &cell->trip.flight;
    unsigned seen_count = cell->target.begun_count;
    bool is_good = seen_count <= 1 && cell->trip.done_count == 1 && is_class_right(cell) &&
                   !(flight->attempt_class == ATTEMPT_NOT_SENT && seen_count > 0);
    if (!is_good)
        printf("WRONG %s, %s, %s, %s connection: %s, seen %u times, %s\n", action_names[cell->action],
               moment_names[cell->moment], write_names[cell->write], cell->is_used ? "used" : "fresh",
               class_name(flight->attempt_class), seen_count, flight->detail);
    return is_good;
}

static void cells_fill(struct cell cells[CELL_COUNT])
{
    for (size_t i = 0; i < CELL_COUNT; i++) {
        cells[i].action = (enum action)(i % ACTION_COUNT);
        cells[i].moment = (enum moment)(i / ACTION_COUNT % MOMENT_COUNT);
        cells[i].write = (enum write_kind)(i / ACTION_COUNT / MOMENT_COUNT % WRITE_COUNT);
        cells[i].is_used = i >= CELL_COUNT / 2;
    }
}

int main(void)
{
    struct cell *cells = calloc(CELL_COUNT, sizeof *cells);
    unsigned good_count = 0, class_counts[3] = { 0, 0, 0 };
    if (cells == NULL)
        return 1;
    (void)signal(SIGPIPE, SIG_IGN);
    upstream_global_init();
    bed_init(&bed, "127.0.0.1", 1);
    bed.settings.target_timeout_ms = 60000;
    bed_start(&bed, 1);
    cells_fill(cells);
    for (size_t i = 0; i < CELL_COUNT; i++)
        cell_start(&cells[i]);
    while (left_count > 0)
        (void)event_base_loop(bed.base, EVLOOP_ONCE);
    for (size_t i = 0; i < CELL_COUNT; i++) {
        upstream_free(cells[i].upstream);
        good_count += cell_check(&cells[i]);
        class_counts[cells[i].trip.flight.attempt_class]++;
        target_stop(&cells[i].target);
        flight_deinit(&cells[i].warm.flight);
        flight_deinit(&cells[i].trip.flight);
    }
    bed_stop(&bed);
    printf("chaos: %u of %d cells as required; %u not sent, %u known, %u unknown\n", good_count, CELL_COUNT,
           class_counts[ATTEMPT_NOT_SENT], class_counts[ATTEMPT_KNOWN], class_counts[ATTEMPT_UNKNOWN]);
    free(cells);
    return good_count == CELL_COUNT ? 0 : 1;
}
