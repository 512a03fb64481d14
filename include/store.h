/*
 * store.h - which records the target already has, and which are in doubt.
 *
 * What reaches the disk is posted now and answered later: one fsync serves all that wait.
 * The ledger thread alone owns the write transaction and decides all claims.
 *
 *     a loop's thread                         the ledger thread
 *     store_claim(), store_settle()  ------>  takes all that waits: one transaction, one commit
 *     store_port_deliver(): done()   <------  hands each posting back, the port's fd turns readable
 *
 * The states of a record:
 *     absent --claim--> INTENT --settle--> APPLIED | absent | IN_DOUBT;  IN_DOUBT --resolve--> APPLIED | absent
 *
 * Nothing here logs, exits, or knows HTTP, JSON or libevent.  No pointer into the database gets out.
 * Threads: [main] before the loops start or after they have ended; [port] the thread that opened the port.
 */
#ifndef SINKONCE_STORE_H
#define SINKONCE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "record_key.h"

struct store;
struct store_port;

enum store_status {
    STORE_OK,
    STORE_FULL,   /* the size limit or the disk; nothing was claimed */
    STORE_FAILED, /* the disk failed; what is on it is known only after it has been read back */
    STORE_BUSY,   /* more in doubt than in_doubt_max: nothing was claimed */
    STORE_CROWDED,/* a partition that was never met, above partitions_max: nothing was claimed */
};

enum { RECORD_CONTEXT_BYTES_MAX = 1024, STORE_VERSION_BYTES = 32 };

enum verdict {
    VERDICT_NEW,       /* never seen, or re-opened: now an INTENT of this claim, and the caller must settle it */
    VERDICT_APPLIED,   /* the target has it: do not send */
    VERDICT_IN_FLIGHT, /* claimed by an exchange that is still running */
    VERDICT_IN_DOUBT,  /* nobody can know; only a policy, a probe or a person decides */
    VERDICT_CONFLICT,  /* same coordinates, another record; or the partition waits for a decision */
    VERDICT_UNMET,     /* of STORE_CROWDED alone: its partition is one of those that were never met */
};

/* Why a record is in doubt. */
enum doubt_cause {
    DOUBT_CRASH,    /* the process died between intent and result */
    DOUBT_NO_REPLY, /* the connection ended, or the answer was not whole */
    DOUBT_TIMEOUT,  /* the target did not answer in time */
    DOUBT_STATUS,   /* a status that proves neither */
    DOUBT_GUARD,    /* the library was stopped from sending it a second time */
    DOUBT_COUNT
};

/* What happens to a doubt when its record is delivered again. */
enum doubt_policy {
    POLICY_HOLD,
    POLICY_RETRY,          /* VERDICT_NEW again, counted as a possible duplicate */
    POLICY_ASSUME_APPLIED, /* VERDICT_APPLIED, counted as a possible loss */
};

enum outcome {
    OUTCOME_APPLIED,
    /* The two free the record again.  When a policy had re-opened it, it is in doubt again: they say nothing about what
     * was sent before. */
    OUTCOME_NOT_APPLIED, /* the target refused it */
    OUTCOME_NOT_SENT,    /* no byte can have left */
    OUTCOME_UNKNOWN,     /* becomes IN_DOUBT */
};

/* The target's answer, kept to be given again.  Everything is copied by the store. */
struct stored_reply {
    int status;               /* 0: none kept */
    struct slice content_type;
    struct slice body;
};

/* The store's own list link and bookkeeping; callers only provide the room. */
struct posting {
    struct posting *next;
    struct store_port *port;
    int kind;
    enum store_status status;
    uint64_t posted_ns; /* of the fake in the tests, which waits by itself */
};

/* One exchange's claim.  The caller's memory, lent to the store from store_claim() until done(); meanwhile the
 * caller neither reads, changes nor frees it, nor anything that it points to. */
