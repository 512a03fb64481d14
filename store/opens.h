/*
 * opens.h - the records that are claimed or in doubt: ranges in order, their rows, and who waits for them.
 *
 * Every change of a range goes through here, so that its row, the count of doubts and the waiting claims follow.
 */
#ifndef SINKONCE_STORE_OPENS_H
#define SINKONCE_STORE_OPENS_H

#include "machine_state.h"

/* The first range that ends at OFFSET or behind it; NULL: none. */
struct open_range *opens_from(const struct partition *partition, int64_t offset);
/* What is claimed: neighbours, RECORDS[0] is the first. */
struct open_claim {
    const struct record *records; /* borrowed */
    const struct slice *contexts; /* borrowed: NULL, or one for each */
    size_t count;
    uint64_t claim_id, replay_id; /* replay: the window under which they are sent again; 0: none */
};
/* Records that nobody holds are INTENT of the claim from now on. */
void opens_claim(struct machine *machine, struct partition *partition, const struct open_claim *claim);
/* CONTEXTS is NULL, or one for each offset of RANGE: kept until the range ends. */
void opens_keep_contexts(struct machine *machine, struct open_range *range, const struct slice contexts[]);
/* What is kept of OFFSET; nothing: an empty slice.  It lives until the next change. */
struct slice opens_context(struct machine *machine, const struct open_range *range, int64_t offset);
/* Cut FIRST to LAST, which lie in RANGE, out of it.  The result is in the set, but its row is not written: change it
 * with one of the calls below.  NULL: no memory, and the transaction is spoilt. */
MUST_CHECK struct open_range *opens_carve(struct machine *machine, struct open_range *range, int64_t first,
                                          int64_t last);
void opens_remove(struct machine *machine, struct open_range *range); /* and frees it */
/* The doubt is claimed again. */
void opens_reclaim(struct machine *machine, struct open_range *range, uint64_t claim_id);
/* DETAIL is cut to what a row holds; SINCE_MS: since when nobody knows. */
void opens_doubt(struct machine *machine, struct open_range *range, enum doubt_cause cause,
                 const char *detail, uint64_t since_ms);
/* MARK_NONE where none is known. */
record_mark opens_mark(const struct open_range *range, int64_t offset);
void opens_set_mark(struct machine *machine, struct open_range *range, int64_t offset, record_mark mark);

/* Put back what was written down elsewhere; has_contexts follows with the first context. */
void opens_restore(struct machine *machine, struct partition *partition, int64_t first,
                   const struct open_row *row, const record_mark marks[]);
void opens_restore_context(struct machine *machine, struct open_range *range, int64_t offset,
                           struct slice context);

void opens_load(struct machine *machine);
void opens_forget(struct machine *machine, struct partition *partition);

/* The number of records in a range. */
static inline uint64_t opens_count(const struct open_range *range)
{
    return (uint64_t)(range->row.last - range->first) + 1;
}

#endif
