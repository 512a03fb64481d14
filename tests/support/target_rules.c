/*
 * target_rules.c - see target_rules.h.  No clock and no socket: chance comes from the rule's own seed.
 */
#include "target_rules.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cut_names[CUT_COUNT] = { "none",   "accept", "request", "answer",
                                                  "status", "head",   "body" };
static const char *const end_names[END_COUNT] = { "close", "rst", "stall" };
static const char *const apply_names[APPLY_COUNT] = { "auto", "yes", "no" };

static const struct target_rule plain = {
    .next = -1, .every = 1, .probability = 1.0, .seed = 1, .status = 200, .body = "ok\n", .body_length = 3
};

void target_rules_clear(struct target_rules *rules)
{
    rules->count = 0;
    rules->none = plain;
}

void target_rules_init(struct target_rules *rules)
{
    target_rules_clear(rules);
}

static int hex_value(char digit)
{
    if (isdigit((unsigned char)digit))
        return digit - '0';
    return isxdigit((unsigned char)digit) ? tolower((unsigned char)digit) - 'a' + 10 : -1;
}

/* Percent-decode TEXT into OUT, ended by a zero byte that is not counted; false when it does not fit. */
static bool text_decode(struct target_text text, char out[], size_t out_size, size_t *ret_length)
{
    size_t length = 0;

    for (size_t i = 0; i < text.length; i++) {
        char byte = text.bytes[i] == '+' ? ' ' : text.bytes[i];
        if (byte == '%' && i + 2 < text.length && hex_value(text.bytes[i + 1]) >= 0) {
            byte = (char)(hex_value(text.bytes[i + 1]) * 16 + hex_value(text.bytes[i + 2]));
            i += 2;
        }
        if (length + 1 >= out_size)
            return false;
        out[length++] = byte;
    }
    out[length] = '\0';
    *ret_length = length;
    return true;
}

static int word_index(const char *word, const char *const names[], int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

static bool set_number(struct target_rule *rule, const char *name, const char *value)
{
    long number = strtol(value, NULL, 10);

    if (strcmp(name, "skip") == 0)
        rule->skip = number;
    else if (strcmp(name, "next") == 0)
        rule->next = number;
    else if (strcmp(name, "every") == 0)
        rule->every = number > 0 ? number : 1;
    else if (strcmp(name, "probability") == 0)
        rule->probability = strtod(value, NULL);
    else if (strcmp(name, "seed") == 0)
        rule->seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "refuse") == 0)
        rule->refused = number > 0 ? (size_t)number : 0;
    else if (strcmp(name, "delay") == 0)
        rule->delay_ms = (unsigned)number;
    else if (strcmp(name, "pause") == 0)
        rule->pause_ms = (unsigned)number;
    else if (strcmp(name, "status") == 0)
        rule->status = (int)number;
    else if (strcmp(name, "chunked") == 0)
        rule->is_chunked = number != 0;
    else if (strcmp(name, "close") == 0)
        rule->is_closing = number != 0;
    else
        return false;
    return true;
}

static bool set_word(struct target_rule *rule, const char *name, const char *value)
{
    int index = 0;

    if (strcmp(name, "cut") == 0) {
        index = word_index(value, cut_names, CUT_COUNT);
        rule->cut = index >= 0 ? (enum target_cut)index : CUT_NONE;
    } else if (strcmp(name, "end") == 0) {
        index = word_index(value, end_names, END_COUNT);
        rule->end = index >= 0 ? (enum target_end)index : END_CLOSE;
    } else if (strcmp(name, "apply") == 0) {
        index = word_index(value, apply_names, APPLY_COUNT);
        rule->apply = index >= 0 ? (enum target_apply)index : APPLY_AUTO;
    } else if (strcmp(name, "when") == 0) {
        rule->is_applied_late = strcmp(value, "before") == 0;
        index = rule->is_applied_late || strcmp(value, "after") == 0 ? 0 : -1;
    } else {
        return false;
    }
    return index >= 0;
}

