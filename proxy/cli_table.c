/*
 * cli_table.c - the rows.
 */
#include "cli_table.h"
#include "cli_commands.h"

const struct cli_value_row cli_values[VALUE_COUNT] = {
    [VALUE_NONE] = { "", "" },
    [VALUE_FILE] = { "FILE", "the path of a file" },
    [VALUE_ADDRESS] = { "ADDRESS", "HOST:PORT, https://HOST:PORT or unix:/path" },
    [VALUE_TOPIC] = { "TOPIC", "the name of a Kafka topic" },
    [VALUE_PARTITION] = { "PARTITION", "a whole number from 0 to 2147483647" },
    [VALUE_OFFSET] = { "OFFSET", "a whole number from 0 to 9223372036854775807" },
    [VALUE_ID] = { "ID", "an id from the list: a whole number" },
    [VALUE_NUMBER] = { "N", "a whole number from 0 to 9223372036854775807" },
    [VALUE_LIMIT] = { "N", "a whole number from 1 to 1000" },
    [VALUE_DURATION] = { "DURATION", "a time with its unit, such as 90s, 10m, 2h or 1d" },
    [VALUE_REASON] = { "TEXT", "a text of 1 to 120 bytes on one line" },
    [VALUE_HEADER] = { "HEADER", "a header field, such as \"X-Kafka-Topic: orders\"" },
    [VALUE_PATH] = { "PATH", "the path of a request, which begins with a slash" },
    [VALUE_METHOD] = { "METHOD", "a request method, such as POST" },
    [VALUE_DECISION] = { "same|new-topic", "same or new-topic" },
    [VALUE_SECTION] = { "8|5", "8 for sinkonce(8) or 5 for sinkonce-env(5)" },
    [VALUE_COMMAND] = { "COMMAND", "the name of a command" },
};

const struct cli_option_row cli_options[OPTION_COUNT] = {
    [OPTION_HELP] = { "--help", 'h', VALUE_NONE, "say what the command takes" },
    [OPTION_JSON] = { "--json", 0, VALUE_NONE, "print the admin port's answers as they come, one a line" },
    [OPTION_ADMIN] = { "--admin", 0, VALUE_ADDRESS,
                       "the admin port to ask instead of SINKONCE_ADMIN_LISTEN" },
    [OPTION_TOKEN_FILE] = { "--token-file", 0, VALUE_FILE,
                            "a file with the admin token, instead of SINKONCE_ADMIN_TOKEN; a pipe, or - for "
                            "stdin, has 30 seconds" },
    [OPTION_CA_FILE] = { "--ca-file", 0, VALUE_FILE,
                         "certificates that may have signed that of the admin port; without it those of the "
                         "system or, without --admin, the key of SINKONCE_ADMIN_CERT_FILE alone" },
    [OPTION_CERT_FILE] = { "--cert-file", 0, VALUE_FILE, "the client certificate to show to the admin port" },
    [OPTION_KEY_FILE] = { "--key-file", 0, VALUE_FILE, "its key" },
    [OPTION_TOPIC] = { "--topic", 0, VALUE_TOPIC, "records of this topic only" },
    [OPTION_PARTITION] = { "--partition", 0, VALUE_PARTITION, "records of this partition only" },
    [OPTION_FROM] = { "--from", 0, VALUE_OFFSET, "the first offset" },
    [OPTION_TO] = { "--to", 0, VALUE_OFFSET, "the last offset, itself included" },
    [OPTION_EXPECT] = { "--expect", 0, VALUE_NUMBER,
                        "how many records it will be; with any other number nothing is changed" },
    [OPTION_FOR] = { "--for", 0, VALUE_DURATION, "how long the window stays open" },
    [OPTION_APPLIED] = { "--applied", 0, VALUE_NONE, "the target has them: never send them again" },
    [OPTION_NOT_APPLIED] = { "--not-applied", 0, VALUE_NONE,
                             "the target does not have them: send them at their next delivery" },
    [OPTION_REASON] = { "--reason", 0, VALUE_REASON, "how you know; it is kept with the event" },
    [OPTION_LIMIT] = { "--limit", 0, VALUE_LIMIT, "so many rows at most; without it all" },
    [OPTION_FOLLOW] = { "--follow", 'f', VALUE_NONE, "go on printing what comes" },
    [OPTION_METHOD] = { "--method", 0, VALUE_METHOD, "the sample's method; without it POST" },
    [OPTION_PATH] = { "--path", 0, VALUE_PATH, "the sample's path and query; without it /" },
    [OPTION_HEADER] = { "--header", 0, VALUE_HEADER, "a header field of the sample; may be given again" },
    [OPTION_CONNECT] = { "--connect", 0, VALUE_NONE, "connect to the target, too" },
    [OPTION_LIVE] = { "--live", 0, VALUE_NONE, "ask whether it lives" },
    [OPTION_READY] = { "--ready", 0, VALUE_NONE, "ask whether it is ready, as without an option" },
    [OPTION_VERBOSE] = { "--verbose", 'v', VALUE_NONE,
                         "every library, as it runs and as it was built with; in the image its Debian "
                         "packages, too" },
};

