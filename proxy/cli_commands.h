/*
 * cli_commands.h - the commands behind cli.c; ARGV[0] is the command's own name, the exit code comes back.
 */
#ifndef SINKONCE_CLI_COMMANDS_H
#define SINKONCE_CLI_COMMANDS_H

#include "settings.h"

enum { EXIT_USAGE = 2 };

int cli_check(int argc, char **argv, char **envp);  /* cli_check.c */
int cli_health(int argc, char **argv, char **envp); /* cli_health.c */
int cli_version(void);                              /* cli_version.c */

/* Say that ARGUMENT of COMMAND was not understood: EXIT_USAGE. */
int cli_refuse(const char *command, const char *argument);
/* Write every mistake and note to stderr, one a line. */
void cli_print_mistakes(const struct settings_mistakes *mistakes);
/* Can a ledger live in the data folder?  0, EX_IOERR or EX_TEMPFAIL, with a sentence on stderr.  Nothing is left
 * behind, and an instance that runs there is not disturbed. */
int cli_folder_check(const struct settings *settings); /* cli_folder.c */

#endif