struct claim {
    const struct record *records; /* borrowed until done(); each key at most once */
    size_t record_count;          /* 1 to the setting MAX_RECORDS */
    const struct slice *contexts; /* NULL, or for each record what a probe must know of it: at most
                                     RECORD_CONTEXT_BYTES_MAX are kept with the intent until it is settled */
    uint32_t wait_ms;             /* how long to wait for flights and doubts before they are reported */
    void (*done)(struct claim *claim, enum store_status status);
    /* results, valid from done() on */
    enum verdict *ret_verdicts;   /* borrowed until done(): record_count cells */
    uint64_t ret_claim_id;        /* names the claim in store_settle(); 0 when nothing was NEW */
    size_t ret_new_count;         /* how many are VERDICT_NEW; with any IN_FLIGHT, IN_DOUBT or CONFLICT it is 0 */
    size_t ret_replayed_count;    /* NEW that were APPLIED and lie in an open replay window */
    size_t ret_retried_count;     /* NEW that were doubts and were re-opened by POLICY_RETRY */
    struct stored_reply ret_reply;/* with one record that is APPLIED: the answer it got, if kept.  Its bytes are
                                     the claim's: release them with store_claim_deinit() */
    /* the store's */
    struct posting posting;
    char *reply_bytes;            /* owned: behind ret_reply */
    void *waiter;                 /* owned by the ledger while it waits */
};

/* The result of a claim.  Memory rules as for struct claim; RECORDS and VERDICTS are those of the claim, OUTCOMES
 * has a cell for each, read only where the verdict was NEW. */
struct settlement {
    uint64_t claim_id;
    const struct record *records;      /* borrowed until done() */
    const enum verdict *verdicts;      /* borrowed until done() */
    const enum outcome *outcomes;      /* borrowed until done() */
    size_t record_count;
    enum doubt_cause cause;            /* for OUTCOME_UNKNOWN */
    const char *detail;                /* for OUTCOME_UNKNOWN: words for the operator, at most 95 bytes are kept */
    struct stored_reply reply;         /* kept while there is room, if it answers one record alone; 0: none */
    void (*done)(struct settlement *settlement, enum store_status status);
    struct posting posting;
};

struct store_options {
    const char *folder;           /* the data folder; created files are mode 0600 */
    const char *scope;
    const char *target;           /* name of the target that all of it is about; NULL: it is neither kept nor looked at */
    const char *former_target;    /* how TARGET was called before: a ledger of it goes on under the new name; NULL: none */
    uint64_t ledger_bytes_max;
    bool is_missing_refused;      /* an empty folder is an error */
    bool is_network_fs_allowed;   /* tests only */
    enum doubt_policy policy;
    uint64_t in_doubt_max;        /* records */
    uint64_t partitions_max;      /* no partition is met above it, those that are known go on; 0: any number */
    uint32_t marks;               /* offsets per partition for which marks are kept */
    bool is_identity_checked;     /* off: marks are neither kept nor compared */
    uint64_t window;              /* offsets below the highest applied one in which gaps are exact */
    bool is_first_sight_held;     /* a partition first seen above offset 0 waits for a decision */
    uint32_t replies;             /* how many answers are kept */
    uint32_t reply_bytes_max;     /* an answer with a longer body is not kept */
    uint32_t commit_delay_us;
    uint32_t lock_wait_ms;        /* how long to wait for the folder while another process has it */
};

enum store_open_status {
    STORE_OPENED,
    STORE_LOCKED,      /* another process owns the folder */
    STORE_UNREADABLE,  /* damaged, foreign, another format, scope or target, network file system, missing */
};

/* [main] Open or create the ledger, turn every INTENT into IN_DOUBT (DOUBT_CRASH) durably, start the ledger thread.
 * On failure RET_WHY holds a sentence that says what is wrong and what to do. */
MUST_CHECK enum store_open_status store_open(const struct store_options *options, struct store **ret_store,
                                             char ret_why[], size_t why_bytes_max);
/* [main] Once every port is freed.  What was posted is finished first.  NULL is fine. */
void store_close(struct store *store);

/* [port] NULL: no memory, no fd. */
MUST_CHECK struct store_port *store_port_new(struct store *store);
void store_port_free(struct store_port *port);                         /* [port] once nothing is posted; NULL is fine */
int store_port_fd(const struct store_port *port);                      /* [port] watch for reading; the store's */
void store_port_deliver(struct store_port *port);                      /* [port] calls done() for all finished */

/*
 * [port] Claim what is new among CLAIM's records, all or none.  Never waits for the disk, allocates nothing, cannot
 * fail: what goes wrong arrives at done(), which is called exactly once, on this thread, from store_port_deliver()
 * and never from in here.
 *   STORE_OK      the claim is on disk; ret_verdicts[i] says what is known of records[i].
 *                 When any verdict is IN_FLIGHT, IN_DOUBT or CONFLICT nothing was claimed, and those that are
 *                 neither these nor APPLIED read VERDICT_NEW although they are free.
 *   STORE_FULL, STORE_BUSY  nothing was claimed; ret_verdicts means nothing
 *   STORE_CROWDED nothing was claimed; ret_verdicts[i] reads VERDICT_UNMET where the partition of records[i] was never met,
 *                 and means nothing else
 *   STORE_FAILED  the claim may be on disk or not: nothing may be sent; the store itself releases it once it can
 * A claim that is all APPLIED is answered even while the store is full.
 * Postings of one port are applied in the order posted.
 */
