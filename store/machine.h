/*
 * machine.h - the claim machine: what is known of each record, and who may send it.
 *
 * Deterministic: rows, postings and the time go in, changed rows and results come out.  It has no clock, no
 * thread, no file and no random; the same history gives the same ledger.  ledger.c is the shell that feeds it:
 *
 *     machine_begin()   a transaction is open
 *     machine_claim(), machine_settle(), machine_ask(), machine_wake(), ...
 *     machine_end()     all changes are in the rows; the shell commits
 *     machine_keep()    the commit is durable                 -- or --
 *     machine_forget(), machine_load()    it failed: all is read back from what is on disk
 *
 * [ledger] throughout, or [main] before the ledger's thread runs.
 */
#ifndef SINKONCE_STORE_MACHINE_H
#define SINKONCE_STORE_MACHINE_H

#include "format.h"
#include "rows.h"
#include "store.h"

#ifdef NDEBUG
#error "the assertions of the ledger stop it before it says what is not so: build without NDEBUG"
#endif

struct machine;

struct machine_settings {
    enum doubt_policy policy;
    uint64_t in_doubt_max;
    uint64_t partitions_max; /* 0: any number */
    uint32_t marks;
    bool is_identity_checked;
    uint64_t window;
    bool is_first_sight_held;
    uint32_t replies;
    uint32_t reply_bytes_max;
};

/* What a batch may do besides answering. */
enum machine_mode {
    MACHINE_OPEN,     /* everything */
    MACHINE_NO_CLAIM, /* no new claims (STORE_FULL), no answers kept; settlements and decisions still */
    MACHINE_READ,     /* nothing that writes */
};

struct machine_time {
    uint64_t unix_ms; /* written down for people; nothing is decided by it */
    uint64_t mono_ms; /* deadlines of waiting claims */
};

struct machine_figures {
    uint64_t in_doubt_records, in_doubt_oldest_ms, doubts_by_cause[DOUBT_COUNT];
    uint64_t entered_by_cause[DOUBT_COUNT];
    uint64_t resolved_applied, resolved_not_applied, resolved_retry, resolved_assumed;
    uint64_t conflict_open_count, conflict_count, first_sight_count, below_window_count, interval_count;
    uint64_t partition_count;
    uint64_t jump_count, rewind_count, replayed_count, replay_open_count;
    uint64_t changed_record_count; /* records claimed or settled since the start */
};

/* Where answered claims go; called from inside machine_claim() and machine_wake(). */
struct machine_answers {
    void (*claim)(void *shell, struct claim *claim, enum store_status status);
    void *shell; /* borrowed */
};

MUST_CHECK struct machine *machine_new(const struct machine_settings *settings,
                                       struct machine_answers answers);
void machine_free(struct machine *machine); /* no claim may wait in it; NULL is fine */

/* Read partitions and open records.  BOOT numbers this life of the process.  A failure is that of ROWS. */
void machine_load(struct machine *machine, struct rows *rows, uint64_t boot);
/* At start, inside a batch: every INTENT that an earlier life left becomes IN_DOUBT (DOUBT_CRASH). */
void machine_recover(struct machine *machine);
/* Drop all that was learnt from the rows.  Claims that wait go on waiting and are judged anew. */
void machine_forget(struct machine *machine);

void machine_begin(struct machine *machine, struct rows *rows, struct machine_time now,
                   enum machine_mode mode);
/* Inside a batch: while room is short, old answers go, so that records need not be refused for them. */
void machine_room(struct machine *machine, bool is_short);
void machine_end(struct machine *machine);
void machine_keep(struct machine *machine);

/* Answers the claim, or lets it wait. */
void machine_claim(struct machine *machine, struct claim *claim);
void machine_settle(struct machine *machine, const struct settlement *settlement);
/* Answers QUESTION, or takes a step of it. */
void machine_ask(struct machine *machine, struct question *question);
/* What was asked is durable, or has changed nothing.  True: it was only a step, QUESTION is to be asked again. */
MUST_CHECK bool machine_goes_on(struct question *question);
/* QUESTION is not asked again. */
void machine_give_up(struct question *question);
/* A claim whose batch could not be committed: give up what it may have on disk. */
void machine_release(struct machine *machine, uint64_t claim_id);
/* Judge again the waiting claims whose hindrance changed or whose time is over. */
void machine_wake(struct machine *machine);
/* Answer all waiting claims with STATUS, without judging them. */
void machine_refuse_waiters(struct machine *machine, enum store_status status);
/* An event of no topic. */
void machine_note(struct machine *machine, enum event_kind kind, const char *detail);
/* Change a row of ours, to see whether the disk works. */
void machine_probe(struct machine *machine);

size_t machine_waiter_count(const struct machine *machine);
bool machine_has_woken(const struct machine *machine);
/* When the next waiting claim's time is over, on the mono_ms clock; UINT64_MAX: none waits. */
uint64_t machine_deadline_ms(const struct machine *machine);
/* When the next replay window's time is over, on the unix_ms clock; UINT64_MAX: none is open. */
uint64_t machine_window_until_ms(const struct machine *machine);
void machine_figures_get(struct machine *machine, struct machine_figures *ret_figures);

#endif
