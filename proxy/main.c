/*
 * main.c - the program.
 */
#include "cli.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sysexits.h>
#include <unistd.h>

/* Whoever started us may have closed some of 0, 1 and 2.  The ledger's file would get the number, and our log lines
 * would be written into it.  False: they stay closed. */
static bool standard_descriptors_fill(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || (fcntl(STDIN_FILENO, F_GETFD) >= 0 && fcntl(STDOUT_FILENO, F_GETFD) >= 0 &&
                       fcntl(STDERR_FILENO, F_GETFD) >= 0);
}

int main(int argc, char **argv, char **envp)
{
    if (!standard_descriptors_fill())
        return EX_OSERR;
    return cli_main(argc, argv, envp);
}