void store_claim(struct store_port *port, struct claim *claim);
void store_claim_deinit(struct claim *claim);

/*
 * [port] Record what became of a claim's NEW records.
 *   STORE_OK      it is on disk
 *   STORE_FAILED  it is not on disk yet: the connector must not be told of success.  The store keeps the outcome in
 *                 memory, goes on trying until it is written, and answers for the records as settled only then.
 */
void store_settle(struct store_port *port, struct settlement *settlement);

/* ---- questions and changes of the admin port; done() as above ------------------------------------------------ */

struct doubt_row {
    uint64_t id;
    char topic[TOPIC_BYTES_MAX + 1];
    int32_t partition;
    int64_t first, last;   /* offsets, both included */
    uint64_t record_count; /* those among them that are in doubt */
    uint64_t since_ms;     /* Unix time */
    uint32_t attempts;     /* how often it has been sent, or may have been */
    enum doubt_cause cause;
    char detail[96];
};

struct partition_row {
    const char *topic;        /* the question's, like the row */
    int32_t partition;
    uint32_t generation;      /* 0: the first history */
    int64_t lowest, highest;  /* applied offsets; -1: none */
    uint64_t applied_count;
    uint64_t interval_count, gap_count; /* gap_count: offsets between lowest and highest that are not applied */
    uint64_t in_doubt_count, in_flight_count;
    uint64_t last_ms;         /* Unix time of the last result */
    bool is_in_conflict;
};

enum record_state { RECORD_ABSENT, RECORD_IN_FLIGHT, RECORD_APPLIED, RECORD_IN_DOUBT, RECORD_BELOW_WINDOW };

struct conflict_row {
    uint64_t id;
    char topic[TOPIC_BYTES_MAX + 1];
    int32_t partition;
    int64_t offset;
    record_mark stored, seen;
    uint64_t since_ms, count;  /* first noticed; how often a delivery met it */
    bool is_tail;              /* only the tail differs: a log that was cut, rather than a topic that was created anew */
    bool is_first_sight;       /* not a contradiction: a partition first seen above offset 0, and held */
};

enum event_kind {
    EVENT_CREATED, EVENT_RECOVERED, EVENT_IN_DOUBT, EVENT_RESOLVED, EVENT_CONFLICT, EVENT_DECIDED, EVENT_FIRST_SIGHT,
    EVENT_FORGOTTEN, EVENT_ADMIN, EVENT_DISK_ERROR, EVENT_JUMP, EVENT_REWIND, EVENT_REPLAY_OPENED, EVENT_REPLAY_CLOSED,
    EVENT_BACKUP, EVENT_KIND_COUNT
};

struct event_row {
    uint64_t id, time_ms;
    enum event_kind kind;
    char topic[TOPIC_BYTES_MAX + 1]; /* "" when it concerns none */
    int32_t partition;               /* -1: all of the topic, or none */
    int64_t first, last;
    char detail[192];
};

struct interval_row {
    int64_t first, last;
    enum record_state state; /* APPLIED, BELOW_WINDOW (folded, with gaps), IN_FLIGHT or IN_DOUBT */
};

struct probe_row {
    uint64_t doubt_id;
    char topic[TOPIC_BYTES_MAX + 1];
    int32_t partition;
    int64_t offset;
    uint64_t since_ms;
    uint32_t attempts;
    uint32_t context_bytes;
    char context[RECORD_CONTEXT_BYTES_MAX];
};

struct replay_row {
    uint64_t id;
    char topic[TOPIC_BYTES_MAX + 1];
    int32_t partition;
    int64_t first, last;
    uint64_t opened_ms, until_ms;
    uint64_t replayed_count; /* records sent again so far */
};

