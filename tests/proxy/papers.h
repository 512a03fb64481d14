/*
 * papers.h - certificates and keys for tests, made on the spot with OpenSSL, as PEM files in a folder of their own.
 */
#ifndef PAPERS_H
#define PAPERS_H

#include <stdbool.h>

struct papers {
    char folder[64];
};

/* What is to be made; paths are FOLDER/NAME.pem and FOLDER/NAME.key. */
struct paper {
    const char *name;
    const char *issuer;       /* the name of one made before; NULL: it signs itself */
    const char *password;     /* of the key; NULL: none */
    int begin_days, end_days; /* from now */
};

void papers_init(struct papers *papers);
void papers_make(const struct papers *papers, const struct paper *paper);
/* "FOLDER/NAME.SUFFIX", the caller's to free. */
char *papers_path(const struct papers *papers, const char *name, const char *suffix);
void papers_deinit(struct papers *papers); /* removes all */

#endif
