/*
 * cli_table.h - every command and option of the program, as data.
 *
 * The one table behind the parser (cli_parse.c), --help (cli_help.c) and sinkonce(8) (cli_man.c).  A command is a row
 * in cli_table.c and a function in cli_commands.h.
 */
#ifndef SINKONCE_CLI_TABLE_H
#define SINKONCE_CLI_TABLE_H

#include <stdint.h>
#include "slice.h"

enum cli_option {
    OPTION_HELP,
    OPTION_JSON,
    OPTION_ADMIN,
    OPTION_TOKEN_FILE,
    OPTION_CA_FILE,
    OPTION_CERT_FILE,
    OPTION_KEY_FILE,
    OPTION_TOPIC,
    OPTION_PARTITION,
    OPTION_FROM,
    OPTION_TO,
    OPTION_EXPECT,
    OPTION_FOR,
    OPTION_APPLIED,
    OPTION_NOT_APPLIED,
    OPTION_REASON,
    OPTION_LIMIT,
    OPTION_FOLLOW,
    OPTION_METHOD,
    OPTION_PATH,
    OPTION_HEADER,
    OPTION_CONNECT,
    OPTION_LIVE,
    OPTION_READY,
    OPTION_VERBOSE,
    OPTION_COUNT
};

/* What stands behind an option, or as an operand. */
enum cli_value {
    VALUE_NONE,
    VALUE_FILE,
    VALUE_ADDRESS,
    VALUE_TOPIC,
    VALUE_PARTITION,
    VALUE_OFFSET,
    VALUE_ID,
    VALUE_NUMBER,
    VALUE_LIMIT,
    VALUE_DURATION,
    VALUE_REASON,
    VALUE_HEADER,
    VALUE_PATH,
    VALUE_METHOD,
    VALUE_DECISION,
    VALUE_SECTION,
    VALUE_COMMAND,
    VALUE_COUNT
};

struct cli_value_row {
    const char *name;  /* as it is shown: "TOPIC" */
    const char *words; /* what it must be, to follow "must be " */
};

struct cli_option_row {
    const char *name; /* "--topic" */
    char letter;      /* 'f': "-f" means the same; 0: none */
    enum cli_value value;
    const char *words;
};

enum { OPERANDS_MAX = 3, HEADERS_MAX = 64 };

struct cli_arguments;

struct cli_command {
    const char *name; /* one word or two: "in-doubt resolve" */
    enum cli_value operands[OPERANDS_MAX];
    size_t operands_min, operands_max;
    uint64_t options;      /* a bit for each */
    uint64_t required;     /* those among them that must be given */
    bool is_client;        /* asks the admin port of a running instance: takes the options for that, too */
    bool is_group_default; /* the first word of its name alone means this command */
    bool is_hidden;
    const char *words;
    int (*run)(const struct cli_arguments *arguments);
};

/* What the command line said, every value checked.  All borrowed from argv. */
struct cli_arguments {
    const struct cli_command *command;
    const char *values[OPTION_COUNT]; /* NULL: not given; a flag that is given: "" */
    const char *operands[OPERANDS_MAX];
    size_t operand_count;
    const char *headers[HEADERS_MAX]; /* each --header */
    size_t header_count;
    char **environment;
};

#define OPTION_BIT(option) (UINT64_C(1) << (option))

extern const struct cli_value_row cli_values[VALUE_COUNT];
extern const struct cli_option_row cli_options[OPTION_COUNT];
extern const struct cli_command cli_command_rows[]; /* ends with a NULL name */
extern const uint64_t cli_client_options;

/* All options of a command: its own, those of clients, --help. */
uint64_t cli_command_options(const struct cli_command *command);
/* "TOPIC" or "[TOPIC]". */
bool cli_operand_is_required(const struct cli_command *command, size_t index);
/* Is WORD the first word of the command's name, or all of it? */
bool cli_command_is_in(const struct cli_command *command, const char *word);

#endif
