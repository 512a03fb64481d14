/*
 * cli_list.c - commands that only read: state, listings, one record, events.
 *
 * A listing is read page by page as the admin port gives it ("next"), and printed page by page.
 */
#include "cli_client.h"
#include "cli_commands.h"
#include "cli_print.h"
#include "text.h"
#include <errno.h>
#include <stdlib.h>
#include <sysexits.h>
#include <time.h>

/* A cursor is a number, or a topic with its partition. */
enum { PATH_BYTES_MAX = 1024, AFTER_BYTES_MAX = 320, PAGE_ROWS = 1000, COLUMNS_OF_LISTING_MAX = 10 };

struct listing {
    const char *path, *member; /* "/in-doubt", "in_doubt" */
    const char *nothing;       /* what to say when there is no row */
    struct cli_column columns[COLUMNS_OF_LISTING_MAX];
    size_t column_count;
};

/* ---- pages --------------------------------------------------------------------------------------------------- */

static void path_make(const struct listing *listing, const struct cli_arguments *arguments, const char *after,
                      char path[PATH_BYTES_MAX])
{
    const char *limit = arguments->values[OPTION_LIMIT], *topic = arguments->values[OPTION_TOPIC];
    char rows[24];
    snprintf(rows, sizeof rows, "%d", PAGE_ROWS);
    snprintf(path, PATH_BYTES_MAX, "%s?limit=%s%s%s%s%s", listing->path, limit != NULL ? limit : rows,
             topic != NULL ? "&topic=" : "", topic != NULL ? topic : "", after[0] != '\0' ? "&after=" : "",
             after);
}

/* Print a page and remember where the next one begins; "" when there is none. */
static size_t page_print(const struct listing *listing, const struct cli_client *client, const json_t *page,
                         bool is_first, char *after, size_t after_bytes_max)
{
    const json_t *rows = json_object_get(page, listing->member);
    const char *next = json_string_value(json_object_get(page, "next"));
    snprintf(after, after_bytes_max, "%s", next == NULL ? "" : next);
    if (!client->is_json && json_array_size(rows) > 0)
        cli_print_table(rows, listing->columns, listing->column_count, is_first, stdout);
    return json_array_size(rows);
}

static int list_all(const struct listing *listing, struct cli_client *client)
{
    char path[PATH_BYTES_MAX], after[AFTER_BYTES_MAX] = "";
    const bool is_limited = client->arguments->values[OPTION_LIMIT] != NULL;
    size_t count = 0, page_count;
    do {
        json_t *page = NULL;
        path_make(listing, client->arguments, after, path);
        const int code = cli_client_ask(client, "GET", path, NULL, &page);
        if (code != 0)
            return code;
        page_count = page_print(listing, client, page, count == 0, after, sizeof after);
        count += page_count;
        const json_int_t total = json_integer_value(json_object_get(page, "total"));
        if (after[0] == '\0' && !client->is_json && total > (json_int_t)count)
            fprintf(stderr, "these are %zu of %" JSON_INTEGER_FORMAT "\n", count, total);
        json_decref(page);
    } while (after[0] != '\0' && page_count > 0 && !is_limited);
    if (count == 0 && !client->is_json)
        fprintf(stderr, "%s\n", listing->nothing);
    return 0;
}

static int list(const struct listing *listing, const struct cli_arguments *arguments)
{
    struct cli_client client;
    int code = cli_client_init(&client, arguments);
    if (code == 0)
        code = list_all(listing, &client);
    cli_client_deinit(&client);
    return code;
}

#define COLUMNS(...)                                                                                         \
    .columns = { __VA_ARGS__ },                                                                              \
    .column_count = sizeof(struct cli_column[]){ __VA_ARGS__ } / sizeof(struct cli_column)

int cli_partitions(const struct cli_arguments *arguments)
{
    static const struct listing listing = {
        "/partitions",
        "partitions",
        "no partition has been met yet",
        COLUMNS({ "TOPIC", "topic", false }, { "PARTITION", "partition", true }, { "LOWEST", "lowest", true },
                { "HIGHEST", "highest", true }, { "APPLIED", "applied", true }, { "GAPS", "gaps", true },
                { "IN DOUBT", "in_doubt", true }, { "GENERATION", "generation", true },
                { "CONFLICT", "in_conflict", false }, { "LAST RESULT", "last_result", false }),
    };
    return list(&listing, arguments);
}

int cli_doubts(const struct cli_arguments *arguments)
{
    static const struct listing listing = {
        "/in-doubt",
        "in_doubt",
        "nothing is in doubt",
        COLUMNS({ "ID", "id", true }, { "TOPIC", "topic", false }, { "PARTITION", "partition", true },
                { "FIRST", "first", true }, { "LAST", "last", true }, { "RECORDS", "records", true },
                { "SINCE", "since", false }, { "CAUSE", "cause", false }, { "ATTEMPTS", "attempts", true },
                { "DETAIL", "detail", false }),
    };
    return list(&listing, arguments);
}

