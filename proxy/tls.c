/*
 * tls.c - the life of a struct tls, the rules of our ports, and what libcurl's connections are given.
 *
 * The ports speak TLS 1.2 and newer with the ciphers of the system's policy (openssl.cnf).  No session is ever resumed:
 * connections live for hours, so a handshake saved is worth little, while a ticket would outlive the client
 * certificate that it was given for, and its key would have to be kept and rotated.
 */
#include "tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tls_internal.h"

/* ---- facts --------------------------------------------------------------------------------------------------- */

static int64_t unix_time_of(const ASN1_TIME *time)
{
    struct tm parts;
    return time != NULL && ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

/* One expired link breaks a chain; of several authorities one is enough. */
int64_t tls_expiry_s(const struct tls *tls, enum tls_part part)
{
    STACK_OF(X509) *list = tls == NULL || part == TLS_KEY ? NULL
                           : part == TLS_CERTIFICATE      ? tls->chain
                                                          : tls->authorities;
    int64_t found = 0;
    for (int i = 0; i < sk_X509_num(list); i++) {
        int64_t end = unix_time_of(X509_get0_notAfter(sk_X509_value(list, i)));
        if (i == 0 || (part == TLS_CERTIFICATE ? end < found : end > found))
            found = end;
    }
    return found;
}

int64_t tls_begin_s(const struct tls *tls)
{
    return tls == NULL || tls->chain == NULL
               ? 0
               : unix_time_of(X509_get0_notBefore(sk_X509_value(tls->chain, 0)));
}

bool tls_is_key_exposed(const struct tls *tls)
{
    return tls->is_key_exposed;
}

/* ---- our ports ----------------------------------------------------------------------------------------------- */

/* Only HTTP/1.1 is spoken; who offers other protocols alone is told so (RFC 7301, 3.2). */
static int alpn_cb(SSL *session, const unsigned char **ret_name, unsigned char *ret_bytes,
                   const unsigned char *offered, unsigned offered_bytes, void *context)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen = NULL;
    (void)session;
    (void)context;
    if (SSL_select_next_proto(&chosen, ret_bytes, ours, sizeof ours - 1, offered, offered_bytes) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_name = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool store_fill(X509_STORE *store, STACK_OF(X509) * authorities)
{
    for (int i = 0; i < sk_X509_num(authorities); i++) {
        if (X509_STORE_add_cert(store, sk_X509_value(authorities, i)) != 1)
            return false;
    }
    return true;
}

/* The certificate, its chain and its key.  False: OpenSSL says why. */
static bool identity_use(const struct tls *tls, SSL_CTX *context)
{
    STACK_OF(X509) *rest = sk_X509_dup(tls->chain);
    if (rest == NULL)
        return false;
    X509 *certificate = sk_X509_shift(rest);
    bool is_used = SSL_CTX_use_cert_and_key(context, certificate, tls->key, rest, 1) == 1;
    sk_X509_free(rest); /* its members stay those of tls->chain */
    return is_used;
}

/* The names of our authorities tell a client which of its certificates to show. */
static bool client_certificates_demand(const struct tls *tls, SSL_CTX *context)
{
    if (tls->authorities == NULL)
        return true;
    for (int i = 0; i < sk_X509_num(tls->authorities); i++) {
        if (SSL_CTX_add_client_CA(context, sk_X509_value(tls->authorities, i)) != 1)
            return false;
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return store_fill(SSL_CTX_get_cert_store(context), tls->authorities);
}

static void rules_set(SSL_CTX *context)
{
    long lowest = SSL_CTX_get_min_proto_version(context);
    if (lowest < TLS1_2_VERSION) /* the system's policy may ask for more */
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); /* 34 KiB less for each idle connection */
    SSL_CTX_set_alpn_select_cb(context, alpn_cb, NULL);
}

static SSL_CTX *server_new(const struct tls *tls, struct tls_fault *ret_fault)
{
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (context == NULL) {
        tls_fault_set(ret_fault, TLS_CERTIFICATE, "cannot be used: %s", tls_last_error());
        return NULL;
    }
    rules_set(context);
    if (!identity_use(tls, context))
        tls_fault_set(ret_fault, TLS_CERTIFICATE, "cannot be used: %s", tls_last_error());
    else if (!client_certificates_demand(tls, context))
        tls_fault_set(ret_fault, TLS_CA, "cannot be used: %s", tls_last_error());
    else
        return context;
    SSL_CTX_free(context);
    return NULL;
}

struct ssl_st *tls_session_new(const struct tls *tls)
{
    return SSL_new(tls->server);
}

void tls_session_close(struct ssl_st *session)
{
    ERR_clear_error();
    (void)SSL_shutdown(session); /* a full socket loses it: the peer will see a close without it */
    ERR_clear_error();
}

/* ---- libcurl's connections ----------------------------------------------------------------------------------- */

/* libcurl gives each connection a context of its own; the certificates in it are shared and never change. */
bool tls_client_apply(const struct tls *tls, void *context)
{
    if (tls->authorities != NULL && !store_fill(SSL_CTX_get_cert_store(context), tls->authorities))
        return false;
    return tls->chain == NULL || identity_use(tls, context);
}

bool tls_pin_of(const char *path, char ret_pin[TLS_PIN_BYTES_MAX])
{
    enum { SHA256_TEXT_BYTES = 44 };
    unsigned char *spki = NULL, digest[EVP_MAX_MD_SIZE], text[SHA256_TEXT_BYTES + 1];
    unsigned digest_bytes = 0;
    struct tls_fault fault;
    STACK_OF(X509) *chain = tls_certificates_read(path, TLS_CERTIFICATE, &fault);
    int spki_bytes =
        chain == NULL ? 0 : i2d_X509_PUBKEY(X509_get_X509_PUBKEY(sk_X509_value(chain, 0)), &spki);
    bool is_made = spki_bytes > 0 &&
                   EVP_Digest(spki, (size_t)spki_bytes, digest, &digest_bytes, EVP_sha256(), NULL) == 1 &&
                   EVP_EncodeBlock(text, digest, (int)digest_bytes) == SHA256_TEXT_BYTES;
    if (is_made)
        snprintf(ret_pin, TLS_PIN_BYTES_MAX, "sha256//%s", (const char *)text);
    OPENSSL_free(spki);
    sk_X509_pop_free(chain, X509_free);
    return is_made;
}

const char *tls_version(void)
{
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}

/* ---- life ---------------------------------------------------------------------------------------------------- */

static bool is_given(const struct tls_files *files, enum tls_part part)
{
    return files->paths[part] != NULL && files->paths[part][0] != '\0';
}

static bool files_read(struct tls *tls, const struct tls_files *files, struct tls_fault *ret_fault)
{
    if (is_given(files, TLS_CERTIFICATE)) {
        tls->chain = tls_certificates_read(files->paths[TLS_CERTIFICATE], TLS_CERTIFICATE, ret_fault);
        if (tls->chain == NULL)
            return false;
    }
    if (is_given(files, TLS_KEY)) {
        tls->key = tls_key_read(files->paths[TLS_KEY], files->password, &tls->is_key_exposed, ret_fault);
        if (tls->key == NULL)
            return false;
    }
    if (is_given(files, TLS_CA)) {
        tls->authorities = tls_certificates_read(files->paths[TLS_CA], TLS_CA, ret_fault);
        if (tls->authorities == NULL)
            return false;
    }
    ERR_clear_error();
    bool is_pair = tls->chain == NULL || tls->key == NULL ||
                   X509_check_private_key(sk_X509_value(tls->chain, 0), tls->key) == 1;
    ERR_clear_error();
    if (!is_pair)
        tls_fault_set(ret_fault, TLS_KEY, "names a key that does not belong to the certificate (%s)",
                      files->paths[TLS_KEY]);
    return is_pair;
}

struct tls *tls_new(const struct tls_files *files, struct tls_fault *ret_fault)
{
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) {
        tls_fault_set(ret_fault, TLS_CERTIFICATE, "cannot be read: out of memory");
        return NULL;
    }
    bool is_good = files_read(tls, files, ret_fault);
    if (is_good && files->is_server) {
        tls->server = server_new(tls, ret_fault);
        is_good = tls->server != NULL;
    }
    if (is_good)
        return tls;
    tls_free(tls);
    return NULL;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->server);
    sk_X509_pop_free(tls->chain, X509_free);
    sk_X509_pop_free(tls->authorities, X509_free);
    EVP_PKEY_free(tls->key);
    free(tls);
}
