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
#include "metrics.h"

/* Questions that the store may hold at once: an operator needs few, and each costs memory. */
enum { ADMIN_OPEN_MAX = 64, ADMIN_ROWS_DEFAULT = 100, ADMIN_REASON_BYTES_MAX = 120 };

enum { ADMIN_CAUSE_COUNT = 8, ADMIN_CODE_COUNT = METRICS_CODE_MAX - METRICS_CODE_MIN + 1 };

/* Counters as they were at one moment. */
struct admin_sample {
    uint64_t taken_ns; /* 0: never */
    uint64_t keyed, unkeyed, duplicate, uncuttable, unauthorized, ledger_errors;
    uint64_t target_errors[ADMIN_CAUSE_COUNT]; /* in the order of admin_recent.c */
    uint64_t target_answers[ADMIN_CODE_COUNT]; /* by status, from METRICS_CODE_MIN on */
};

struct admin {
    struct conn_service service, health_service;
    struct admin_parts parts;          /* borrowed */
    struct credentials *credentials;   /* held; NULL: no TLS, and the token is that of the settings */
    size_t open_count;                 /* calls that are lent to the store */
    struct admin_sample before, later; /* one and none to two minutes ago: what is compared with now */
};

struct admin_call {
    struct admin *admin;     /* borrowed */
    struct conn *conn;       /* borrowed; NULL once it has gone */
    struct request *request; /* owned */
    uint64_t id;             /* the number at the end of the path, where the route has one */
    struct slice rest;       /* what follows the route's path, where it takes any */
    bool is_health;          /* came through the socket of the health check */
    bool is_asked;           /* lent to the store: freed in its done() */
    bool is_always_rendered; /* also when the ledger could not answer: the answer does not hang on it */
    bool is_ledger_failed;   /* then: it could not */
    json_t *made;            /* owned: the answer that waits for its note */
    struct question question;
    void (*render)(struct admin_call *call); /* the answer to a question that went well */
    char reason[ADMIN_REASON_BYTES_MAX + 1]; /* of a change, as the operator gave it */
};

enum admin_route_kind {
    ADMIN_READS,
    ADMIN_PROBES,  /* reads, on the socket of the health check too */
    ADMIN_CHANGES, /* passes the gate; a body is JSON, and POST and PUT have one */
    ADMIN_EXPLAINS /* changes nothing; a body of a type that no form can send */
};

/* A path, what may be done there, and who does it. */
struct admin_route {
    const char *path; /* ends in a slash: a decimal number follows; in a slash and a star: anything does */
    enum http1_method method; /* HTTP1_GET answers HEAD as well */
    void (*handler)(struct admin_call *call);
    enum admin_route_kind kind;
};

bool admin_has_type(const struct admin_call *call, const char *type); /* of its body */

/* TEXT is taken; NULL: no memory, answered with 503. */
void admin_answer_text(struct admin_call *call, int status, const char *content_type, char *text);
/* JSON is taken; NULL: no memory, answered with 503. */
void admin_answer_json(struct admin_call *call, int status, json_t *json);
/* The same with one more field of the head. */
void admin_answer_json_with(struct admin_call *call, int status, json_t *json,
                            const struct http1_field *field);
/* {"error":LABEL,"detail":...}; FIELD is one more field of the head, or NULL. */
void admin_refuse(struct admin_call *call, int status, const char *label, const struct http1_field *field,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Lend call->question to the store; RENDER runs when it comes back, and may lend it again. */
void admin_ask(struct admin_call *call, void (*render)(struct admin_call *call));

/* Something was changed that the ledger does not know: keep DETAIL as an event, then answer with JSON, which is taken and
 * gets a member "noted". */
void admin_note(struct admin_call *call, const char *detail, json_t *json);

/* Unix milliseconds as RFC 3339 text; null for 0. */
json_t *admin_time_json(uint64_t time_ms);
/* A number that no reader may round: as text. */
json_t *admin_id_json(uint64_t id);
/* TEXT, whose bytes may have come from anywhere; what is not UTF-8 reads as question marks. */
json_t *admin_text_json(const char *text);
/* JSON as text, with END behind it, owned by the caller.  NULL: JSON is, or no memory. */
char *admin_json_dump(const json_t *json, size_t flags, const char *end);

/* One more sentence for the operator.  What admin_warn_of_recent() adds is about the last minutes. */
void admin_warn(json_t *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *admin_one_or_many(uint64_t count, const char *one, const char *many);
void admin_warn_of_recent(json_t *warnings, const struct admin *admin); /* admin_recent.c */

/* The handlers. */
void admin_on_livez(struct admin_call *call); /* admin_health.c */
void admin_on_readyz(struct admin_call *call);
void admin_on_startupz(struct admin_call *call);
void admin_on_metrics(struct admin_call *call); /* admin_metrics.c */
void admin_on_stats(struct admin_call *call);
void admin_on_version(struct admin_call *call);
void admin_on_page(struct admin_call *call);       /* admin_page.c */
void admin_on_status(struct admin_call *call);     /* admin_status.c */
void admin_on_config(struct admin_call *call);     /* admin_config.c */
void admin_on_partitions(struct admin_call *call); /* admin_list.c */
void admin_on_doubts(struct admin_call *call);
void admin_on_record(struct admin_call *call);
void admin_on_conflicts(struct admin_call *call);
void admin_on_events(struct admin_call *call);
void admin_on_intervals(struct admin_call *call);
void admin_on_replays(struct admin_call *call);
void admin_on_explain(struct admin_call *call);     /* admin_explain.c */
void admin_on_resolve_one(struct admin_call *call); /* admin_change.c */
void admin_on_resolve_many(struct admin_call *call);
void admin_on_decide(struct admin_call *call);
void admin_on_replay_open(struct admin_call *call);
void admin_on_replay_close(struct admin_call *call);
void admin_on_forget(struct admin_call *call);
void admin_on_mode(struct admin_call *call); /* admin_control.c */
void admin_on_log_level(struct admin_call *call);
void admin_on_drain(struct admin_call *call);
void admin_on_resume(struct admin_call *call);
void admin_on_backup(struct admin_call *call);

#endif
