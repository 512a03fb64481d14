/*
 * prober_judge.c - the two rules of a probe.
 *
 * A JSON rule asks for a 2xx first: an error page that happens to be JSON lacks every member that is looked for, and
 * would otherwise prove that nothing was applied.
 */
#include "prober_judge.h"
#include "json_scan.h"

/* "" 0, false and null are what a target says of a thing that it does not have. */
static bool is_something(const struct json_want *want)
{
    switch ((int)want->kind) {
    case JSON_IS_STRING:
        return want->text.byte_count > 2;
    case JSON_IS_NUMBER:
        for (size_t i = 0; i < want->text.byte_count && want->text.at[i] != 'e' && want->text.at[i] != 'E';
             i++) {
            if (want->text.at[i] >= '1' && want->text.at[i] <= '9')
                return true;
        }
        return false;
    case JSON_IS_TRUE:
        return true;
    case JSON_IS_OBJECT:
    case JSON_IS_ARRAY: {
        struct slice inside = slice_of(want->text.at + 1, want->text.byte_count - 2);
        return !json_is_blank(inside.at, inside.byte_count, 0);
    }
    default:
        return false;
    }
}

static bool json_rule_holds(const struct probe_rule *rule, int status, struct slice body)
{
    const struct locator *pointer = &rule->pointer.items[0];
    struct json_want want = { .tokens = pointer->tokens, .token_count = pointer->token_count };
    size_t end = 0;
    if (status < 200 || status > 299 || json_scan(body.at, body.byte_count, &want, 1, &end) != JSON_DONE ||
        !json_is_blank(body.at, body.byte_count, end) || want.is_ambiguous)
        return false;
    return is_something(&want) == (rule->kind == PROBE_RULE_JSON);
}

static bool rule_holds(const struct probe_rule *rule, int status, struct slice body)
{
    return rule->kind == PROBE_RULE_STATUS ? status_set_has(&rule->statuses, status)
                                           : json_rule_holds(rule, status, body);
}

enum probe_answer probe_judge(const struct settings *settings, int status, struct slice body)
{
    bool is_applied = rule_holds(&settings->probe_applied, status, body);
    bool is_absent = rule_holds(&settings->probe_absent, status, body);
    if (is_applied == is_absent)
        return PROBE_UNCLEAR;
    return is_applied ? PROBE_SAYS_APPLIED : PROBE_SAYS_ABSENT;
}
