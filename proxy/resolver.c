/*
 * resolver.c - the one thread that may wait for a name server.
 *
 *     resolver_ask() --> entry of the host, its waiters --> thread: getaddrinfo() --> done() of each waiter
 *
 * The thread is detached and holds its own reference: a silent server keeps it, but nobody else, waiting.  Hosts are
 * few (the target, or its proxy), so entries are a plain list and live as long as the state.
 */
#include "resolver.h"
#include <assert.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "clock.h"

enum { NEGATIVE_TTL_MS = 1000 };

struct entry {
    char *host; /* owned */
    bool is_wanted;
    bool is_found;
    bool is_answered;        /* somebody who knows said so */
    uint64_t fresh_until_ns; /* 0: never asked */
    char addresses[RESOLVER_ADDRESSES_BYTES_MAX];
    char detail[96];
    struct lookup *waiters; /* lent by those who asked */
    struct entry *next;
};

struct resolver {
    pthread_mutex_t lock;
    pthread_cond_t is_changed;
    unsigned reference_count; /* guarded by lock, as is all below: the owner's and the thread's */
    bool is_closed;
    struct entry *entries; /* owned */
};

static void state_free(struct resolver *resolver)
{
    for (struct entry *entry = resolver->entries; entry != NULL;) {
        struct entry *next = entry->next;
        free(entry->host);
        free(entry);
        entry = next;
    }
    (void)pthread_cond_destroy(&resolver->is_changed);
    (void)pthread_mutex_destroy(&resolver->lock);
    free(resolver);
}

/* Gives the lock back, and with the last reference the state. */
static void unlock_and_put(struct resolver *resolver)
{
    bool is_last = --resolver->reference_count == 0;
    (void)pthread_mutex_unlock(&resolver->lock);
    if (is_last)
        state_free(resolver);
}

/* In the form of CURLOPT_RESOLVE. */
bool resolver_address_write(const struct sockaddr *address, socklen_t byte_count,
                            char ret_text[RESOLVER_ADDRESS_BYTES_MAX])
{
    char host[RESOLVER_ADDRESS_BYTES_MAX - 2];
    bool is_v6 = address->sa_family == AF_INET6;
    if ((address->sa_family != AF_INET && !is_v6) ||
        getnameinfo(address, byte_count, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
        return false;
    (void)snprintf(ret_text, RESOLVER_ADDRESS_BYTES_MAX, is_v6 ? "[%s]" : "%s", host);
    return true;
}

/* What does not fit any more is left out. */
static void addresses_add(char addresses[RESOLVER_ADDRESSES_BYTES_MAX], const struct addrinfo *found)
{
    char text[RESOLVER_ADDRESS_BYTES_MAX];
    size_t used = strlen(addresses);
    if (!resolver_address_write(found->ai_addr, found->ai_addrlen, text))
        return;
    int count =
        snprintf(addresses + used, RESOLVER_ADDRESSES_BYTES_MAX - used, "%s%s", used > 0 ? "," : "", text);
    if (count < 0 || (size_t)count >= RESOLVER_ADDRESSES_BYTES_MAX - used)
        addresses[used] = '\0';
}

/* Did somebody who knows say so?  Else no server answered, one was at a loss, or we could not even ask. */
static bool is_answer(int rc)
{
    return rc == 0 || rc == EAI_NONAME || rc == EAI_NODATA || rc == EAI_ADDRFAMILY;
}

/* The only call that may wait, without the lock.  ANSWER's host is not touched. */
static void look_up(const char *host, struct entry *answer)
{
    /* Without AI_ADDRCONFIG: a container may have loopback only, and libcurl passes over what it cannot reach. */
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(host, NULL, &hints, &found);
    answer->addresses[0] = '\0';
    answer->detail[0] = '\0';
    if (rc == 0) {
        for (const struct addrinfo *next = found; next != NULL; next = next->ai_next)
            addresses_add(answer->addresses, next);
        freeaddrinfo(found);
    }
    answer->is_found = answer->addresses[0] != '\0';
    answer->is_answered = is_answer(rc);
    if (!answer->is_found)
        (void)snprintf(answer->detail, sizeof answer->detail, "the name was not found: %s",
                       rc != 0 ? gai_strerror(rc) : "no address");
}

static void lookup_fill(struct lookup *lookup, const struct entry *entry)
{
    lookup->is_found = entry->is_found;
    memcpy(lookup->addresses, entry->addresses, sizeof lookup->addresses);
    memcpy(lookup->detail, entry->detail, sizeof lookup->detail);
}

/* Fill and answer a list of waiters.  done() may release the lookup, and may ask again. */
static void answer_all(struct lookup *waiters, const struct entry *answer)
{
    while (waiters != NULL) {
        struct lookup *next = waiters->next;
        lookup_fill(waiters, answer);
        waiters->done(waiters);
        waiters = next;
    }
}

static struct entry *entry_wanted(struct resolver *resolver)
{
    for (struct entry *entry = resolver->entries; entry != NULL; entry = entry->next)
        if (entry->is_wanted)
            return entry;
    return NULL;
}

/* Under the lock.  What was found before is not forgotten because nobody can say whether it still holds. */
static void entry_take(struct entry *entry, const struct entry *answer)
{
    bool is_kept = entry->is_found && !answer->is_answered;
    uint64_t fresh_ms = answer->is_found ? RESOLVER_TTL_MS : NEGATIVE_TTL_MS;
    entry->is_wanted = false;
    entry->fresh_until_ns = clock_monotonic_ns() + fresh_ms * NS_PER_MS;
    if (is_kept)
        return;
    entry->is_found = answer->is_found;
    memcpy(entry->addresses, answer->addresses, sizeof entry->addresses);
    memcpy(entry->detail, answer->detail, sizeof entry->detail);
}

/* [resolver] One look-up; the lock is held on entry and on return, not meanwhile. */
static void serve(struct resolver *resolver, struct entry *entry)
{
    struct entry answer = { 0 };
    (void)pthread_mutex_unlock(&resolver->lock);
    look_up(entry->host, &answer); /* host is constant, and our reference keeps the entry */
    (void)pthread_mutex_lock(&resolver->lock);
    entry_take(entry, &answer);
    answer = *entry;
    struct lookup *waiters = entry->waiters;
    entry->waiters = NULL;
    (void)pthread_mutex_unlock(&resolver->lock);
    answer_all(waiters, &answer);
    (void)pthread_mutex_lock(&resolver->lock);
}

static void *resolver_main(void *context)
{
    struct resolver *resolver = context;
    (void)pthread_mutex_lock(&resolver->lock);
    while (!resolver->is_closed) {
        struct entry *entry = entry_wanted(resolver);
        if (entry != NULL)
            serve(resolver, entry);
        else
            (void)pthread_cond_wait(&resolver->is_changed, &resolver->lock);
    }
    unlock_and_put(resolver);
    return NULL;
}

static bool thread_start(struct resolver *resolver)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &attributes, resolver_main, resolver);
    (void)pthread_attr_destroy(&attributes);
    return rc == 0;
}

