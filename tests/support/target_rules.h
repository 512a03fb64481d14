/*
 * target_rules.h - what the counting target does wrong, and to which requests.
 *
 * A rule is written as a query string, for instance  every=50&delay=2500  or  key=orders/0/7&cut=head&end=rst:
 *
 *   which requests             skip=N     not the first N that would match
 *                              next=N     only N of them, then the rule is spent
 *                              every=K    each Kth of them
 *                              probability=P&seed=S
 *                              key=TEXT   only requests whose first key contains TEXT; key=TEXT$ ends with it
 *                              method=M
 *   when                       delay=MS   hold the request as long before answering
 *                              when=after|before   applied before the delay (default) or after it
 *                              apply=auto|yes|no   auto: applied when the status is 2xx
 *   a part of a bulk request   refuse=N   its last N actions, or all, are answered 429 and not applied
 *   the answer                 status=N, body=TEXT, header=LINE (several lines parted by %0D%0A)
 *                              chunked=1, close=1 (Connection: close), raw=BYTES (the whole answer)
 *                              pause=MS   between the first and the second half of the body
 *   an answer that breaks off  cut=accept (no request is read), request (after its first bytes), answer (no
 *                              byte), status (half a status line), head (half the fields), body (half of it)
 *                              end=close|rst|stall   what follows the cut
 */
#ifndef TARGET_RULES_H
#define TARGET_RULES_H

#include "target_request.h"

#include <stdint.h>

#define TARGET_RULES_MAX 16

enum target_cut { CUT_NONE, CUT_ACCEPT, CUT_REQUEST, CUT_ANSWER, CUT_STATUS, CUT_HEAD, CUT_BODY, CUT_COUNT };
enum target_end { END_CLOSE, END_RST, END_STALL, END_COUNT };
enum target_apply { APPLY_AUTO, APPLY_YES, APPLY_NO, APPLY_COUNT };

struct target_rule {
    long skip;
    long next; /* how many are left; negative: no limit */
    long every;
    double probability;
    uint64_t seed; /* state of the generator */
    long seen;     /* requests that came past skip */
    char key[128];
    char method[16];

    size_t refused; /* actions at the end of a bulk request */
    unsigned delay_ms;
    unsigned pause_ms;
    bool is_applied_late;
    enum target_apply apply;
    int status;
    bool is_chunked;
    bool is_closing;
    enum target_cut cut;
    enum target_end end;
    char header[2048];
    bool has_own_body; /* else "ok", or the items of a bulk answer */
    char body[16384];
    size_t body_length;
    char raw[32768];
    size_t raw_length; /* 0: no raw answer */
};

struct target_rules {
    struct target_rule rules[TARGET_RULES_MAX];
    size_t count;
    struct target_rule none; /* what every other request gets */
};

void target_rules_init(struct target_rules *rules);
void target_rules_clear(struct target_rules *rules);

/* Add the rule written in QUERY; NULL, or what is wrong with it (valid until the next call). */
const char *target_rules_add(struct target_rules *rules, struct target_text query);

/* The first rule that this request meets, its counters moved on; rules->none when there is none.
 * At CUT_ACCEPT and CUT_REQUEST only rules of that cut are asked, KEY is empty. */
struct target_rule *target_rules_match(struct target_rules *rules, enum target_cut moment,
                                       struct target_text method, const char *key);

bool target_rule_applies(const struct target_rule *rule);

#endif
