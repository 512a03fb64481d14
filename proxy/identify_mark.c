/*
 * identify_mark.c - see identify_mark.h.
 *
 * The hash is that of what stays, the same wherever the cuts were.
 */
#include "identify_mark.h"

#include <xxhash.h>

#include "identify_cut.h"

/* Of a record of usual size what stays is copied together first: one call over 500 bytes takes a fraction of the time
 * that a state to be filled piece by piece does. */
enum { JOINED_BYTES_MAX = 4096 };

static uint64_t hash_joined(struct slice bytes, const struct range ranges[], size_t range_count)
{
    char joined[JOINED_BYTES_MAX];
    size_t joined_bytes = 0, at = 0;
    for (size_t i = 0; i <= range_count; i++) {
        size_t end = i < range_count ? ranges[i].begin : bytes.byte_count;
        memcpy(joined + joined_bytes, bytes.at + at, end - at);
        joined_bytes += end - at;
        at = i < range_count ? ranges[i].end : end;
    }
    return XXH3_64bits(joined, joined_bytes);
}

/* False: no memory. */
static bool hash_pieces(struct slice bytes, const struct range ranges[], size_t range_count,
                        uint64_t *ret_hash)
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return false;
    bool is_hashed = XXH3_64bits_reset(state) == XXH_OK;
    size_t at = 0;
    for (size_t i = 0; i <= range_count && is_hashed; i++) {
        size_t end = i < range_count ? ranges[i].begin : bytes.byte_count;
        is_hashed = XXH3_64bits_update(state, bytes.at + at, end - at) == XXH_OK;
        at = i < range_count ? ranges[i].end : end;
    }
    *ret_hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return is_hashed;
}

static bool hash_without(struct slice bytes, const struct range ranges[], size_t range_count,
                         uint64_t *ret_hash)
{
    if (range_count > 0 && bytes.byte_count > JOINED_BYTES_MAX)
        return hash_pieces(bytes, ranges, range_count, ret_hash);
    if (range_count > 0)
        *ret_hash = hash_joined(bytes, ranges, range_count);
    else
        *ret_hash = XXH3_64bits(bytes.byte_count > 0 ? bytes.at : "", bytes.byte_count);
    return true;
}

static bool is_hashed(enum identity_setting identity, const struct finding *finding)
{
    return identity == IDENTITY_BODY || (identity == IDENTITY_AUTO && !finding->has_timestamp);
}

bool mark_make(enum identity_setting identity, struct slice bytes, const struct finding *finding,
               record_mark *ret_mark)
{
    *ret_mark = MARK_NONE;
    if (!is_hashed(identity, finding)) {
        if (identity != IDENTITY_OFF && finding->has_timestamp)
            *ret_mark = mark_of_timestamp(finding->timestamp_ms);
        return true;
    }
    struct slice members[CUT_MEMBERS_MAX + 1];
    struct range ranges[CUT_MEMBERS_MAX + 1];
    size_t member_count = finding->member_count;
    memcpy(members, finding->members, member_count * sizeof members[0]);
    if (finding->unhashed.byte_count > 0)
        members[member_count++] = finding->unhashed;
    uint64_t hash;
    size_t range_count = cut_members(bytes.at, bytes.byte_count, members, member_count, ranges);
    if (!hash_without(bytes, ranges, range_count, &hash))
        return false;
    *ret_mark = mark_of_hash(hash);
    return true;
}
