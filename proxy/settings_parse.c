/*
 * settings_parse.c - one parser for each type of setting, and the table of rows that names them.
 *
 * Parsers look at their own value only; what depends on two settings is in settings_check.c.  Each returns NULL, or
 * what is wrong in words that follow the setting's name.
 */
#include "settings_quantity.h"
#include "settings_rows.h"
#include "settings_spell.h"
#include "settings_url.h"
#include "finish.h"
#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <strings.h>

static const char no_memory[] = "could not be kept: out of memory";

/* ---- texts --------------------------------------------------------------------------------------------------- */

static const char *too_long(const struct settings_row *row, char room[SETTINGS_WORDS_MAX])
{
    snprintf(room, SETTINGS_WORDS_MAX, "must be at most %zu bytes long", (size_t)row->high);
    return room;
}

static const char *keep_text(const char *text, void *field)
{
    char **owner = field;
    *owner = strdup(text);
    return *owner == NULL ? no_memory : NULL;
}

static void deinit_text(void *field)
{
    char **owner = field;
    free(*owner);
    *owner = NULL;
}

static const char *parse_text(const char *text, const struct settings_row *row, void *field,
                              char room[SETTINGS_WORDS_MAX])
{
    const size_t length = strlen(text);
    if (length >= row->low && length <= row->high)
        return keep_text(text, field);
    return too_long(row, room);
}

/* The byte that a backslash and C stand for; NUL: none. */
static char escaped_byte(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case '\\':
        return '\\';
    default:
        return '\0';
    }
}

/* A text in which \n, \r, \t and \\ stand for one byte, so that it fits into an environment file. */
static const char *parse_escaped(const char *text, const struct settings_row *row, void *field,
                                 char room[SETTINGS_WORDS_MAX])
{
    const char *wrong = parse_text(text, row, field, room);
    if (wrong != NULL)
        return wrong;
    char *to = *(char **)field;
    for (const char *from = text; *from != '\0'; from++, to++) {
        *to = *from;
        if (*from != '\\')
            continue;
        *to = escaped_byte(*++from);
        if (*to == '\0')
            return "has a backslash that is not one of \\n, \\r, \\t and \\\\";
    }
    *to = '\0';
    return NULL;
}

static bool is_visible(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~')
            return false;
    }
    return true;
}

static size_t visible_length(const char *text)
{
    size_t length = 0;
    while (text[length] > ' ' && text[length] <= '~')
        length++;
    return length;
}

/* What stands in a field value: no control byte but the tab (RFC 9110, section 5.5).  A line end in it would let the
 * secret's file write a field of its own. */
static bool is_field_value(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return false;
    }
    const size_t length = strlen(text);
    return length == 0 ||
           (text[0] != ' ' && text[0] != '\t' && text[length - 1] != ' ' && text[length - 1] != '\t');
}

static const char *parse_credentials(const char *text, const struct settings_row *row, void *field,
                                     char room[SETTINGS_WORDS_MAX])
{
    if (!is_field_value(text))
        return "becomes a header field: it must not have control characters, nor white space around it";
    return parse_text(text, row, field, room);
}

/* What may follow "Bearer " (RFC 6750, section 2.1) and a little more, but nothing that a header would change.  One a
 * line, so that a blank that was copied with a token is noticed, and does not make two weak ones of it. */
static const char *parse_token(const char *text, const struct settings_row *row, void *field,
                               char room[SETTINGS_WORDS_MAX])
{
    enum { TOKENS_MAX = 8 };
    size_t count = 0;
    for (const char *line = text; *text != '\0'; line++) {
        size_t length = visible_length(line);
        line += length;
        if (length == 0 || (*line != '\n' && *line != '\0'))
            return "becomes a bearer token, or several, one a line: each must have visible ASCII characters "
                   "only, "
                   "without spaces, and no line may be empty";
        if (++count > TOKENS_MAX)
            return "must have at most 8 tokens, one a line";
        if (*line == '\0')
            break;
    }
    return parse_text(text, row, field, room);
}

