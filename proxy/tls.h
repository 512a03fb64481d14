/*
 * tls.h - certificates, keys and authorities read from files, and what TLS makes of them.
 *
 *     tls_new(files) --> struct tls --> tls_session_new()     a connection that came to one of our ports
 *                                  \--> tls_client_apply()    a connection of libcurl to the target
 *
 * A struct tls is whole or is not made; afterwards nothing in it changes, and no file is read again, so that all
 * threads may share it.  Who owns it decides when the files are read anew (credentials.h).  No file but tls*.c names
 * OpenSSL.
 */
#ifndef SINKONCE_TLS_H
#define SINKONCE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "slice.h"

struct ssl_st; /* OpenSSL's SSL */
struct tls;

enum tls_part { TLS_CERTIFICATE, TLS_KEY, TLS_CA, TLS_PARTS };

/* NULL or "": none.  The certificate's file may hold its chain behind it, and the key's may be the same file. */
struct tls_files {
    const char *paths[TLS_PARTS]; /* borrowed */
    const char *password;         /* borrowed: of the key */
    bool is_server; /* for a port of ours: a peer's certificate is asked for when TLS_CA is given */
};

/* What is wrong with which file, in words that follow the setting's name. */
struct tls_fault {
    enum tls_part part;
    char words[256];
};

/* Why a handshake on a port of ours failed; the labels are those of sinkonce_tls_handshake_failures_total. */
enum tls_failure {
    TLS_FAILED_TIMEOUT,            /* longer than SINKONCE_HEAD_TIMEOUT */
    TLS_FAILED_CLOSED,             /* the peer left */
    TLS_FAILED_PLAIN,              /* it does not speak TLS at all */
    TLS_FAILED_CLIENT_CERTIFICATE, /* it has none, or one that no authority of ours has signed */
    TLS_FAILED_OUR_CERTIFICATE,    /* the peer does not accept ours */
    TLS_FAILED_OTHER,              /* no version, cipher or protocol in common, or damaged */
};

enum { TLS_EXPIRY_WARNING_S = 14 * 24 * 3600, TLS_WORDS_MAX = 160 };

/* NULL: RET_FAULT says why.  FILES is only read. */
MUST_CHECK struct tls *tls_new(const struct tls_files *files, struct tls_fault *ret_fault);
void tls_free(struct tls *tls); /* NULL is fine; sessions made from it live on */

/* Unix time at which PART stops being good: the first of a certificate's chain, the last of the authorities; 0: there is
 * none, or it has no end. */
int64_t tls_expiry_s(const struct tls *tls, enum tls_part part);
/* The same for its beginning, of the certificate itself. */
int64_t tls_begin_s(const struct tls *tls);
/* Is the key's file readable by more than its owner and group? */
bool tls_is_key_exposed(const struct tls *tls);

/* [any] For a connection that was accepted.  NULL: no memory.  Owned by the caller. */
MUST_CHECK struct ssl_st *tls_session_new(const struct tls *tls);
/* [loop] Tell the peer that nothing more will come (RFC 8446, 6.1). */
void tls_session_close(struct ssl_st *session);
/* [loop] Which failure ERROR, the first of libevent's errors, is; 0: the connection ended.  Its words go into RET_WORDS. */
enum tls_failure tls_failure_of(const struct ssl_st *session, unsigned long error,
                                char ret_words[TLS_WORDS_MAX]);

/* The public key of the certificate in PATH, as CURLOPT_PINNEDPUBLICKEY takes it.  False: it cannot be read. */
enum { TLS_PIN_BYTES_MAX = 64 };
MUST_CHECK bool tls_pin_of(const char *path, char ret_pin[TLS_PIN_BYTES_MAX]);
const char *tls_version(void); /* of the library, for the log */

/* [any] Let CONTEXT, an SSL_CTX of libcurl's, use what TLS holds.  False: no memory. */
MUST_CHECK bool tls_client_apply(const struct tls *tls, void *context);

/* [any] Count and log a handshake that failed on the port that SETTING names. */
void tls_failure_tell(const char *setting, const char *peer, enum tls_failure failure, const char *words);

#endif
