/*
 * settings.h - what the operator has set, read from the environment and never changed afterwards.
 *
 * The rows stand in tbl/settings.h.  A struct settings is passed const, never global.  At SIGHUP a second one is read, of
 * which only the secrets count (proxy/credentials.h).
 */
#ifndef SINKONCE_SETTINGS_H
#define SINKONCE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "locator.h"
#include "log.h"
#include "probe.h"
#include "store.h"

enum mode { MODE_ENFORCE, MODE_OBSERVE, MODE_OFF };
const char *mode_name(enum mode mode); /* static: as it stands in the setting */
enum shape_setting {
    SHAPE_AUTO, SHAPE_SINGLE, SHAPE_JSON_ARRAY, SHAPE_NDJSON, SHAPE_BULK, SHAPE_CONCAT, SHAPE_SEPARATED, SHAPE_ENVELOPE,
    SHAPE_OPAQUE
};
/* What happens to a record in doubt: the ledger's own policies, and one for which it only holds. */
enum doubt_setting {
    IN_DOUBT_HOLD = POLICY_HOLD, IN_DOUBT_RETRY = POLICY_RETRY, IN_DOUBT_ASSUME_APPLIED = POLICY_ASSUME_APPLIED,
    IN_DOUBT_PROBE
};
enum probe_method { PROBE_GET, PROBE_HEAD, PROBE_POST };
enum split { SPLIT_OFF, SPLIT_RECORD };
enum identity_setting { IDENTITY_AUTO, IDENTITY_TIMESTAMP, IDENTITY_BODY, IDENTITY_OFF };

/* A set of HTTP statuses, a bit each. */
struct status_set {
    uint64_t bits[10]; /* 0 to 639 */
};
static inline bool status_set_has(const struct status_set *set, int status)
{
    return status >= 0 && status < 640 && ((set->bits[status / 64] >> (status % 64)) & 1u) != 0;
}

/* What an answer to a probe must be like. */
enum probe_rule_kind { PROBE_RULE_STATUS, PROBE_RULE_JSON, PROBE_RULE_NO_JSON };
struct probe_rule {
    enum probe_rule_kind kind;
    struct status_set statuses;  /* of STATUS */
    struct locator_list pointer; /* of the others: one LOCATOR_JSON */
};

/* http://HOST[:PORT][/BASE[?QUERY]] taken apart; all owned by the settings. */
struct target_url {
    char *text;          /* as given */
    bool is_https;
    char *host;          /* without brackets */
    uint16_t port;
    char *authority;     /* host[:port] as it belongs into the Host field: no default port */
    char *base_path;     /* "" or "/base", no slash at the end */
    char *base_query;    /* "" or what stood after the question mark */
    char *name;          /* scheme://authority/base: the host in lower case, and no query, which may hold a secret */
};

struct listen_address {
    char *text;          /* as given */
    bool is_unix;
    char *host;          /* or the socket's path */
    uint16_t port;       /* 0: any free one */
};

/* What a setting of each type becomes in struct settings. */
#define FIELD_url(field) struct target_url field;
#define FIELD_former_url(field) struct target_url field; /* all NULL: none */
#define FIELD_address(field) struct listen_address field;
#define FIELD_text(field) char *field; /* owned; "" when none */
#define FIELD_path(field) char *field;
#define FIELD_secret(field) char *field;
#define FIELD_credentials(field) char *field; /* secret: the value of a field Authorization */
#define FIELD_token(field) char *field;       /* secret: what may follow "Bearer ", one a line */
#define FIELD_host_header(field) char *field;
#define FIELD_proxy_url(field) char *field;
#define FIELD_scope(field) char *field;
#define FIELD_header_name(field) char *field;
#define FIELD_access_log(field) char *field; /* labels of tbl/finish.h, separated by commas; "all"; "off" */
#define FIELD_ledger_kind(field) int field;
#define FIELD_mode(field) enum mode field;
#define FIELD_workers(field) uint64_t field;
#define FIELD_count(field) uint64_t field;
#define FIELD_size(field) uint64_t field;
#define FIELD_duration(field) uint64_t field; /* milliseconds */
#define FIELD_status(field) uint64_t field;
#define FIELD_onoff(field) bool field;
#define FIELD_unkeyed(field) bool field;
#define FIELD_first_sight(field) bool field;
#define FIELD_ledger_missing(field) bool field;
#define FIELD_pointer(field) struct locator_list field; /* one LOCATOR_JSON at most */
#define FIELD_escaped(field) char *field;   /* owned; escapes resolved */
#define FIELD_split(field) enum split field;
#define FIELD_shape(field) enum shape_setting field;
#define FIELD_locators(field) struct locator_list field;
#define FIELD_locator(field) struct locator_list field; /* one at most */
#define FIELD_id_format(field) struct id_format field;
#define FIELD_statuses(field) struct status_set field;
#define FIELD_doubt_policy(field) enum doubt_setting field;
#define FIELD_probe_url(field) struct probe_template field; /* text NULL: none */
#define FIELD_probe_method(field) enum probe_method field;
#define FIELD_probe_rule(field) struct probe_rule field;
#define FIELD_identity(field) enum identity_setting field;
#define FIELD_log_level(field) enum log_level field;
#define FIELD_log_format(field) enum log_format field;

struct settings {
#define SETTING(VARIABLE, field, type, default_text, low, high, words) FIELD_##type(field)
#include "tbl/settings.h"
};

/* One mistake, as a sentence that begins with the variable's name. */
struct settings_mistakes {
    char **lines;      /* owned */
    size_t line_count;
    char **notes;      /* owned: names that were skipped, and risky settings; not mistakes */
    size_t note_count;
};

/*
 * [main] Read ENVIRONMENT (NAME=value, ends with NULL).  False: RET_MISTAKES names all that is wrong, one a line; what
 * was wrong reads as zero and NULL in RET_SETTINGS.  Both must be released in either case.
 *   - An empty value is no value: the default holds.
 *   - Unknown SINKONCE_ names are mistakes with "did you mean"; those that Kubernetes injects for a Service called
 *     sinkonce are skipped with a note.
 *   - X_FILE names a file that holds the value of a secret X; one line end after it is dropped.
 *   - A status that is set in one list of statuses leaves the default of the other.
 * No secret gets into a mistake or a note.
 */
MUST_CHECK bool settings_read(char *const environment[], struct settings *ret_settings,
                              struct settings_mistakes *ret_mistakes);
void settings_deinit(struct settings *settings);
void settings_mistakes_deinit(struct settings_mistakes *mistakes);

/* One setting as it may be shown to anybody: secrets read "***", so do passwords and queries in URLs. */
struct settings_view {
    const char *group;
    const char *name;         /* with SINKONCE_ */
    const char *default_text; /* NULL: required; "": none */
    const char *words;
    bool is_secret;
    const char *value;        /* what holds; "" when nothing does */
    const char *source;       /* "default", "environment" or "file" */
};
/* [any] VISIT is called for every row in the table's order; its view lives for the call. */
void settings_visit(const struct settings *settings, char *const environment[],
                    void (*visit)(const struct settings_view *view, void *context), void *context);

/* [main] Print-outs, all from the one table; secrets read as "***". */
void settings_print(const struct settings *settings, char *const environment[], FILE *out); /* value and source */
void settings_print_env(FILE *out);  /* conf/sinkonce.env: every row with its default, commented out */
void settings_print_docs(FILE *out); /* the README's table, Markdown */
void settings_print_help(FILE *out); /* name, words and default, for a terminal */

#endif
