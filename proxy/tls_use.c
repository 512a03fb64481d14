/*
 * tls_use.c - the table behind tls_use.h, and what is said of a certificate that ends.
 */
#include "tls_use.h"

#include <time.h>

const struct tls_use_row tls_uses[TLS_USES] = {
    [TLS_USE_LISTEN] = { { "SINKONCE_LISTEN_CERT_FILE", "SINKONCE_LISTEN_KEY_FILE",
                           "SINKONCE_LISTEN_CLIENT_CA_FILE" },
                         { "listen", NULL, "listen_client_ca" } },
    [TLS_USE_ADMIN] = { { "SINKONCE_ADMIN_CERT_FILE", "SINKONCE_ADMIN_KEY_FILE",
                          "SINKONCE_ADMIN_CLIENT_CA_FILE" },
                        { "admin", NULL, "admin_client_ca" } },
    [TLS_USE_TARGET] = { { "SINKONCE_TARGET_CERT_FILE", "SINKONCE_TARGET_KEY_FILE",
                           "SINKONCE_TARGET_CA_FILE" },
                         { "target", NULL, "target_ca" } },
};

struct tls_files tls_files_of(const struct settings *settings, enum tls_use use)
{
    switch (use) {
    case TLS_USE_LISTEN:
        return (struct tls_files){ { settings->listen_cert_file, settings->listen_key_file,
                                     settings->listen_client_ca_file },
                                   NULL,
                                   true };
    case TLS_USE_ADMIN:
        return (struct tls_files){ { settings->admin_cert_file, settings->admin_key_file,
                                     settings->admin_client_ca_file },
                                   NULL,
                                   true };
    case TLS_USE_TARGET:
    case TLS_USES:
    default:
        return (struct tls_files){ { settings->target_cert_file, settings->target_key_file,
                                     settings->target_ca_file },
                                   settings->target_key_password,
                                   false };
    }
}

bool tls_files_are_none(const struct tls_files *files)
{
    for (size_t i = 0; i < TLS_PARTS; i++) {
        if (files->paths[i] != NULL && files->paths[i][0] != '\0')
            return false;
    }
    return true;
}

enum tls_end tls_end_of(int64_t end_s, int64_t now_s)
{
    if (end_s == 0 || end_s - now_s >= TLS_EXPIRY_WARNING_S)
        return TLS_END_FAR;
    return end_s <= now_s ? TLS_END_PAST : TLS_END_NEAR;
}

void tls_end_words(enum tls_use use, enum tls_part part, int64_t end_s, int64_t now_s, char ret_words[],
                   size_t words_bytes_max)
{
    char date[sizeof "2026-01-31"] = "";
    struct tm day;
    time_t end = (time_t)end_s;
    enum tls_end nearness = tls_end_of(end_s, now_s);
    const char *what = part == TLS_CA ? "the last of its certificates" : "its certificate";
    ret_words[0] = '\0';
    if (nearness == TLS_END_FAR)
        return;
    if (gmtime_r(&end, &day) != NULL)
        (void)strftime(date, sizeof date, "%Y-%m-%d", &day);
    if (nearness == TLS_END_PAST)
        snprintf(ret_words, words_bytes_max,
                 "%s: %s expired on %s; replace the file, then send SIGHUP or restart",
                 tls_uses[use].settings[part], what, date);
    else
        snprintf(ret_words, words_bytes_max,
                 "%s: %s expires on %s; replace the file, then send SIGHUP or restart",
                 tls_uses[use].settings[part], what, date);
}