static const char *parse_scope(const char *text, const struct settings_row *row, void *field,
                               char room[SETTINGS_WORDS_MAX])
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (text[strspn(text, allowed)] != '\0')
        return "must have letters, digits, dots, underscores and hyphens only";
    return parse_text(text, row, field, room);
}

/* RFC 9110, section 5.6.2. */
static bool is_token(const char *text)
{
    static const char allowed[] =
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return text[strspn(text, allowed)] == '\0';
}

/* Fields that frame the message, belong to one hop, choose the host or hold credentials: a key in one of them would
 * change what the request means. */
static const char *parse_header_name(const char *text, const struct settings_row *row, void *field,
                                     char room[SETTINGS_WORDS_MAX])
{
    static const char *const refused[] = {
        "Authorization",
        "Connection",
        "Content-Encoding",
        "Content-Length",
        "Content-Type",
        "Cookie",
        "Expect",
        "Host",
        "Keep-Alive",
        "Max-Forwards",
        "Proxy-Authenticate",
        "Proxy-Authorization",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Via",
    };
    if (!is_token(text))
        return "must be the name of a header field: letters, digits and hyphens";
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (strcasecmp(text, refused[i]) == 0)
            return "must not be a field that HTTP itself needs";
    }
    return parse_text(text, row, field, room);
}

static const char *parse_host_header(const char *text, const struct settings_row *row, void *field,
                                     char room[SETTINGS_WORDS_MAX])
{
    if (!is_visible(text) || text[strcspn(text, "/?#@,\"\\")] != '\0')
        return "must be target, preserve, or a host with a port if need be";
    return parse_text(text, row, field, room);
}

static const struct finish_row *find_finish(struct slice label, struct spelling *spelling)
{
    for (size_t i = FINISH_NONE + 1; i < FINISH_COUNT; i++) {
        if (slice_equals_text(label, finish_rows[i].label))
            return &finish_rows[i];
        spelling_offer(spelling, finish_rows[i].label);
    }
    return NULL;
}

