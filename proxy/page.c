/*
 * page.c - finds a file of the page, and tells whether a browser has it already.
 */
#include "page.h"

const struct page_file *page_find(struct slice path)
{
    for (size_t i = 0; i < page_file_count; i++) {
        if (slice_equals_text(path, page_files[i].path))
            return &page_files[i];
    }
    return NULL;
}

/* Our tags hold no comma, so that one inside a foreign tag only makes two tags that match nothing. */
bool page_etag_matches(struct slice value, const char *etag)
{
    while (value.byte_count > 0) {
        const char *comma = memchr(value.at, ',', value.byte_count);
        size_t bytes = comma == NULL ? value.byte_count : (size_t)(comma - value.at);
        struct slice tag = slice_trimmed(slice_of(value.at, bytes));
        if (tag.byte_count > 2 && memcmp(tag.at, "W/", 2) == 0)
            tag = slice_of(tag.at + 2, tag.byte_count - 2);
        if (slice_equals_text(tag, "*") || slice_equals_text(tag, etag))
            return true;
        size_t cut = comma == NULL ? bytes : bytes + 1;
        value = slice_of(value.at + cut, value.byte_count - cut);
    }
    return false;
}
