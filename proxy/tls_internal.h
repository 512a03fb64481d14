/*
 * tls_internal.h - what the files tls*.c share; nobody else includes it.
 *
 *     tls.c          the life of a struct tls, our ports, libcurl's contexts
 *     tls_files.c    files into certificates and keys
 *     tls_failure.c  what OpenSSL says, in our words
 */
#ifndef SINKONCE_TLS_INTERNAL_H
#define SINKONCE_TLS_INTERNAL_H

#include <openssl/ssl.h>
#include "tls.h"

struct tls {
    STACK_OF(X509) * chain;       /* owned: the certificate, then its chain; NULL: none */
    EVP_PKEY *key;                /* owned */
    STACK_OF(X509) * authorities; /* owned; NULL: none */
    SSL_CTX *server;              /* owned; NULL: not for a port of ours */
    bool is_key_exposed;
};

/* tls_files.c - NULL: RET_FAULT says why. */
STACK_OF(X509) * tls_certificates_read(const char *path, enum tls_part part, struct tls_fault *ret_fault);
EVP_PKEY *tls_key_read(const char *path, const char *password, bool *ret_is_exposed,
                       struct tls_fault *ret_fault);

/* tls_failure.c */
void tls_fault_set(struct tls_fault *fault, enum tls_part part, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The newest error of this thread as OpenSSL words it; the queue is empty afterwards. */
const char *tls_last_error(void);

#endif