#define B(name) OPTION_BIT(OPTION_##name)

const struct cli_command cli_command_rows[] = {
    { .name = "serve", .run = cli_serve, .words = "run the proxy; what sinkonce does without a command" },
    { .name = "check",
      .options = B(CONNECT),
      .run = cli_check,
      .words = "report all that is wrong with settings and data folder, and the target if asked" },
    { .name = "config print",
      .is_group_default = true,
      .run = cli_config_print,
      .words = "print every setting as it holds, and where it comes from; secrets are hidden" },
    { .name = "config env",
      .run = cli_config_env,
      .words = "print every setting with its default, as a file" },
    { .name = "config docs", .run = cli_config_docs, .words = "print every setting as a table in Markdown" },
    { .name = "explain",
      .operands = { VALUE_FILE },
      .operands_max = 1,
      .options = B(METHOD) | B(PATH) | B(HEADER) | B(JSON),
      .run = cli_explain,
      .words =
          "say which records a sample request holds, by which rule, and what would be sent; the body comes "
          "from FILE or, with - or none, from stdin.  Nothing is sent and no instance is asked" },
    { .name = "health",
      .options = B(LIVE) | B(READY),
      .run = cli_health,
      .words = "ask the running instance whether it is ready: exit code 0 or 1" },
    { .name = "status",
      .is_client = true,
      .run = cli_status,
      .words = "the state of the running instance, and what needs a person, in sentences" },
    { .name = "partitions",
      .options = B(TOPIC) | B(LIMIT),
      .is_client = true,
      .run = cli_partitions,
      .words = "what has been applied, partition by partition" },
    { .name = "in-doubt list",
      .options = B(TOPIC) | B(LIMIT),
      .is_client = true,
      .is_group_default = true,
      .run = cli_doubts,
      .words = "the records of which nobody can know whether they were applied" },
    { .name = "in-doubt resolve",
      .operands = { VALUE_ID },
      .operands_max = 1,
      .options =
          B(TOPIC) | B(PARTITION) | B(FROM) | B(TO) | B(EXPECT) | B(APPLIED) | B(NOT_APPLIED) | B(REASON),
      .required = B(REASON),
      .is_client = true,
      .run = cli_resolve,
      .words = "say what became of one doubt by its ID, or of all that the options match; then --expect is "
               "needed" },
    { .name = "records get",
      .operands = { VALUE_TOPIC, VALUE_PARTITION, VALUE_OFFSET },
      .operands_min = 3,
      .operands_max = 3,
      .is_client = true,
      .run = cli_record,
      .words = "what the ledger says of one record" },
    { .name = "forget",
      .options = B(TOPIC) | B(PARTITION) | B(FROM) | B(TO) | B(EXPECT) | B(REASON),
      .required = B(TOPIC) | B(EXPECT) | B(REASON),
      .is_client = true,
      .run = cli_forget,
      .words = "forget that records were applied: at their next delivery they are sent again" },
    { .name = "replay list",
      .options = B(TOPIC) | B(LIMIT),
      .is_client = true,
      .is_group_default = true,
      .run = cli_replays,
      .words = "the open windows in which records may be sent again" },
    { .name = "replay open",
      .options = B(TOPIC) | B(PARTITION) | B(FROM) | B(TO) | B(FOR) | B(REASON),
      .required = B(TOPIC) | B(PARTITION) | B(FROM) | B(TO) | B(FOR),
      .is_client = true,
      .run = cli_replay_open,
      .words = "let applied records of a range be sent again, once each, when they are delivered within the "
               "time" },
    { .name = "replay close",
      .operands = { VALUE_ID },
      .operands_min = 1,
      .operands_max = 1,
      .options = B(REASON),
      .is_client = true,
      .run = cli_replay_close,
      .words = "close a window before its time" },
    { .name = "conflicts list",
      .options = B(TOPIC) | B(LIMIT),
      .is_client = true,
      .is_group_default = true,
      .run = cli_conflicts,
      .words = "partitions that wait because other records came at known offsets" },
    { .name = "conflicts decide",
      .operands = { VALUE_ID, VALUE_DECISION },
      .operands_min = 2,
      .operands_max = 2,
      .options = B(REASON),
      .required = B(REASON),
      .is_client = true,
      .run = cli_decide,
      .words = "same: they are the records that were applied; new-topic: the topic was created anew, and its "
               "history "
               "begins again" },
    { .name = "events",
      .options = B(FOLLOW) | B(LIMIT),
      .is_client = true,
      .run = cli_events,
      .words = "what happened, and who changed what: the last 1,000, or as many as the limit says" },
    { .name = "ledger stat",
      .options = B(JSON),
      .is_group_default = true,
      .run = cli_ledger_stat,
      .words = "figures of the ledger in SINKONCE_DATA_DIR, which no instance may have open" },
    { .name = "ledger verify",
      .options = B(JSON),
      .run = cli_ledger_verify,
      .words = "read all of that ledger and say what does not hold together, one finding a line" },
    { .name = "ledger export",
      .run = cli_ledger_export,
      .words = "print that ledger as lines of JSON: the way to another version's format" },
    { .name = "ledger import",
      .operands = { VALUE_FILE },
      .operands_max = 1,
      .run = cli_ledger_import,
      .words = "make a ledger in SINKONCE_DATA_DIR, which must have none, of exported lines from FILE or, "
               "with - or "
               "none, from stdin: all of them or nothing" },
    { .name = "ledger backup",
      .operands = { VALUE_FILE },
      .operands_min = 1,
      .operands_max = 1,
      .is_client = true,
      .run = cli_backup,
      .words = "let the running instance write a consistent copy of its ledger into a new FILE, while it "
               "goes on: a bare name in its data folder, or a path straight into that folder or its parent" },
    { .name = "man",
      .operands = { VALUE_SECTION },
      .operands_min = 1,
      .operands_max = 1,
      .is_hidden = true,
      .run = cli_man,
      .words = "print a manual page in mdoc" },
    { .name = "--version",
      .options = B(VERBOSE),
      .run = cli_version,
      .words = "versions of sinkonce and its libraries" },
    { .name = "--help",
      .operands = { VALUE_COMMAND, VALUE_COMMAND },
      .operands_max = 2,
      .run = cli_help,
      .words = "all commands and settings, or what one command takes" },
    { .name = NULL },
};

const uint64_t cli_client_options =
    B(JSON) | B(ADMIN) | B(TOKEN_FILE) | B(CA_FILE) | B(CERT_FILE) | B(KEY_FILE);

uint64_t cli_command_options(const struct cli_command *command)
{
    return command->options | (command->is_client ? cli_client_options : 0) | B(HELP);
}

bool cli_operand_is_required(const struct cli_command *command, size_t index)
{
    return index < command->operands_min;
}

bool cli_command_is_in(const struct cli_command *command, const char *word)
{
    size_t bytes = strlen(word);
    return strncmp(command->name, word, bytes) == 0 &&
           (command->name[bytes] == '\0' || command->name[bytes] == ' ');
}
