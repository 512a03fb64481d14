/*
 * cli_commands.h - the commands behind cli_table.c; the exit code comes back.
 */
#ifndef SINKONCE_CLI_COMMANDS_H
#define SINKONCE_CLI_COMMANDS_H

#include "cli_table.h"
#include "settings.h"

enum { EXIT_USAGE = 2 };

int cli_serve(const struct cli_arguments *arguments);        /* cli_serve.c */
int cli_check(const struct cli_arguments *arguments);        /* cli_check.c */
int cli_config_print(const struct cli_arguments *arguments); /* cli_config.c */
int cli_config_env(const struct cli_arguments *arguments);
int cli_config_docs(const struct cli_arguments *arguments);
int cli_explain(const struct cli_arguments *arguments); /* cli_explain.c */
int cli_health(const struct cli_arguments *arguments);  /* cli_health.c */
int cli_status(const struct cli_arguments *arguments);  /* cli_list.c */
int cli_partitions(const struct cli_arguments *arguments);
int cli_doubts(const struct cli_arguments *arguments);
int cli_record(const struct cli_arguments *arguments);
int cli_replays(const struct cli_arguments *arguments);
int cli_conflicts(const struct cli_arguments *arguments);
int cli_events(const struct cli_arguments *arguments);
int cli_resolve(const struct cli_arguments *arguments); /* cli_change.c */
int cli_forget(const struct cli_arguments *arguments);
int cli_replay_open(const struct cli_arguments *arguments);
int cli_replay_close(const struct cli_arguments *arguments);
int cli_decide(const struct cli_arguments *arguments);
int cli_backup(const struct cli_arguments *arguments);
int cli_ledger_stat(const struct cli_arguments *arguments); /* cli_ledger.c */
int cli_ledger_verify(const struct cli_arguments *arguments);
int cli_ledger_export(const struct cli_arguments *arguments);
int cli_ledger_import(const struct cli_arguments *arguments);
int cli_man(const struct cli_arguments *arguments);     /* cli_man.c */
int cli_version(const struct cli_arguments *arguments); /* cli_version.c */
int cli_help(const struct cli_arguments *arguments);    /* cli_help.c */

/* Say on stderr what is wrong with the command line: EXIT_USAGE. */
int cli_refuse(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The settings for work without a target, which need not be set then.  False: every mistake has been said.  RET must be
 * deinitialised in both cases. */
MUST_CHECK bool cli_settings_read(const struct cli_arguments *arguments,
                                  struct settings *ret); /* cli_config.c */
/* Write every mistake and note to stderr, one a line. */
void cli_print_mistakes(const struct settings_mistakes *mistakes);
/* Can a ledger live in the data folder?  0, EX_IOERR or EX_TEMPFAIL, with a sentence on stderr.  Nothing is left
 * behind, and an instance that runs there is not disturbed. */
int cli_folder_check(const struct settings *settings); /* cli_folder.c */
bool cli_folder_has_ledger(const char *folder);
/* Would serve take the ledger in the data folder, if there is one?  Answers as above.  The folder's lock is held
 * meanwhile: to be asked where no instance runs. */
int cli_ledger_check(const struct settings *settings); /* cli_ledger.c */

#endif
