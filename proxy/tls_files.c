/*
 * tls_files.c - PEM files into certificates and keys.
 *
 * Each file is read once and whole, and only an ordinary one: a pipe would be empty when it is read again.  What held a
 * key is wiped.
 */
#include "tls_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 4 * 1024 * 1024 };

struct bytes {
    char *at; /* owned by OpenSSL's allocator */
    size_t count;
    bool is_exposed;
};

static void bytes_wipe(struct bytes *bytes)
{
    OPENSSL_clear_free(bytes->at, bytes->count);
    *bytes = (struct bytes){ NULL, 0, false };
}

static bool read_open_file(int fd, struct bytes *ret, const char **ret_why)
{
    struct stat file;
    if (fstat(fd, &file) != 0) {
        *ret_why = strerror(errno);
        return false;
    }
    *ret_why = S_ISDIR(file.st_mode) ? strerror(EISDIR) : "it is not an ordinary file of at most 4 MiB";
    if (!S_ISREG(file.st_mode) || file.st_size > FILE_BYTES_MAX)
        return false;
    ret->is_exposed = (file.st_mode & S_IROTH) != 0;
    *ret_why = "out of memory";
    ret->at = OPENSSL_malloc((size_t)file.st_size + 1);
    while (ret->at != NULL && ret->count < (size_t)file.st_size) {
        ssize_t got = read(fd, ret->at + ret->count, (size_t)file.st_size - ret->count);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            *ret_why = got < 0 ? strerror(errno) : "it shrank while it was read";
            bytes_wipe(ret);
        }
        ret->count += got > 0 ? (size_t)got : 0;
    }
    return ret->at != NULL;
}

static bool file_read(const char *path, enum tls_part part, struct bytes *ret, struct tls_fault *ret_fault)
{
    const char *why = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not be waited for */
    *ret = (struct bytes){ NULL, 0, false };
    bool is_read = fd >= 0 && read_open_file(fd, ret, &why);
    if (!is_read)
        tls_fault_set(ret_fault, part, "names a file that cannot be read: %s (%s)",
                      fd < 0 ? strerror(errno) : why, path);
    if (fd >= 0)
        close(fd);
    return is_read;
}

/* Nobody is asked at a terminal, which is what OpenSSL does when there is no such function. */
static int no_password_cb(char *room, int room_bytes, int is_writing, void *context)
{
    (void)room;
    (void)room_bytes;
    (void)is_writing;
    (void)context;
    return -1;
}

static bool is_end_of_file(void)
{
    unsigned long error = ERR_peek_last_error();
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

/* All certificates of BIO, in their order; NULL with what is wrong. */
static STACK_OF(X509) * certificates_parse(BIO *bio, const char **ret_why)
{
    STACK_OF(X509) *found = sk_X509_new_null();
    X509 *next = NULL;
    *ret_why = "out of memory";
    if (found == NULL)
        return NULL;
    ERR_clear_error();
    while ((next = PEM_read_bio_X509(bio, NULL, no_password_cb, NULL)) != NULL) {
        if (sk_X509_push(found, next) == 0) {
            X509_free(next);
            sk_X509_pop_free(found, X509_free);
            return NULL;
        }
    }
    bool is_whole = is_end_of_file();
    *ret_why = !is_whole ? tls_last_error() : "there is none in PEM form";
    ERR_clear_error();
    if (is_whole && sk_X509_num(found) > 0)
        return found;
    sk_X509_pop_free(found, X509_free);
    return NULL;
}

STACK_OF(X509) * tls_certificates_read(const char *path, enum tls_part part, struct tls_fault *ret_fault)
{
    struct bytes bytes;
    const char *why = "out of memory";
    if (!file_read(path, part, &bytes, ret_fault))
        return NULL;
    BIO *bio = BIO_new_mem_buf(bytes.at, (int)bytes.count);
    STACK_OF(X509) *found = bio == NULL ? NULL : certificates_parse(bio, &why);
    if (found == NULL)
        tls_fault_set(ret_fault, part, "names a file without a usable certificate: %s (%s)", why, path);
    BIO_free(bio);
    bytes_wipe(&bytes);
    return found;
}

/* ---- keys ---------------------------------------------------------------------------------------------------- */

struct password {
    const char *text; /* borrowed; NULL or "": none */
    bool is_asked;
};

static int password_cb(char *room, int room_bytes, int is_writing, void *context)
{
    struct password *password = context;
    size_t bytes = password->text == NULL ? 0 : strlen(password->text);
    (void)is_writing;
    password->is_asked = true;
    if (bytes == 0 || bytes > (size_t)room_bytes)
        return -1;
    memcpy(room, password->text, bytes);
    return (int)bytes;
}

static const char *key_fault_words(const struct password *password)
{
    bool has_password = password->text != NULL && password->text[0] != '\0';
    if (password->is_asked && !has_password)
        return "it is encrypted, and there is no password for it";
    if (password->is_asked)
        return "the password does not open it";
    return "there is none in PEM form, or it is damaged";
}

EVP_PKEY *tls_key_read(const char *path, const char *password_text, bool *ret_is_exposed,
                       struct tls_fault *ret_fault)
{
    struct bytes bytes;
    struct password password = { password_text, false };
    if (!file_read(path, TLS_KEY, &bytes, ret_fault))
        return NULL;
    *ret_is_exposed = bytes.is_exposed;
    ERR_clear_error();
    BIO *bio = BIO_new_mem_buf(bytes.at, (int)bytes.count);
    EVP_PKEY *key = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, password_cb, &password);
    if (key == NULL)
        tls_fault_set(ret_fault, TLS_KEY, "names a file without a usable key: %s (%s)",
                      key_fault_words(&password), path);
    ERR_clear_error();
    BIO_free(bio);
    bytes_wipe(&bytes);
    return key;
}
