/*
 * admin_page.c - the page at the admin port: its files, as they lie in the binary.
 *
 * The page may load and ask for what comes from this port and nothing else, and no other page may show it in a frame.
 */
#include "admin_call.h"
#include "page.h"

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static bool is_known_to_browser(const struct http1_head *head, const struct page_file *file)
{
    for (size_t i = 0; i < head->field_count; i++) {
        if (http1_name_equals(head->fields[i].name, "if-none-match") &&
            page_etag_matches(head->fields[i].value, file->etag))
            return true;
    }
    return false;
}

/* Asked for anew each time, so that an upgrade never meets the script of the version before it. */
void admin_on_page(struct admin_call *call)
{
    const struct http1_head *head = &call->request->head;
    const struct page_file *file = page_find(head->path);
    if (file == NULL) {
        admin_refuse(call, 404, "not-found", NULL, "there is nothing at this path");
        return;
    }
    const struct http1_field fields[] = { http1_field_of("ETag", file->etag),
                                          http1_field_of("Cache-Control", "no-cache"),
                                          http1_field_of("Content-Security-Policy", policy),
                                          http1_field_of("X-Content-Type-Options", "nosniff"),
                                          http1_field_of("Referrer-Policy", "no-referrer"),
                                          http1_field_of("Content-Type", file->content_type) };
    const bool is_known = is_known_to_browser(head, file);
    const size_t field_count = sizeof fields / sizeof fields[0];
    struct reply reply = { .status = is_known ? 304 : 200,
                           .fields = fields,
                           .field_count = is_known ? field_count - 1 : field_count,
                           .body = slice_of((const char *)file->bytes, file->byte_count),
                           .is_body_left_out = is_known || head->method == HTTP1_HEAD,
                           .has_length = !is_known,
                           .length = file->byte_count };
    conn_reply(call->conn, &reply);
    call->conn = NULL;
}