enum question_kind {
    ASK_RECORD,     /* topic, partition, first -> state and, when in doubt, the row in doubts */
    ASK_DOUBTS,     /* topic or "", after_id, row_count_max -> doubts, ascending by id */
    ASK_PARTITIONS, /* topic or "", after_topic and after_partition, row_count_max -> partitions, ascending by topic and
                       number, from behind that one on.  From the start: after_topic "" */
    ASK_CONFLICTS,  /* topic or "", after_id, row_count_max -> conflicts, ascending by id */
    ASK_INTERVALS,  /* topic, partition, first (from where), row_count_max -> intervals, ascending, of the present
                       generation: what is applied, in flight and in doubt; what lies between is a gap.  ret_count is
                       one above ret_row_count when there are more; NOT_FOUND: a partition never met */
    ASK_PROBES,     /* topic or "", after_id and after_offset, row_count_max -> probes: each record in doubt, ascending
                       by doubt id and offset, from behind (after_id, after_offset) on.  From the start: 0 and -1 */
    ASK_REPLAYS,    /* topic or "", after_id, row_count_max -> replays, ascending by id */
    DO_REPLAY_OPEN, /* topic, partition, first..last, until_ms, detail -> ret_id: what is applied in there by now may be
                       sent again, once each, until until_ms (Unix time).  MISMATCH: it overlaps an open window, or there are
                       1,000; NOT_FOUND: a partition never met, an empty range, a time that is over */
    DO_REPLAY_CLOSE,/* id of the window, detail.  ret_count: records that were sent again */
    DO_FORGET,      /* topic, partition or -1, first..last or -1..-1; expect_count, detail: what is applied there is
                       unknown again; doubts and flights stay.  ret_count: applied records.  -1..-1 also drops what is
                       kept of former generations, and the partition itself unless a doubt, a flight, a conflict or a
                       replay window holds it.  Where ground has been folded, ret_count is its share of it.
                       Many partitions go in steps, about 150 and a commit each, and what else is posted is served in
                       between: for it a partition is what it was, or one never met.  Each goes as a whole, once, and
                       only with what was counted: MISMATCH with ret_done_count above 0: so many were forgotten when
                       one was met that had changed; it and those behind it stay, ret_count counts them.  After a
                       FAILED or a crash as well the rest is there as before, and the action can be repeated */
    DO_BACKUP,      /* detail: path of a file that must not exist (MISMATCH); a consistent copy while all goes on.
                       ret_count: bytes; ret_why: what went wrong, or that another one is being written (FAILED) */
    ASK_EVENTS,     /* after_id, row_count_max -> events, ascending by id */
    DO_RESOLVE_ONE, /* id of the doubt, is_applied, detail.  NOT_FOUND with ret_id set: that doubt is over, and ret_state
                       is what its first record is now; with ret_id 0: never heard of, or over for long */
    DO_RESOLVE,     /* filter: topic or "", partition or -1, first..last or -1..-1, since_ms: 0, or only doubts that began
                       at exactly that time; is_applied, expect_count, detail.  ret_count: records resolved.
                       Very many go in steps, at most 2,000 and a commit each, and what else is posted is served in
                       between.  Only what was counted is resolved: what ends meanwhile, or is cut in pieces, is left
                       out of it and of ret_count, and what begins meanwhile stays.  After a FAILED or a crash the rest
                       is in doubt as before, and the action can be repeated */
    DO_DECIDE,      /* id of the conflict, is_new_topic, detail */
    DO_NOTE,        /* detail: kept as an event of kind ADMIN, and nothing else */
};

enum question_status {
    QUESTION_OK,
    QUESTION_NOT_FOUND,
    QUESTION_MISMATCH, /* expect_count differs; ret_count says what would have been changed; nothing was, but DO_FORGET */
    QUESTION_FAILED,   /* the disk */
};

struct question {
    enum question_kind kind;
    char topic[TOPIC_BYTES_MAX + 1];
    int32_t partition;
    int64_t first, last;
    uint64_t id, after_id, expect_count;
    uint64_t since_ms, until_ms; /* Unix time */
    int64_t after_offset;
    char after_topic[TOPIC_BYTES_MAX + 1];
    int32_t after_partition;
    bool is_applied, is_new_topic;
    char detail[192];         /* who and why: goes into the event */
    size_t row_count_max;     /* at most 10,000 */
    void (*done)(struct question *question, enum store_status status);
    /* results */
    enum question_status ret_status;
    enum record_state ret_state;
    uint64_t ret_id;
    char ret_why[160];
    uint64_t ret_count;       /* rows that match in all, from the place asked for on; or records changed */
    uint64_t ret_done_count;  /* DO_FORGET: records forgotten */
    size_t ret_row_count;
    union {
        struct doubt_row *doubts;
        struct partition_row *partitions;
        struct conflict_row *conflicts;
        struct event_row *events;
        struct interval_row *intervals;
        struct probe_row *probes;
        struct replay_row *replays;
        void *any;            /* owned by the question: release with store_question_deinit() */
    } ret;
    struct steps *steps;           /* the store's until done(): how far DO_FORGET or DO_RESOLVE has come */
    struct posting posting;
};
void store_ask(struct store_port *port, struct question *question); /* [port] */
void store_question_deinit(struct question *question);

