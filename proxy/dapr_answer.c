/*
 * dapr_answer.c - see dapr_answer.h.
 *
 * Source: Dapr, "Publish and subscribe to bulk messages": the app answers {"statuses":[{"entryId":"1","status":
 * "SUCCESS"}]} with SUCCESS, RETRY or DROP for each; Dapr delivers an entry again that is not named, or whose status is
 * empty.
 */
#include "dapr_answer.h"

#include <assert.h>
#include <stdlib.h>

#include "json_walk.h"
#include "text.h"

enum entry_status { ENTRY_UNNAMED, ENTRY_SUCCESS, ENTRY_DROP, ENTRY_RETRY, ENTRY_UNCLEAR };

/* One element of the request. */
struct entry {
    struct slice id; /* its "entryId" as it stands, quotes included */
    size_t site;
    struct slice whole; /* what the target said of it, {"entryId":...}; empty: nothing */
    enum entry_status status;
};

static char name_entry_id[] = "entryId", name_status[] = "status", name_statuses[] = "statuses";
static char *const entry_id_tokens[] = { name_entry_id }, *const status_tokens[] = { name_status };
static char *const statuses_tokens[] = { name_statuses };

/* ---- entries of the request ---------------------------------------------------------------------------------- */

static bool entry_id_read(const struct identified *identified, size_t site, struct slice *ret_id)
{
    struct json_want want = { .tokens = entry_id_tokens, .token_count = 1 };
    struct range whole = identified->sites[site].whole;
    size_t end;
    if (json_scan(identified->body.at + whole.begin, whole.end - whole.begin, &want, 1, &end) != JSON_DONE ||
        want.kind != JSON_IS_STRING || want.is_ambiguous)
        return false;
    *ret_id = want.text;
    return true;
}

bool dapr_is_bulk(const struct identified *identified)
{
    struct slice id;
    return identified->shape == SHAPE_IS_ENVELOPE && identified->site_count > 0 &&
           entry_id_read(identified, 0, &id);
}

static int compare_entries(const void *a, const void *b)
{
    struct slice left = ((const struct entry *)a)->id, right = ((const struct entry *)b)->id;
    size_t byte_count = left.byte_count < right.byte_count ? left.byte_count : right.byte_count;
    int order = memcmp(left.at, right.at, byte_count); /* both hold two quotes at least */
    return order != 0 ? order : (left.byte_count > right.byte_count) - (left.byte_count < right.byte_count);
}

/* The elements by their ids, owned by the caller; two of one id cannot be told apart.  NULL: so it is, or no memory. */
static struct entry *entries_new(const struct identified *identified)
{
    size_t count = identified->site_count;
    struct entry *entries = calloc(count + 1, sizeof *entries);
    bool is_good = entries != NULL;
    for (size_t i = 0; is_good && i < count; i++) {
        entries[i].site = i;
        is_good = entry_id_read(identified, i, &entries[i].id);
    }
    if (is_good)
        qsort(entries, count, sizeof *entries, compare_entries);
    for (size_t i = 1; is_good && i < count; i++)
        is_good = compare_entries(&entries[i - 1], &entries[i]) != 0;
    if (is_good)
        return entries;
    free(entries);
    return NULL;
}

/* ---- statuses of the target ---------------------------------------------------------------------------------- */

static enum entry_status status_of(const struct json_want *want)
{
    if (want->kind != JSON_IS_STRING || want->is_ambiguous)
        return ENTRY_UNCLEAR;
    if (slice_equals_text(want->text, "\"SUCCESS\""))
        return ENTRY_SUCCESS;
    if (slice_equals_text(want->text, "\"DROP\""))
        return ENTRY_DROP;
    return slice_equals_text(want->text, "\"RETRY\"") ? ENTRY_RETRY : ENTRY_UNCLEAR;
}

/* A status for an entry that was never sent has no place to go, and says nothing. */
static void status_note(struct entry entries[], size_t entry_count, const bool sent[], struct slice whole,
                        const struct json_want wants[2])
{
    struct entry sought = { .id = wants[0].text };
    if (wants[0].kind != JSON_IS_STRING || wants[0].is_ambiguous)
        return;
    struct entry *entry = bsearch(&sought, entries, entry_count, sizeof *entries, compare_entries);
    if (entry == NULL || !sent[entry->site])
        return;
    enum entry_status status = status_of(&wants[1]);
    bool is_contradicted = entry->status != ENTRY_UNNAMED && entry->status != status;
    entry->status = is_contradicted ? ENTRY_UNCLEAR : status;
    entry->whole = whole;
}

