/*
 * cli.h - the command line: which command runs, and with which exit code the program ends.
 *
 * What was asked for goes to stdout, everything else to stderr.  Exit codes are those of sysexits.h: 78 configuration,
 * 75 ledger locked, 74 ledger or output failed, 69 target or instance unreachable; 1 for a refusal, and 2 for a command
 * line that is wrong.
 */
#ifndef SINKONCE_CLI_H
#define SINKONCE_CLI_H

/* [main] The exit code. */
int cli_main(int argc, char **argv, char **envp);

#endif
