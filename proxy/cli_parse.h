/*
 * cli_parse.h - the command line into a command and its checked arguments.
 *
 * A decider: the table (cli_table.h) says what may stand there.  Nothing is printed here.
 */
#ifndef SINKONCE_CLI_PARSE_H
#define SINKONCE_CLI_PARSE_H

#include "cli_table.h"

/* ARGV without the program's name, ends with NULL.  NULL: RET holds the arguments; those and their values live as long
 * as ARGV.  Else the sentence that says what is wrong, which lives until the next call; RET->command is the command that
 * was meant, or NULL.  No argument at all means "serve".  With --help nothing else need be right. */
MUST_CHECK const char *cli_parse(char *const argv[], struct cli_arguments *ret);

#endif
