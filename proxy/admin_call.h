/*
 * admin_call.h - one request on the admin port, from its route to its answer; inside the admin port only.
 *
 *     admin_on_request --> route --> gate --> handler --> admin_answer_...()          answered at once
 *                                                    \--> admin_ask() ... render() --> admin_answer_...()
 *
 * A handler calls exactly one of admin_answer_...(), admin_refuse() and admin_ask().  While a question is lent to the
 * store its call stays alive, also when the operator's connection has gone: then CONN is NULL and the answer dropped.
 */
#ifndef SINKONCE_ADMIN_CALL_H
#define SINKONCE_ADMIN_CALL_H

#include <jansson.h>
#include "admin.h"

/* Questions that the store may hold at once: an operator needs few, and each costs memory. */
enum { ADMIN_OPEN_MAX = 64, ADMIN_ROWS_DEFAULT = 100, ADMIN_REASON_BYTES_MAX = 120 };

struct admin {
    struct conn_service service;
    const struct settings *settings;   /* borrowed */
    struct store *store;               /* borrowed */
    struct store_port *port;           /* borrowed: the main thread's */
    const struct program_state *state; /* borrowed */
    size_t open_count;                 /* calls that are lent to the store */
};

struct admin_call {
    struct admin *admin;     /* borrowed */
    struct conn *conn;       /* borrowed; NULL once it has gone */
    struct request *request; /* owned */
    uint64_t id;             /* the number at the end of the path, where the route has one */
    bool is_asked;           /* lent to the store: freed in its done() */
    struct question question;
    void (*render)(struct admin_call *call); /* the answer to a question that went well */
    char reason[ADMIN_REASON_BYTES_MAX + 1]; /* of a change, as the operator gave it */
};

/* A path, what may be done there, and who does it. */
struct admin_route {
    const char *path;         /* ends in a slash: a decimal number follows */
    enum http1_method method; /* HTTP1_GET answers HEAD as well */
    void (*handler)(struct admin_call *call);
    bool is_change; /* passes the gate, and needs a JSON body */
};

/* TEXT is taken; NULL: no memory, answered with 503. */
void admin_answer_text(struct admin_call *call, int status, const char *content_type, char *text);
/* JSON is taken; NULL: no memory, answered with 503. */
void admin_answer_json(struct admin_call *call, int status, json_t *json);
/* {"error":LABEL,"detail":...}; FIELD is one more field of the head, or NULL. */
void admin_refuse(struct admin_call *call, int status, const char *label, const struct http1_field *field,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Lend call->question to the store; RENDER runs when it comes back with QUESTION_OK. */
void admin_ask(struct admin_call *call, void (*render)(struct admin_call *call));

/* Unix milliseconds as RFC 3339 text; null for 0. */
json_t *admin_time_json(uint64_t time_ms);
/* A number that no reader may round: as text. */
json_t *admin_id_json(uint64_t id);
/* TEXT, whose bytes may have come from anywhere; what is not UTF-8 reads as question marks. */
json_t *admin_text_json(const char *text);

/* The handlers. */
void admin_on_livez(struct admin_call *call); /* admin_health.c */
void admin_on_readyz(struct admin_call *call);
void admin_on_startupz(struct admin_call *call);
void admin_on_metrics(struct admin_call *call);
void admin_on_version(struct admin_call *call);
void admin_on_status(struct admin_call *call);     /* admin_status.c */
void admin_on_config(struct admin_call *call);     /* admin_config.c */
void admin_on_partitions(struct admin_call *call); /* admin_list.c */
void admin_on_doubts(struct admin_call *call);
void admin_on_record(struct admin_call *call);
void admin_on_conflicts(struct admin_call *call);
void admin_on_events(struct admin_call *call);
void admin_on_resolve_one(struct admin_call *call); /* admin_change.c */
void admin_on_resolve_many(struct admin_call *call);
void admin_on_decide(struct admin_call *call);

#endif
