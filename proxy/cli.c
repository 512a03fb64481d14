/*
 * cli.c - finds the command, runs it, and makes sure that its output arrived.
 */
#include "cli.h"
#include "cli_commands.h"
#include "cli_parse.h"
#include <errno.h>
#include <stdarg.h>
#include <sysexits.h>

int cli_refuse(const struct cli_command *command, const char *format, ...)
{
    va_list arguments;
    const bool has_command = command != NULL && command->run != cli_help;
    fprintf(stderr, "sinkonce%s%s: ", has_command ? " " : "", has_command ? command->name : "");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

int cli_main(int argc, char **argv, char **envp)
{
    struct cli_arguments arguments;
    const char *wrong = cli_parse(argv + (argc > 0), &arguments);
    if (wrong != NULL)
        return cli_refuse(arguments.command, "%s", wrong);
    arguments.environment = envp;
    const bool is_help = arguments.values[OPTION_HELP] != NULL;
    const int code = is_help ? cli_help(&arguments) : arguments.command->run(&arguments);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "sinkonce: stdout cannot be written: %s\n", strerror(errno));
    return code == 0 ? EX_IOERR : code;
}