static bool set_text(struct target_rule *rule, const char *name, struct target_text value)
{
    size_t length = 0;

    if (strcmp(name, "key") == 0)
        return text_decode(value, rule->key, sizeof rule->key, &length);
    if (strcmp(name, "method") == 0)
        return text_decode(value, rule->method, sizeof rule->method, &length);
    if (strcmp(name, "header") == 0)
        return text_decode(value, rule->header, sizeof rule->header, &length);
    if (strcmp(name, "body") == 0)
        return rule->has_own_body = text_decode(value, rule->body, sizeof rule->body, &rule->body_length);
    if (strcmp(name, "raw") == 0)
        return text_decode(value, rule->raw, sizeof rule->raw, &rule->raw_length);
    return false;
}

static bool set_field(struct target_rule *rule, struct target_text pair)
{
    char name[32];
    char word[64];
    size_t length = 0;
    const char *equals = memchr(pair.bytes, '=', pair.length);

    if (equals == NULL)
        return false;
    struct target_text value = { equals + 1, pair.length - (size_t)(equals + 1 - pair.bytes) };
    if (!text_decode((struct target_text){ pair.bytes, (size_t)(equals - pair.bytes) }, name, sizeof name,
                     &length))
        return false;
    if (set_text(rule, name, value))
        return true;
    return text_decode(value, word, sizeof word, &length) &&
           (set_number(rule, name, word) || set_word(rule, name, word));
}

const char *target_rules_add(struct target_rules *rules, struct target_text query)
{
    static char problem[128];
    const char *at = query.bytes;
    const char *end = query.bytes + query.length;

    if (rules->count == TARGET_RULES_MAX)
        return "too many rules";
    struct target_rule *rule = &rules->rules[rules->count];
    *rule = plain;
    while (at < end) {
        const char *stop = memchr(at, '&', (size_t)(end - at));
        struct target_text pair = { at, (size_t)((stop != NULL ? stop : end) - at) };
        if (pair.length != 0 && !set_field(rule, pair)) {
            snprintf(problem, sizeof problem, "not understood: %.*s",
                     (int)(pair.length < 80 ? pair.length : 80), at);
            return problem;
        }
        at = stop != NULL ? stop + 1 : end;
    }
    rules->count++;
    return NULL;
}

/* xorshift64*: small, and the same on every machine. */
static double chance(uint64_t *state)
{
    *state = *state != 0 ? *state : 1;
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * UINT64_C(2685821657736338717)) >> 11) / (double)(UINT64_C(1) << 53);
}

static bool key_matches(const char *wanted, const char *key)
{
    size_t length = strlen(wanted);

    if (length == 0 || wanted[length - 1] != '$')
        return strstr(key, wanted) != NULL;
    size_t key_length = strlen(key);
    return key_length >= length - 1 && memcmp(key + key_length - (length - 1), wanted, length - 1) == 0;
}

static bool rule_matches(struct target_rule *rule, struct target_text method, const char *key)
{
    if (rule->next == 0 || (rule->method[0] != '\0' && !target_text_is(method, rule->method)) ||
        !key_matches(rule->key, key))
        return false;
    if (rule->skip > 0) {
        rule->skip--;
        return false;
    }
    if (++rule->seen % rule->every != 0 ||
        (rule->probability < 1.0 && chance(&rule->seed) >= rule->probability))
        return false;
    if (rule->next > 0)
        rule->next--;
    return true;
}

struct target_rule *target_rules_match(struct target_rules *rules, enum target_cut moment,
                                       struct target_text method, const char *key)
{
    for (size_t i = 0; i < rules->count; i++) {
        struct target_rule *rule = &rules->rules[i];
        bool is_early = rule->cut == CUT_ACCEPT || rule->cut == CUT_REQUEST;
        if (is_early ? rule->cut != moment : moment != CUT_NONE)
            continue;
        if (rule_matches(rule, method, key))
            return rule;
    }
    return &rules->none;
}

bool target_rule_applies(const struct target_rule *rule)
{
    if (rule->apply == APPLY_AUTO)
        return rule->status >= 200 && rule->status < 300;
    return rule->apply == APPLY_YES;
}