static bool statuses_read(struct slice array, struct entry entries[], size_t entry_count, const bool sent[])
{
    struct json_walk walk;
    struct slice whole;
    json_walk_open(&walk, array, '[');
    while (json_walk_next(&walk)) {
        struct json_want wants[] = { { .tokens = entry_id_tokens, .token_count = 1 },
                                     { .tokens = status_tokens, .token_count = 1 } };
        if (!json_walk_value(&walk, wants, 2, &whole))
            return false;
        status_note(entries, entry_count, sent, whole, wants);
    }
    return !walk.is_wrong;
}

/* No body is success of all. */
static bool answer_read(struct slice body, struct entry entries[], size_t entry_count, const bool sent[])
{
    struct json_want want = { .tokens = statuses_tokens, .token_count = 1 };
    size_t end;
    if (json_is_blank(body.at, body.byte_count, 0)) {
        for (size_t i = 0; i < entry_count; i++)
            entries[i].status = sent[entries[i].site] ? ENTRY_SUCCESS : ENTRY_UNNAMED;
        return true;
    }
    return json_scan(body.at, body.byte_count, &want, 1, &end) == JSON_DONE &&
           json_is_blank(body.at, body.byte_count, end) && want.kind == JSON_IS_ARRAY && !want.is_ambiguous &&
           statuses_read(want.text, entries, entry_count, sent);
}

bool dapr_outcomes(struct slice body, const struct identified *identified, const bool sent[],
                   enum outcome outcomes[])
{
    static const enum outcome outcome_of[] = {
        [ENTRY_UNNAMED] = OUTCOME_UNKNOWN,  [ENTRY_SUCCESS] = OUTCOME_APPLIED,
        [ENTRY_DROP] = OUTCOME_NOT_APPLIED, [ENTRY_RETRY] = OUTCOME_NOT_APPLIED,
        [ENTRY_UNCLEAR] = OUTCOME_UNKNOWN,
    };
    size_t count = identified->site_count;
    struct entry *entries = entries_new(identified);
    bool is_fit = entries != NULL && answer_read(body, entries, count, sent);
    for (size_t i = 0; is_fit && i < count; i++) {
        size_t record = identified->sites[entries[i].site].record;
        if (sent[entries[i].site] && record != NO_RECORD)
            outcomes[record] = outcome_of[entries[i].status];
    }
    free(entries);
    return is_fit;
}

/* ---- the answer ---------------------------------------------------------------------------------------------- */

/* SUCCESS for what was left out, a repeat too: a record that failed comes again through its first entry. */
static void add_entry(struct text *text, const struct entry *entry)
{
    if (entry->whole.byte_count > 0) {
        text_add(text, entry->whole);
        return;
    }
    text_add_chars(text, "{\"entryId\":");
    text_add(text, entry->id);
    text_add_chars(text, ",\"status\":\"SUCCESS\"}");
}

static int compare_sites(const void *a, const void *b)
{
    size_t left = ((const struct entry *)a)->site, right = ((const struct entry *)b)->site;
    return left < right ? -1 : left > right;
}

bool dapr_answer(bool has_answer, struct slice body, const struct identified *identified, const bool sent[],
                 char **ret_body, size_t *ret_body_bytes)
{
    size_t count = identified->site_count;
    struct text text = { 0 };
    struct entry *entries = entries_new(identified);
    bool is_fit = entries != NULL && (!has_answer || answer_read(body, entries, count, sent));
    for (size_t i = 0; is_fit && i < count; i++)
        is_fit = !sent[entries[i].site] || entries[i].status != ENTRY_UNNAMED;
    if (!is_fit) {
        free(entries);
        return false;
    }
    qsort(entries, count, sizeof *entries, compare_sites);
    text_add_chars(&text, "{\"statuses\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text_add_chars(&text, ",");
        add_entry(&text, &entries[i]);
    }
    text_add_chars(&text, "]}");
    free(entries);
    return text_take(&text, ret_body, ret_body_bytes);
}