struct resolver *resolver_new(void)
{
    struct resolver *resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL)
        return NULL;
    (void)pthread_mutex_init(&resolver->lock, NULL);
    (void)pthread_cond_init(&resolver->is_changed, NULL);
    resolver->reference_count = 2;
    if (!thread_start(resolver)) {
        state_free(resolver);
        return NULL;
    }
    return resolver;
}

void resolver_free(struct resolver *resolver)
{
    static const struct entry closed = { .detail = "shutting down" };
    struct lookup *left = NULL;
    if (resolver == NULL)
        return;
    (void)pthread_mutex_lock(&resolver->lock);
    resolver->is_closed = true;
    for (struct entry *entry = resolver->entries; entry != NULL; entry = entry->next) {
        while (entry->waiters != NULL) {
            struct lookup *waiter = entry->waiters;
            entry->waiters = waiter->next;
            waiter->next = left;
            left = waiter;
        }
    }
    (void)pthread_cond_signal(&resolver->is_changed);
    unlock_and_put(resolver);
    answer_all(left, &closed);
}

bool resolver_is_literal(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

static struct entry *entry_of(struct resolver *resolver, const char *host)
{
    for (struct entry *entry = resolver->entries; entry != NULL; entry = entry->next)
        if (strcmp(entry->host, host) == 0)
            return entry;
    struct entry *entry = calloc(1, sizeof *entry);
    char *copy = strdup(host);
    if (entry == NULL || copy == NULL) {
        free(entry);
        free(copy);
        return NULL;
    }
    entry->host = copy;
    entry->next = resolver->entries;
    resolver->entries = entry;
    return entry;
}

/* Under the lock.  True: LOOKUP is filled. */
static bool ask_locked(struct resolver *resolver, struct lookup *lookup)
{
    struct entry *entry = entry_of(resolver, lookup->host);
    if (entry == NULL) {
        lookup->is_found = false;
        (void)snprintf(lookup->detail, sizeof lookup->detail, "out of memory");
        return true;
    }
    if (!entry->is_wanted && entry->fresh_until_ns > clock_monotonic_ns()) {
        lookup_fill(lookup, entry);
        return true;
    }
    lookup->next = entry->waiters;
    entry->waiters = lookup;
    if (!entry->is_wanted) {
        entry->is_wanted = true;
        (void)pthread_cond_signal(&resolver->is_changed);
    }
    return false;
}

bool resolver_ask(struct resolver *resolver, struct lookup *lookup)
{
    assert(lookup->host != NULL);
    assert(lookup->done != NULL);
    if (resolver_is_literal(lookup->host)) {
        bool is_v6 = strchr(lookup->host, ':') != NULL;
        lookup->is_found = true;
        lookup->detail[0] = '\0';
        (void)snprintf(lookup->addresses, sizeof lookup->addresses, is_v6 ? "[%s]" : "%s", lookup->host);
        return true;
    }
    (void)pthread_mutex_lock(&resolver->lock);
    bool is_answered = ask_locked(resolver, lookup);
    (void)pthread_mutex_unlock(&resolver->lock);
    return is_answered;
}
