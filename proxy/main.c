/*
 * main.c - the program.
 */
#include "cli.h"

int main(int argc, char **argv, char **envp)
{
    return cli_main(argc, argv, envp);
}
