/*
 * tls_failure.c - what OpenSSL says of a failure, in words and counters of ours.
 */
#include "tls_internal.h"

#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>

#include "log.h"
#include "metrics.h"

void tls_fault_set(struct tls_fault *fault, enum tls_part part, const char *format, ...)
{
    va_list values;
    fault->part = part;
    va_start(values, format);
    vsnprintf(fault->words, sizeof fault->words, format, values);
    va_end(values);
}

const char *tls_last_error(void)
{
    const char *words = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return words == NULL ? "no reason is given" : words;
}

static enum tls_failure failure_of_reason(int reason)
{
    switch (reason) {
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        return TLS_FAILED_CLOSED;
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_RECORD_LENGTH_MISMATCH:
        return TLS_FAILED_PLAIN;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return TLS_FAILED_CLIENT_CERTIFICATE;
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return TLS_FAILED_OUR_CERTIFICATE;
    default:
        return TLS_FAILED_OTHER;
    }
}

enum tls_failure tls_failure_of(const struct ssl_st *session, unsigned long error,
                                char ret_words[TLS_WORDS_MAX])
{
    const char *words = error == 0 ? NULL : ERR_reason_error_string(error);
    bool is_system = ERR_SYSTEM_ERROR(error);
    enum tls_failure failure =
        error == 0 || is_system ? TLS_FAILED_CLOSED : failure_of_reason(ERR_GET_REASON(error));
    long verified = SSL_get_verify_result(session);
    if (failure == TLS_FAILED_CLIENT_CERTIFICATE && verified != X509_V_OK)
        words = X509_verify_cert_error_string(verified);
    snprintf(ret_words, TLS_WORDS_MAX, "%s", words == NULL ? "the connection ended" : words);
    return failure;
}

void tls_failure_tell(const char *setting, const char *peer, enum tls_failure failure, const char *words)
{
    static const struct {
        enum counter counter;
        const char *sentence;
    } rows[] = {
        [TLS_FAILED_TIMEOUT] = { COUNTER_TLS_FAILED_TIMEOUT, "a TLS handshake was not done in time" },
        [TLS_FAILED_CLOSED] = { COUNTER_TLS_FAILED_CLOSED, "a peer left in the middle of a TLS handshake" },
        [TLS_FAILED_PLAIN] = { COUNTER_TLS_FAILED_PLAIN, "a peer does not speak TLS; it must use https://" },
        [TLS_FAILED_CLIENT_CERTIFICATE] = { COUNTER_TLS_FAILED_CLIENT_CERTIFICATE,
                                            "a client has no certificate that is accepted here" },
        [TLS_FAILED_OUR_CERTIFICATE] = { COUNTER_TLS_FAILED_OUR_CERTIFICATE,
                                         "a client does not accept the certificate of this port" },
        [TLS_FAILED_OTHER] = { COUNTER_TLS_FAILED_OTHER, "a TLS handshake failed" },
    };
    /* Probes that only connect are no trouble. */
    enum log_level level = failure == TLS_FAILED_CLOSED ? LOG_LEVEL_INFO : LOG_LEVEL_WARN;
    metrics_add(rows[failure].counter, 1);
    LOG_EVENT_LIMITED(level, "tls.refused", rows[failure].sentence, log_text("port", setting),
                      log_text("peer", peer), log_text("detail", words));
}