int cli_conflicts(const struct cli_arguments *arguments)
{
    static const struct listing listing = {
        "/conflicts",
        "conflicts",
        "no conflict waits for a decision",
        COLUMNS({ "ID", "id", true }, { "TOPIC", "topic", false }, { "PARTITION", "partition", true },
                { "OFFSET", "offset", true }, { "KIND", "kind", false }, { "STORED", "stored_mark", false },
                { "SEEN", "seen_mark", false }, { "DELIVERIES", "deliveries", true },
                { "SINCE", "since", false }),
    };
    return list(&listing, arguments);
}

int cli_replays(const struct cli_arguments *arguments)
{
    static const struct listing listing = {
        "/replays",
        "replays",
        "no window is open",
        COLUMNS({ "ID", "id", true }, { "TOPIC", "topic", false }, { "PARTITION", "partition", true },
                { "FROM", "from", true }, { "TO", "to", true }, { "REPLAYED", "replayed", true },
                { "OPENED", "opened", false }, { "UNTIL", "until", false }),
    };
    return list(&listing, arguments);
}

/* ---- one answer ---------------------------------------------------------------------------------------------- */

static int show(const struct cli_arguments *arguments, const char *path)
{
    struct cli_client client;
    json_t *answer = NULL;
    int code = cli_client_init(&client, arguments);
    if (code == 0)
        code = cli_client_ask(&client, "GET", path, NULL, &answer);
    if (code == 0 && !client.is_json)
        cli_print_members(answer, stdout);
    json_decref(answer);
    cli_client_deinit(&client);
    return code;
}

int cli_status(const struct cli_arguments *arguments)
{
    return show(arguments, "/status");
}

int cli_record(const struct cli_arguments *arguments)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof path, "/records?topic=%s&partition=%s&offset=%s", arguments->operands[0],
             arguments->operands[1], arguments->operands[2]);
    return show(arguments, path);
}

/* ---- events -------------------------------------------------------------------------------------------------- */

static void second_sleep(void)
{
    const struct timespec second = { .tv_sec = 1 };
    nanosleep(&second, NULL);
}

/* RET_AFTER: the event before the last ones that the limit asks for, "" when there is none.  The admin port begins with
 * the oldest and knows as many as a page holds; what comes between the two questions moves no event that is there. */
static int events_skip(const struct listing *listing, const struct cli_client *client,
                       char ret_after[AFTER_BYTES_MAX])
{
    char path[PATH_BYTES_MAX];
    json_t *page = NULL;
    struct cli_client silent = *client;
    silent.is_json = false;
    ret_after[0] = '\0';
    snprintf(path, sizeof path, "%s?limit=%d", listing->path, PAGE_ROWS);
    const int code = cli_client_ask(&silent, "GET", path, NULL, &page);
    const json_t *rows = json_object_get(page, listing->member);
    const size_t count = json_array_size(rows);
    const size_t wanted = strtoul(client->arguments->values[OPTION_LIMIT], NULL, 10);
    if (count > wanted) {
        const char *id = json_string_value(json_object_get(json_array_get(rows, count - wanted - 1), "id"));
        snprintf(ret_after, AFTER_BYTES_MAX, "%s", id != NULL ? id : "");
    }
    json_decref(page);
    return code;
}

/* Here "next" is where to ask again for what comes later, so that an empty page is the end of what there is. */
static int events_print(const struct listing *listing, struct cli_client *client)
{
    char path[PATH_BYTES_MAX], after[AFTER_BYTES_MAX] = "";
    const bool is_followed = client->arguments->values[OPTION_FOLLOW] != NULL;
    const bool is_limited = client->arguments->values[OPTION_LIMIT] != NULL;
    bool is_first = true;
    const int skip_code = is_limited ? events_skip(listing, client, after) : 0;
    if (skip_code != 0)
        return skip_code;
    for (;;) {
        json_t *page = NULL;
        path_make(listing, client->arguments, after, path);
        const int code = cli_client_ask(client, "GET", path, NULL, &page);
        if (code != 0)
            return code;
        const size_t count = page_print(listing, client, page, is_first, after, sizeof after);
        json_decref(page);
        is_first = is_first && count == 0;
        if (fflush(stdout) != 0 || (!is_followed && (count == 0 || is_limited)))
            return 0;
        if (count == 0)
            second_sleep();
    }
}

int cli_events(const struct cli_arguments *arguments)
{
    static const struct listing listing = {
        "/events",
        "events",
        "",
        COLUMNS({ "ID", "id", true }, { "TIME", "time", false }, { "EVENT", "event", false },
                { "TOPIC", "topic", false }, { "PARTITION", "partition", true }, { "FIRST", "first", true },
                { "LAST", "last", true }, { "DETAIL", "detail", false }),
    };
    struct cli_client client;
    int code = cli_client_init(&client, arguments);
    if (code == 0)
        code = events_print(&listing, &client);
    cli_client_deinit(&client);
    return code;
}
