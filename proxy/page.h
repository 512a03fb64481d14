/*
 * page.h - the files of the admin port's page, which are inside the binary.
 */
#ifndef SINKONCE_PAGE_H
#define SINKONCE_PAGE_H

#include "slice.h"

struct page_file {
    const char *path; /* on the admin port */
    const char *content_type;
    const char *etag; /* in its quotes */
    const unsigned char *bytes;
    size_t byte_count;
};

/* NULL: no file of the page is at PATH. */
const struct page_file *page_find(struct slice path);
/* Does an If-None-Match of VALUE name ETAG?  The comparison is the weak one (RFC 9110, 13.1.2). */
bool page_etag_matches(struct slice value, const char *etag);

/* Written at build time from proxy/page/ (page_embed.cmake). */
extern const struct page_file page_files[];
extern const size_t page_file_count;

#endif