enum { STORE_FAILURE_BYTES = 96 };

/* [any] Figures that may be read at any time without asking: relaxed atomics inside. */
struct store_figures {
    uint64_t used_bytes, max_bytes, created_ms;
    uint64_t partition_count, partitions_max; /* of the options */
    uint64_t commit_count, commit_record_count, error_count;
    uint64_t in_doubt_records, in_doubt_oldest_ms; /* oldest: Unix time, 0: none */
    uint64_t doubts_by_cause[DOUBT_COUNT];         /* those of now */
    uint64_t entered_by_cause[DOUBT_COUNT];        /* since the start, those that the recovery found included */
    uint64_t resolved_applied, resolved_not_applied, resolved_retry, resolved_assumed;
    uint64_t jump_count, rewind_count; /* offsets far above the highest, or below the lowest, applied one */
    uint64_t replayed_count, replay_open_count;
    uint64_t conflict_count, first_sight_count, below_window_count, interval_count;
    uint64_t conflict_open_count; /* that wait for a decision now; conflict_count: noticed since the start */
    uint64_t commit_seconds_sum_ns;
    uint64_t boot_count;
    bool is_full, is_failing;
    bool is_disk_full; /* it is the disk that has no room, and not ledger_bytes_max that was reached */
    uint64_t refusal_count, refusal_ms; /* how often full or failing is over by now, and how long the last time took */
    char failure[STORE_FAILURE_BYTES];  /* why, in words: this time, or else the last */
};
void store_figures_get(const struct store *store, struct store_figures *ret_figures);

/* ---- a ledger that nobody runs: sinkonce ledger stat, verify, export, import ---------------------------------- */

/* [main] One line of an export, or of an import, without its end; false stops it.  CONTEXT is the caller's. */
typedef bool store_line_fn(void *context, struct slice line);
/* [main] Each takes the lock (STORE_LOCKED while sinkonce runs).  RET_WHY as in store_open().
 *   stat    figures and sizes as "name value" lines
 *   verify  reads every row and checks what must hold between them; a line per finding; STORE_UNREADABLE when any
 *   export  JSON lines: a head with format version, id, scope; then partitions, applied intervals, doubts (and intents),
 *           marks; a tail with the counts.  Replies and events are not exported.
 *   import  into a folder without a ledger; everything or nothing; a damaged line is named by its number */
MUST_CHECK enum store_open_status store_stat(const struct store_options *options, store_line_fn *line, void *context,
                                             char ret_why[], size_t why_bytes_max);
MUST_CHECK enum store_open_status store_verify(const struct store_options *options, store_line_fn *line, void *context,
                                               char ret_why[], size_t why_bytes_max);
MUST_CHECK enum store_open_status store_export(const struct store_options *options, store_line_fn *line, void *context,
                                               char ret_why[], size_t why_bytes_max);
/* NEXT gives one line after the other (its bytes live until the next call) and false at the end. */
MUST_CHECK enum store_open_status store_import(const struct store_options *options,
                                               bool (*next)(void *context, struct slice *ret_line), void *context,
                                               char ret_why[], size_t why_bytes_max);

/* [any] Borrowed as long as STORE.  True: the ledger takes nothing at present, so that a claim that it has granted before
 * must not be sent any more either; its settlement is still due. */
const atomic_bool *store_failing(const struct store *store);
/* [any] 32 hexadecimal digits and a zero: the ledger's own random name. */
const char *store_id(const struct store *store);
void store_database_version(char ret_version[STORE_VERSION_BYTES]); /* [any] of the library that runs: "0.9.24" */

const char *doubt_cause_name(enum doubt_cause cause);     /* "crash", "no_reply", "timeout", "status", "guard" */
const char *event_kind_name(enum event_kind kind);        /* "ledger.created", "record.in_doubt", ... */
const char *record_state_name(enum record_state state);

#endif
