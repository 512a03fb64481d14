/*
 * target.c - a counting target that is not idempotent: each write that it applies is counted and takes a line
 * in its journal, so that a test can say how often each record took effect.
 *
 *   target --port N [--journal FILE] [--control-port N] [--unix PATH] [--address IPV4] [--no-journal]
 *
 * Port 0 lets the kernel choose.  Prints "port=N control=N" once it listens: on 127.0.0.1, without --address.
 * A journal line is KEY<TAB>HASH<TAB>MONOTONIC MILLISECONDS, written before the answer; the hash is the CRC-32 of
 * the record's bytes, a dash and their number.  --no-journal keeps the totals only, for loads of millions.  Faults
 * are ordered at the control port (target_control.h, target_rules.h).
 */
#include "target_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *journal;
    const char *unix_path;
    struct in_addr address;
    int port;
    int control_port;
    bool keeps_keys;
};

static int usage(void)
{
    fputs("usage: target --port N [--control-port N] [--journal FILE | --no-journal] [--unix PATH] "
          "[--address IPV4]\n",
          stderr);
    return 2;
}

static bool options_read(int argc, char **argv, struct options *ret_options)
{
    static const struct option names[] = {
        { "port", required_argument, NULL, 'p' },
        { "control-port", required_argument, NULL, 'c' },
        { "journal", required_argument, NULL, 'j' },
        { "no-journal", no_argument, NULL, 'n' },
        { "unix", required_argument, NULL, 'u' },
        { "address", required_argument, NULL, 'a' },
        { NULL, 0, NULL, 0 },
    };
    int option = 0;

    *ret_options = (struct options){ .keeps_keys = true, .address.s_addr = htonl(INADDR_LOOPBACK) };
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'p')
            ret_options->port = atoi(optarg);
        else if (option == 'c')
            ret_options->control_port = atoi(optarg);
        else if (option == 'j')
            ret_options->journal = optarg;
        else if (option == 'u')
            ret_options->unix_path = optarg;
        else if (option == 'n')
            ret_options->keeps_keys = false;
        else if (option == 'a' && inet_pton(AF_INET, optarg, &ret_options->address) == 1)
            continue;
        else
            return false;
    }
    return optind == argc;
}

static void address_tcp(struct target_listener *listener, struct in_addr where, int port)
{
    struct sockaddr_in *address = (struct sockaddr_in *)&listener->address;

    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    address->sin_addr = where;
    listener->address_length = sizeof *address;
}

static void address_unix(struct target_listener *listener, const char *path)
{
    struct sockaddr_un *address = (struct sockaddr_un *)&listener->address;

    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
    listener->address_length = sizeof *address;
}

static void server_init(struct target_server *server, const struct options *options)
{
    *server = (struct target_server){ .base = event_base_new(), .keeps_last = options->keeps_keys };
    if (server->base == NULL)
        abort();
    TAILQ_INIT(&server->conns);
    target_rules_init(&server->rules);
    server->counts = target_counts_new(options->journal, options->keeps_keys);
    server->writes.server = server;
    server->control.server = server;
    server->control.is_control = true;
    address_tcp(&server->control, options->address, options->control_port);
    if (options->unix_path != NULL)
        address_unix(&server->writes, options->unix_path);
    else
        address_tcp(&server->writes, options->address, options->port);
}

static void on_term_cb(evutil_socket_t signal_number, short what, void *context)
{
    struct target_server *server = context;

    (void)signal_number;
    (void)what;
    event_base_loopbreak(server->base);
}

int main(int argc, char **argv)
{
    static struct target_server server;
    struct options options;

    if (!options_read(argc, argv, &options))
        return usage();
    server_init(&server, &options);
    if (!target_listener_open(&server.writes) || !target_listener_open(&server.control)) {
        fprintf(stderr, "target: cannot listen: %s\n", strerror(errno));
        return 71;
    }
    struct event *on_term = evsignal_new(server.base, SIGTERM, on_term_cb, &server);
    event_add(on_term, NULL);
    printf("port=%d control=%d\n", target_listener_port(&server.writes),
           target_listener_port(&server.control));
    fflush(stdout);
    event_base_dispatch(server.base);
    return 0;
}