static const char *parse_access_log(const char *text, const struct settings_row *row, void *field,
                                    char room[SETTINGS_WORDS_MAX])
{
    if (strcmp(text, "off") == 0 || strcmp(text, "all") == 0)
        return keep_text(text, field);
    for (const char *at = text; at != NULL;) {
        const size_t length = strcspn(at, ",");
        char label[64];
        snprintf(label, sizeof label, "%.*s", (int)(length < 63 ? length : 63), at);
        struct spelling spelling = spelling_of(label);
        if (find_finish(slice_of(at, length), &spelling) == NULL) {
            const bool is_near = spelling.nearest != NULL;
            snprintf(room, SETTINGS_WORDS_MAX,
                     "must be off, all, or outcomes separated by commas; %s is none%s%s%s",
                     *label == '\0' ? "an empty one" : label, is_near ? " (did you mean " : "",
                     is_near ? spelling.nearest : "", is_near ? "?)" : "");
            return room;
        }
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return parse_text(text, row, field, room);
}

/* ---- URLs and addresses -------------------------------------------------------------------------------------- */

static const char *parse_url(const char *text, const struct settings_row *row, void *field,
                             char room[SETTINGS_WORDS_MAX])
{
    if (strlen(text) <= row->high)
        return target_url_parse(text, field);
    return too_long(row, room);
}

static const char *parse_former_url(const char *text, const struct settings_row *row, void *field,
                                    char room[SETTINGS_WORDS_MAX])
{
    return *text == '\0' ? NULL : parse_url(text, row, field, room);
}

static void deinit_url(void *field)
{
    target_url_deinit(field);
}

static const char *parse_proxy_url(const char *text, const struct settings_row *row, void *field,
                                   char room[SETTINGS_WORDS_MAX])
{
    struct target_url url = { 0 };
    const char *wrong = *text == '\0' ? NULL : proxy_url_parse(text, &url);
    target_url_deinit(&url);
    return wrong == NULL ? parse_text(text, row, field, room) : wrong;
}

static const char *parse_address(const char *text, const struct settings_row *row, void *field,
                                 char room[SETTINGS_WORDS_MAX])
{
    (void)row;
    (void)room;
    return listen_address_parse(text, field);
}

static void deinit_address(void *field)
{
    listen_address_deinit(field);
}

/* ---- quantities ---------------------------------------------------------------------------------------------- */

static const char *parse_count(const char *text, const struct settings_row *row, void *field,
                               char room[SETTINGS_WORDS_MAX])
{
    return quantity_parse(QUANTITY_COUNT, text, row, field, room);
}

static const char *parse_duration(const char *text, const struct settings_row *row, void *field,
                                  char room[SETTINGS_WORDS_MAX])
{
    return quantity_parse(QUANTITY_DURATION, text, row, field, room);
}

static const char *parse_size(const char *text, const struct settings_row *row, void *field,
                              char room[SETTINGS_WORDS_MAX])
{
    return quantity_parse(QUANTITY_SIZE, text, row, field, room);
}

/* The cores that this process may run on, which in a container may be fewer than those that are online. */
static uint64_t core_count(void)
{
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? (uint64_t)CPU_COUNT(&cores) : 1;
}

static const char *parse_workers(const char *text, const struct settings_row *row, void *field,
                                 char room[SETTINGS_WORDS_MAX])
{
    uint64_t *workers = field;
    if (strcmp(text, "auto") != 0) {
        const char *wrong = quantity_parse(QUANTITY_COUNT, text, row, workers, room);
        return wrong != NULL && wrong != room ? "must be auto or a whole number" : wrong;
    }
    *workers = core_count() < 8 ? core_count() : 8;
    return NULL;
}

static void show_count(const void *field, char room[SETTINGS_WORDS_MAX])
{
    snprintf(room, SETTINGS_WORDS_MAX, "%llu", (unsigned long long)*(const uint64_t *)field);
}

/* ---- statuses ------------------------------------------------------------------------------------------------ */

/* Three digits off TEXT; -1 when they are no final status (RFC 9110, section 15). */
static int parse_three_digits(const char **text)
{
    int status = 0;
    for (int i = 0; i < 3; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return -1;
        status = status * 10 + (**text - '0');
    }
    return status >= 200 && status <= 599 ? status : -1;
}

static const char *parse_statuses(const char *text, const struct settings_row *row, void *field,
                                  char room[SETTINGS_WORDS_MAX])
{
    static const char wrong[] = "must be statuses from 200 to 599 and ranges of them, as in 200-299,409";
    struct status_set *set = field;
    (void)row;
    (void)room;
    for (;;) {
        const int first = parse_three_digits(&text);
        int last = first;
        if (first >= 0 && *text == '-') {
            text++;
            last = parse_three_digits(&text);
        }
        if (first < 0 || last < first || (*text != '\0' && *text != ','))
            return wrong;
        for (int status = first; status <= last; status++)
            set->bits[status / 64] |= UINT64_C(1) << (status % 64);
        if (*text++ == '\0')
            return NULL;
    }
}

/* A status that the other list took away is missing here, so the text as given does not tell. */
static void show_statuses(const void *field, char room[SETTINGS_WORDS_MAX])
{
    size_t length = 0;
    room[0] = '\0';
    for (int first = 0; first < 640 && length + 16 < SETTINGS_WORDS_MAX; first++) {
        int last = first;
        if (!status_set_has(field, first))
            continue;
        while (status_set_has(field, last + 1))
            last++;
        length += (size_t)snprintf(room + length, SETTINGS_WORDS_MAX - length,
                                   first == last ? "%s%d" : "%s%d-%d", length == 0 ? "" : ",", first, last);
        first = last;
    }
}

static const char *parse_status(const char *text, const struct settings_row *row, void *field,
                                char room[SETTINGS_WORDS_MAX])
{
    return quantity_parse(QUANTITY_COUNT, text, row, field, room);
}

/* ---- choices ------------------------------------------------------------------------------------------------- */

static const struct settings_choice *find_choice(const struct settings_choice choices[], const char *text)
{
    for (; choices->name != NULL; choices++) {
        if (strcmp(text, choices->name) == 0)
            return choices;
    }
    return NULL;
}

/* All that may be chosen, and what may have been meant. */
static void list_choices(const struct settings_choice choices[], const char *text,
                         char room[SETTINGS_WORDS_MAX])
{
    struct spelling spelling = spelling_of(text);
    size_t length = 0;
    for (size_t i = 0; choices[i].name != NULL; i++) {
        const char *separator = i == 0 ? "must be " : choices[i + 1].name == NULL ? " or " : ", ";
        length +=
            (size_t)snprintf(room + length, SETTINGS_WORDS_MAX - length, "%s%s", separator, choices[i].name);
        spelling_offer(&spelling, choices[i].name);
    }
    if (spelling.nearest != NULL)
        snprintf(room + length, SETTINGS_WORDS_MAX - length, "; did you mean %s?", spelling.nearest);
}

/* For every enumeration: they all have the size of an int, as gcc and clang make them. */
static const char *parse_choice(const char *text, const struct settings_row *row, void *field,
                                char room[SETTINGS_WORDS_MAX])
{
    const struct settings_choice *choice = find_choice(row->type->choices, text);
    if (choice == NULL) {
        list_choices(row->type->choices, text, room);
        return room;
    }
    memcpy(field, &choice->value, sizeof choice->value);
    return NULL;
}
static_assert(sizeof(enum mode) == sizeof(int), "parse_choice() writes an int");

static const char *parse_flag(const char *text, const struct settings_row *row, void *field,
                              char room[SETTINGS_WORDS_MAX])
{
    int value = 0;
    const char *wrong = parse_choice(text, row, &value, room);
    *(bool *)field = value != 0;
    return wrong;
}

static const struct settings_choice ledgers[] = { { "lmdb", 0 }, { NULL, 0 } };
static const struct settings_choice modes[] = {
    [MODE_ENFORCE] = { "enforce", MODE_ENFORCE },
    [MODE_OBSERVE] = { "observe", MODE_OBSERVE },
    [MODE_OFF] = { "off", MODE_OFF },
    { NULL, 0 },
};

const char *mode_name(enum mode mode)
{
    return modes[mode].name;
}

static const struct settings_choice shapes[] = {
    { "auto", SHAPE_AUTO },
    { "single", SHAPE_SINGLE },
    { "json-array", SHAPE_JSON_ARRAY },
    { "ndjson", SHAPE_NDJSON },
    { "bulk", SHAPE_BULK },
    { "concat", SHAPE_CONCAT },
    { "separated", SHAPE_SEPARATED },
    { "envelope", SHAPE_ENVELOPE },
    { "opaque", SHAPE_OPAQUE },
    { NULL, 0 },
};
static const struct settings_choice splits[] = { { "off", SPLIT_OFF },
                                                 { "record", SPLIT_RECORD },
                                                 { NULL, 0 } };
static const struct settings_choice doubt_policies[] = {
    { "hold", IN_DOUBT_HOLD },
    { "probe", IN_DOUBT_PROBE },
    { "retry", IN_DOUBT_RETRY },
    { "assume-applied", IN_DOUBT_ASSUME_APPLIED },
    { NULL, 0 },
};
static const struct settings_choice probe_methods[] = {
    { "GET", PROBE_GET },
    { "HEAD", PROBE_HEAD },
    { "POST", PROBE_POST },
    { NULL, 0 },
};
static const struct settings_choice identities[] = {
    { "auto", IDENTITY_AUTO },
    { "timestamp", IDENTITY_TIMESTAMP },
    { "body", IDENTITY_BODY },
    { "off", IDENTITY_OFF },
    { NULL, 0 },
};
static const struct settings_choice log_levels[] = {
    { "error", LOG_LEVEL_ERROR },
    { "warn", LOG_LEVEL_WARN },
    { "info", LOG_LEVEL_INFO },
    { "debug", LOG_LEVEL_DEBUG },
    { NULL, 0 },
};
static const struct settings_choice log_formats[] = {
    { "json", LOG_FORMAT_JSON },
    { "text", LOG_FORMAT_TEXT },
    { "auto", LOG_FORMAT_AUTO },
    { NULL, 0 },
};
static const struct settings_choice on_and_off[] = { { "on", true }, { "off", false }, { NULL, 0 } };
static const struct settings_choice unkeyed[] = {
    { "forward", false },
    { "reject", true },
    { NULL, 0 },
};
static const struct settings_choice first_sights[] = {
    { "accept", false },
    { "hold", true },
    { NULL, 0 },
};
static const struct settings_choice missing_ledgers[] = {
    { "create", false },
    { "refuse", true },
    { NULL, 0 },
};

/* ---- locators ------------------------------------------------------------------------------------------------ */

static const char *parse_locator_list(const char *text, bool is_composite, const struct settings_row *row,
                                      void *field, char room[SETTINGS_WORDS_MAX])
{
    if (strlen(text) > row->high)
        return too_long(row, room);
    return *text == '\0' ? NULL : locator_list_parse(text, is_composite, field);
}

static const char *parse_locators(const char *text, const struct settings_row *row, void *field,
                                  char room[SETTINGS_WORDS_MAX])
{
    return parse_locator_list(text, false, row, field, room);
}

static const char *parse_locator(const char *text, const struct settings_row *row, void *field,
                                 char room[SETTINGS_WORDS_MAX])
{
    return parse_locator_list(text, true, row, field, room);
}

/* One pointer without a prefix, as a list of one LOCATOR_JSON. */
static const char *parse_pointer(const char *text, const struct settings_row *row, void *field,
                                 char room[SETTINGS_WORDS_MAX])
{
    if (strlen(text) > row->high)
        return too_long(row, room);
    return *text == '\0' ? NULL : locator_pointer_parse(text, field);
}

static void deinit_locators(void *field)
{
    locator_list_deinit(field);
}

static const char *parse_id_format(const char *text, const struct settings_row *row, void *field,
                                   char room[SETTINGS_WORDS_MAX])
{
    if (strlen(text) > row->high)
        return too_long(row, room);
    return *text == '\0' ? NULL : id_format_parse(text, field);
}

static void deinit_id_format(void *field)
{
    id_format_deinit(field);
}

/* ---- probes ------------------------------------------------------------------------------------------------------ */

static const char *parse_probe_url(const char *text, const struct settings_row *row, void *field,
                                   char room[SETTINGS_WORDS_MAX])
{
    if (strlen(text) > row->high)
        return too_long(row, room);
    return *text == '\0' ? NULL : probe_template_parse(text, field);
}

static void deinit_probe_url(void *field)
{
    probe_template_deinit(field);
}

static const char *parse_probe_rule(const char *text, const struct settings_row *row, void *field,
                                    char room[SETTINGS_WORDS_MAX])
{
    struct probe_rule *rule = field;
    if (strncmp(text, "status:", 7) == 0) {
        rule->kind = PROBE_RULE_STATUS;
        return parse_statuses(text + 7, row, &rule->statuses, room);
    }
    const bool is_no = strncmp(text, "no-json:/", 9) == 0;
    if (!is_no && strncmp(text, "json:/", 6) != 0)
        return "must be status:LIST, json:/POINTER or no-json:/POINTER";
    rule->kind = is_no ? PROBE_RULE_NO_JSON : PROBE_RULE_JSON;
    return locator_pointer_parse(text + (is_no ? 8 : 5), &rule->pointer);
}

static void deinit_probe_rule(void *field)
{
    struct probe_rule *rule = field;
    locator_list_deinit(&rule->pointer);
}

/* ---- the tables ---------------------------------------------------------------------------------------------- */

static const struct settings_type type_url = { .parse = parse_url, .deinit = deinit_url, .is_url = true };
static const struct settings_type type_former_url = { .parse = parse_former_url,
                                                      .deinit = deinit_url,
                                                      .is_url = true };
static const struct settings_type type_proxy_url = { .parse = parse_proxy_url,
                                                     .deinit = deinit_text,
                                                     .is_url = true };
static const struct settings_type type_address = { .parse = parse_address, .deinit = deinit_address };
static const struct settings_type type_text = { .parse = parse_text, .deinit = deinit_text };
static const struct settings_type type_escaped = { .parse = parse_escaped, .deinit = deinit_text };
static const struct settings_type type_path = { .parse = parse_text, .deinit = deinit_text };
static const struct settings_type type_secret = { .parse = parse_text,
                                                  .deinit = deinit_text,
                                                  .is_secret = true };
static const struct settings_type type_credentials = { .parse = parse_credentials,
                                                       .deinit = deinit_text,
                                                       .is_secret = true };
static const struct settings_type type_token = { .parse = parse_token,
                                                 .deinit = deinit_text,
                                                 .is_secret = true };
static const struct settings_type type_scope = { .parse = parse_scope, .deinit = deinit_text };
static const struct settings_type type_header_name = { .parse = parse_header_name, .deinit = deinit_text };
static const struct settings_type type_host_header = { .parse = parse_host_header, .deinit = deinit_text };
static const struct settings_type type_access_log = { .parse = parse_access_log, .deinit = deinit_text };
static const struct settings_type type_count = { .parse = parse_count };
static const struct settings_type type_size = { .parse = parse_size };
static const struct settings_type type_duration = { .parse = parse_duration };
static const struct settings_type type_workers = { .parse = parse_workers, .show = show_count };
static const struct settings_type type_status = { .parse = parse_status };
static const struct settings_type type_statuses = { .parse = parse_statuses, .show = show_statuses };
static const struct settings_type type_ledger_kind = { .parse = parse_choice, .choices = ledgers };
static const struct settings_type type_mode = { .parse = parse_choice, .choices = modes };
static const struct settings_type type_shape = { .parse = parse_choice, .choices = shapes };
static const struct settings_type type_split = { .parse = parse_choice, .choices = splits };
static const struct settings_type type_doubt_policy = { .parse = parse_choice, .choices = doubt_policies };
static const struct settings_type type_probe_url = { .parse = parse_probe_url,
                                                     .deinit = deinit_probe_url,
                                                     .is_url = true };
static const struct settings_type type_probe_method = { .parse = parse_choice, .choices = probe_methods };
static const struct settings_type type_probe_rule = { .parse = parse_probe_rule,
                                                      .deinit = deinit_probe_rule };
static const struct settings_type type_identity = { .parse = parse_choice, .choices = identities };
static const struct settings_type type_log_level = { .parse = parse_choice, .choices = log_levels };
static const struct settings_type type_log_format = { .parse = parse_choice, .choices = log_formats };
static const struct settings_type type_onoff = { .parse = parse_flag, .choices = on_and_off };
static const struct settings_type type_unkeyed = { .parse = parse_flag, .choices = unkeyed };
static const struct settings_type type_first_sight = { .parse = parse_flag, .choices = first_sights };
static const struct settings_type type_ledger_missing = { .parse = parse_flag, .choices = missing_ledgers };
static const struct settings_type type_locators = { .parse = parse_locators, .deinit = deinit_locators };
static const struct settings_type type_locator = { .parse = parse_locator, .deinit = deinit_locators };
static const struct settings_type type_pointer = { .parse = parse_pointer, .deinit = deinit_locators };
static const struct settings_type type_id_format = { .parse = parse_id_format, .deinit = deinit_id_format };

const struct settings_row settings_rows[ROW_COUNT] = {
#define FIELD_BYTES(field) sizeof(((struct settings *)NULL)->field)
#define SETTING(VARIABLE, field, type, default_text, low, high, words)                                       \
    { SETTINGS_PREFIX #VARIABLE, &type_##type, default_text, offsetof(struct settings, field),               \
      FIELD_BYTES(field),        low,          high,         words },
#include "tbl/settings.h"
};
