/*
 * cli_explain.c - sinkonce explain: which records a sample request holds, and what would be sent.
 */
#include "cli_commands.h"

int cli_explain(const struct cli_arguments *arguments)
{
    return cli_refuse(arguments->command, "not yet");
}
