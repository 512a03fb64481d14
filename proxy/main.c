/*
 * main.c - the program.
 */
#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sysexits.h>
#include <unistd.h>

/* Whoever started us may have closed some of 0, 1 and 2.  The ledger's file would get the number, and our log lines
 * would be written into it.  What is opened in their place takes or gives nothing, so that an export into a closed stdout
 * fails, and is not lost in silence.  False: one stays closed. */
static bool standard_descriptors_fill(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    }
    return true;
}

int main(int argc, char **argv, char **envp)
{
    if (!standard_descriptors_fill())
        return EX_OSERR;
    /* A limit on the size of files is a disk that is full, and no reason to die in the middle of an exchange. */
    signal(SIGXFSZ, SIG_IGN);
    return cli_main(argc, argv, envp);
}
