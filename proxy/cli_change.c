/*
 * cli_change.c - commands that change something: each is one call of the admin port, which has the last word.
 */
#include "cli_client.h"
#include "cli_commands.h"
#include "cli_print.h"
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 64 };

/* Numbers go as numbers: they have been checked, and are at most 2^63 - 1. */
static void number_set(json_t *body, const char *name, const char *digits)
{
    if (digits != NULL)
        json_object_set_new(body, name, json_integer((json_int_t)strtoll(digits, NULL, 10)));
}

static void text_set(json_t *body, const char *name, const char *text)
{
    if (text != NULL)
        json_object_set_new(body, name, json_string(text));
}

/* What the options say of a range of records. */
static json_t *range_json(const struct cli_arguments *arguments)
{
    json_t *body = json_object();
    text_set(body, "topic", arguments->values[OPTION_TOPIC]);
    number_set(body, "partition", arguments->values[OPTION_PARTITION]);
    number_set(body, "from", arguments->values[OPTION_FROM]);
    number_set(body, "to", arguments->values[OPTION_TO]);
    number_set(body, "expect_count", arguments->values[OPTION_EXPECT]);
    text_set(body, "reason", arguments->values[OPTION_REASON]);
    return body;
}

/* NULL, or what is wrong with the range that the options give. */
static const char *range_check(const struct cli_arguments *arguments)
{
    const char *const *values = arguments->values;
    if (values[OPTION_PARTITION] != NULL && values[OPTION_TOPIC] == NULL)
        return "--partition needs --topic";
    if ((values[OPTION_FROM] == NULL) != (values[OPTION_TO] == NULL))
        return "--from and --to belong together";
    if (values[OPTION_FROM] != NULL && values[OPTION_PARTITION] == NULL)
        return "--from and --to need --partition";
    if (values[OPTION_FROM] != NULL &&
        strtoll(values[OPTION_FROM], NULL, 10) > strtoll(values[OPTION_TO], NULL, 10))
        return "--from must not be above --to";
    return NULL;
}

/* BODY is taken. */
static int change(const struct cli_arguments *arguments, const char *method, const char *path, json_t *body)
{
    struct cli_client client;
    json_t *answer = NULL;
    int code = cli_client_init(&client, arguments);
    if (code == 0)
        code = cli_client_ask(&client, method, path, body, &answer);
    else
        json_decref(body);
    if (code == 0 && !client.is_json)
        cli_print_members(answer, stdout);
    json_decref(answer);
    cli_client_deinit(&client);
    return code;
}

/* ---- doubts -------------------------------------------------------------------------------------------------- */

static const char *resolve_check(const struct cli_arguments *arguments)
{
    const char *const *values = arguments->values;
    const bool has_filter = values[OPTION_TOPIC] != NULL || values[OPTION_PARTITION] != NULL ||
                            values[OPTION_FROM] != NULL || values[OPTION_TO] != NULL ||
                            values[OPTION_EXPECT] != NULL;
    if ((values[OPTION_APPLIED] == NULL) == (values[OPTION_NOT_APPLIED] == NULL))
        return "say --applied or --not-applied";
    if (arguments->operand_count > 0 && has_filter)
        return "an ID names one doubt: --topic, --partition, --from, --to and --expect are for many";
    if (arguments->operand_count == 0 && !has_filter)
        return "name an ID of sinkonce in-doubt list, or many by --topic ... --expect N";
    if (arguments->operand_count == 0 && values[OPTION_EXPECT] == NULL)
        return "--expect is missing: how many records it will be, as sinkonce in-doubt list shows";
    return range_check(arguments);
}

int cli_resolve(const struct cli_arguments *arguments)
{
    char path[PATH_BYTES_MAX];
    const char *wrong = resolve_check(arguments);
    if (wrong != NULL)
        return cli_refuse(arguments->command, "%s", wrong);
    const bool is_one = arguments->operand_count > 0;
    snprintf(path, sizeof path, "/in-doubt%s%s", is_one ? "/" : "", is_one ? arguments->operands[0] : "");
    json_t *body = range_json(arguments);
    text_set(body, "resolution", arguments->values[OPTION_APPLIED] != NULL ? "applied" : "not-applied");
    return change(arguments, "POST", path, body);
}

/* ---- history ------------------------------------------------------------------------------------------------- */

int cli_forget(const struct cli_arguments *arguments)
{
    const char *wrong = range_check(arguments);
    if (wrong != NULL)
        return cli_refuse(arguments->command, "%s", wrong);
    return change(arguments, "POST", "/forget", range_json(arguments));
}

int cli_replay_open(const struct cli_arguments *arguments)
{
    const char *wrong = range_check(arguments);
    if (wrong != NULL)
        return cli_refuse(arguments->command, "%s", wrong);
    json_t *body = range_json(arguments);
    text_set(body, "for", arguments->values[OPTION_FOR]);
    return change(arguments, "POST", "/replays", body);
}

int cli_replay_close(const struct cli_arguments *arguments)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof path, "/replays/%s", arguments->operands[0]);
    return change(arguments, "DELETE", path, range_json(arguments));
}

int cli_decide(const struct cli_arguments *arguments)
{
    char path[PATH_BYTES_MAX];
    json_t *body = range_json(arguments);
    snprintf(path, sizeof path, "/conflicts/%s", arguments->operands[0]);
    text_set(body, "decision", arguments->operands[1]);
    return change(arguments, "POST", path, body);
}

/* ---- backup -------------------------------------------------------------------------------------------------- */

/* A path means the same for the instance as for whoever types it; a bare name is one in the data folder. */
int cli_backup(const struct cli_arguments *arguments)
{
    char path[PATH_MAX], here[PATH_MAX / 2];
    const char *file = arguments->operands[0];
    json_t *body = json_object();
    snprintf(path, sizeof path, "%s", file);
    if (file[0] != '/' && strchr(file, '/') != NULL && getcwd(here, sizeof here) != NULL)
        snprintf(path, sizeof path, "%s/%s", here, file);
    text_set(body, "path", path);
    return change(arguments, "POST", "/backup", body);
}
