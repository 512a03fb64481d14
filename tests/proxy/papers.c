/*
 * papers.c - see the header.
 */
#include "papers.h"

#include <assert.h>
#include <dirent.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void papers_init(struct papers *papers)
{
    snprintf(papers->folder, sizeof papers->folder, "/tmp/sinkonce-papers-XXXXXX");
    assert(mkdtemp(papers->folder) != NULL);
}

char *papers_path(const struct papers *papers, const char *name, const char *suffix)
{
    char *path = NULL;
    assert(asprintf(&path, "%s/%s.%s", papers->folder, name, suffix) > 0);
    return path;
}

static FILE *file_open(const struct papers *papers, const char *name, const char *suffix, const char *mode)
{
    char *path = papers_path(papers, name, suffix);
    FILE *file = fopen(path, mode);
    assert(file != NULL);
    free(path);
    return file;
}

static void extension_add(X509 *certificate, int kind, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);
    assert(extension != NULL && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static X509 *certificate_new(const struct paper *paper, EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);
    const long day_s = 24L * 3600;
    static long serial;
    assert(X509_set_version(certificate, X509_VERSION_3) == 1);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), paper->begin_days * day_s);
    X509_gmtime_adj(X509_getm_notAfter(certificate), paper->end_days * day_s);
    X509_set_pubkey(certificate, key);
    assert(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)paper->name, -1, -1,
                                      0) == 1);
    if (paper->issuer == NULL)
        extension_add(certificate, NID_basic_constraints, "critical,CA:TRUE");
    extension_add(certificate, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    return certificate;
}

static void certificate_sign(const struct papers *papers, const struct paper *paper, X509 *certificate,
                             EVP_PKEY *own_key)
{
    X509 *issuer = NULL;
    EVP_PKEY *key = own_key;
    if (paper->issuer != NULL) {
        FILE *file = file_open(papers, paper->issuer, "pem", "r");
        issuer = PEM_read_X509(file, NULL, NULL, NULL);
        fclose(file);
        file = file_open(papers, paper->issuer, "key", "r");
        key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
        fclose(file);
    }
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer != NULL ? issuer : certificate));
    assert(X509_sign(certificate, key, EVP_sha256()) > 0);
    if (key != own_key)
        EVP_PKEY_free(key);
    X509_free(issuer);
}

void papers_make(const struct papers *papers, const struct paper *paper)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    assert(key != NULL);
    X509 *certificate = certificate_new(paper, key);
    certificate_sign(papers, paper, certificate, key);
    FILE *file = file_open(papers, paper->name, "pem", "w");
    assert(PEM_write_X509(file, certificate) == 1);
    fclose(file);
    char *path = papers_path(papers, paper->name, "key");
    file = file_open(papers, paper->name, "key", "w");
    assert(PEM_write_PKCS8PrivateKey(file, key, paper->password == NULL ? NULL : EVP_aes_256_cbc(), NULL, 0,
                                     NULL, (void *)(size_t)paper->password) == 1);
    fclose(file);
    assert(chmod(path, 0600) == 0);
    free(path);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void papers_deinit(struct papers *papers)
{
    DIR *folder = opendir(papers->folder);
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.')
            assert(unlinkat(dirfd(folder), entry->d_name, 0) == 0);
    }
    closedir(folder);
    assert(rmdir(papers->folder) == 0);
}
