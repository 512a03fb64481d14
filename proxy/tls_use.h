/*
 * tls_use.h - what certificates are used for here, and which settings name their files.
 *
 * A decider: nothing is read.
 */
#ifndef SINKONCE_TLS_USE_H
#define SINKONCE_TLS_USE_H

#include "settings.h"
#include "tls.h"

enum tls_use { TLS_USE_LISTEN, TLS_USE_ADMIN, TLS_USE_TARGET, TLS_USES };

struct tls_use_row {
    const char *settings[TLS_PARTS]; /* the settings' names */
    const char *labels[TLS_PARTS];   /* of sinkonce_certificate_expiry_timestamp_seconds; NULL: a key */
};
extern const struct tls_use_row tls_uses[TLS_USES];

/* Borrowed from SETTINGS. */
struct tls_files tls_files_of(const struct settings *settings, enum tls_use use);
bool tls_files_are_none(const struct tls_files *files);

enum tls_end { TLS_END_FAR, TLS_END_NEAR, TLS_END_PAST };
/* How near the end at END_S is; 0 has none. */
enum tls_end tls_end_of(int64_t end_s, int64_t now_s);
/* A sentence that says so, "" when it is far; it begins with the setting's name. */
void tls_end_words(enum tls_use use, enum tls_part part, int64_t end_s, int64_t now_s, char ret_words[],
                   size_t words_bytes_max);

#endif
