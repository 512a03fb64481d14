/*
 * credentials.h - secrets and certificates as they were read at one moment, all from the same moment.
 *
 *     credentials_of(settings) at the start, credentials_read(environment) at each SIGHUP
 *
 * Never changed once it is made: whoever works with it holds it, new ones are handed to all, and the last one to let
 * go frees it.  So a request ends with what it began with.  Only secrets and files can differ between two of them: the
 * environment of a process does not change.
 * Threads: [any].
 */
#ifndef SINKONCE_CREDENTIALS_H
#define SINKONCE_CREDENTIALS_H

#include <stdatomic.h>
#include "settings.h"
#include "tls_use.h"

struct credentials {
    atomic_size_t holder_count;
    struct settings settings;  /* of its rows only the secrets are of interest here */
    bool is_owned;             /* the settings are; else they are borrowed for the program's life */
    struct tls *tls[TLS_USES]; /* owned; NULL: no TLS there, or for the target the system's authorities */
};

/* Held once, by the caller.  NULL: RET_MISTAKES has the reasons; it must be released in either case.  SETTINGS is
 * borrowed and outlives it. */
MUST_CHECK struct credentials *credentials_of(const struct settings *settings,
                                              struct settings_mistakes *ret_mistakes);
/* The same from files that may have changed; the mistakes and notes are those of settings_read(). */
MUST_CHECK struct credentials *credentials_read(char *const environment[],
                                                struct settings_mistakes *ret_mistakes);
struct credentials *credentials_hold(struct credentials *credentials); /* NULL is fine; returns it */
void credentials_release(struct credentials *credentials);             /* NULL is fine */

/* When PART of USE ends, as Unix time; 0: there is no such certificate. */
int64_t credentials_end_s(const struct credentials *credentials, enum tls_use use, enum tls_part part);
/* TELL is called with a sentence for each certificate that ends soon or has ended. */
void credentials_ends_tell(const struct credentials *credentials, int64_t now_s,
                           void (*tell)(void *context, const char *sentence), void *context);

#endif
