/*
 * resolver.h - name look-ups on a thread of their own, because libcurl's would stop a loop.
 *
 * Keeps each answer for RESOLVER_TTL; a look-up that is asked for meanwhile joins the running one.  What was found before
 * holds as long as nobody can say whether it still does (a name server that is silent, or at a loss); "no such name" ends it.
 */
#ifndef SINKONCE_RESOLVER_H
#define SINKONCE_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "slice.h"

struct resolver;

enum { RESOLVER_TTL_MS = 30000, RESOLVER_ADDRESSES_BYTES_MAX = 512, RESOLVER_ADDRESS_BYTES_MAX = 80 };

/* One question.  The caller's memory, lent until done(), which runs on the resolver's thread and only posts on. */
struct lookup {
    const char *host;                              /* borrowed */
    void (*done)(struct lookup *lookup);
    void *owner;
    bool is_found;
    char addresses[RESOLVER_ADDRESSES_BYTES_MAX];  /* "127.0.0.1,[::1]" for CURLOPT_RESOLVE */
    char detail[96];
    struct lookup *next;                           /* the resolver's */
};

MUST_CHECK struct resolver *resolver_new(void);    /* [main] NULL: no memory, no thread */
void resolver_free(struct resolver *resolver);     /* [main] once no loop runs; does not wait for a silent server */
/* [any] A literal address, or an answer that is still fresh, is given at once: true, and done() is not called. */
bool resolver_ask(struct resolver *resolver, struct lookup *lookup);
bool resolver_is_literal(const char *host);        /* an address of IPv4 or IPv6 without brackets: nothing to ask */
/* ADDRESS as it would stand in a lookup's list.  False: it is none of the internet. */
MUST_CHECK bool resolver_address_write(const struct sockaddr *address, socklen_t byte_count,
                                       char ret_text[RESOLVER_ADDRESS_BYTES_MAX]);

#endif
