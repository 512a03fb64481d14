/*
 * credentials.c - reads, holds and lets go.
 */
#include "credentials.h"

#include <stdlib.h>

#include "settings_mistakes.h"

static void credentials_free(struct credentials *credentials)
{
    for (size_t use = 0; use < TLS_USES; use++)
        tls_free(credentials->tls[use]);
    if (credentials->is_owned)
        settings_deinit(&credentials->settings);
    free(credentials);
}

/* False: a file has gone bad since the settings were checked. */
static bool tls_read(struct credentials *credentials, struct settings_mistakes *mistakes)
{
    for (enum tls_use use = 0; use < TLS_USES; use++) {
        struct tls_files files = tls_files_of(&credentials->settings, use);
        struct tls_fault fault;
        if (tls_files_are_none(&files))
            continue;
        credentials->tls[use] = tls_new(&files, &fault);
        if (credentials->tls[use] == NULL) {
            settings_mistake(mistakes, "%s %s", tls_uses[use].settings[fault.part], fault.words);
            return false;
        }
    }
    return true;
}

static struct credentials *credentials_make(const struct settings *settings, bool is_owned,
                                            struct settings_mistakes *mistakes)
{
    struct credentials *credentials = calloc(1, sizeof *credentials);
    if (credentials == NULL) {
        settings_mistake(mistakes, "out of memory: secrets and certificates were not read");
        return NULL;
    }
    credentials->settings = *settings;
    atomic_store(&credentials->holder_count, 1);
    if (!tls_read(credentials, mistakes)) {
        credentials_free(credentials);
        return NULL;
    }
    credentials->is_owned = is_owned;
    return credentials;
}

struct credentials *credentials_of(const struct settings *settings, struct settings_mistakes *ret_mistakes)
{
    *ret_mistakes = (struct settings_mistakes){ 0 };
    return credentials_make(settings, false, ret_mistakes);
}

struct credentials *credentials_read(char *const environment[], struct settings_mistakes *ret_mistakes)
{
    struct settings settings;
    struct credentials *credentials = NULL;
    if (settings_read(environment, &settings, ret_mistakes))
        credentials = credentials_make(&settings, true, ret_mistakes);
    if (credentials == NULL)
        settings_deinit(&settings);
    return credentials;
}

struct credentials *credentials_hold(struct credentials *credentials)
{
    if (credentials != NULL)
        atomic_fetch_add_explicit(&credentials->holder_count, 1, memory_order_relaxed);
    return credentials;
}

void credentials_release(struct credentials *credentials)
{
    if (credentials != NULL && atomic_fetch_sub(&credentials->holder_count, 1) == 1)
        credentials_free(credentials);
}

int64_t credentials_end_s(const struct credentials *credentials, enum tls_use use, enum tls_part part)
{
    return tls_expiry_s(credentials->tls[use], part);
}

void credentials_ends_tell(const struct credentials *credentials, int64_t now_s,
                           void (*tell)(void *context, const char *sentence), void *context)
{
    char words[256];
    for (enum tls_use use = 0; use < TLS_USES; use++) {
        for (enum tls_part part = 0; part < TLS_PARTS; part++) {
            tls_end_words(use, part, credentials_end_s(credentials, use, part), now_s, words, sizeof words);
            if (words[0] != '\0')
                tell(context, words);
        }
    }
}
