/*
 * fuzz_http1_head.c - request heads: a verdict never changes when more bytes come, and what is understood is sound.
 */
#include "fuzz.h"
#include "http1.h"

/* Small, so that the fuzzer meets both limits. */
enum { HEAD_BYTES_MAX = 1024, BODY_BYTES_MAX = 100000 };

static enum http1_status read_head(const char *bytes, size_t byte_count, struct http1_head *ret_head,
                                   enum finish *ret_why)
{
    *ret_why = FINISH_NONE;
    return http1_head(bytes, byte_count, HEAD_BYTES_MAX, BODY_BYTES_MAX, ret_head, ret_why);
}

static size_t count_of(const struct http1_head *head, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < head->field_count; i++)
        count += http1_name_equals(head->fields[i].name, name);
    return count;
}

static void check_fields(const struct http1_head *head, const char *bytes)
{
    assert(head->field_count <= HTTP1_FIELDS_MAX);
    for (size_t i = 0; i < head->field_count; i++) {
        assert_inside(head->fields[i].name, bytes, head->byte_count);
        assert_inside(head->fields[i].value, bytes, head->byte_count);
        assert_one_line(head->fields[i].value);
        assert(http1_token_is_valid(head->fields[i].name));
        assert(http1_value_is_valid(head->fields[i].value));
    }
}

static void check_target(const struct http1_head *head, const char *bytes)
{
    assert_inside(head->method_text, bytes, head->byte_count);
    assert_inside(head->target, bytes, head->byte_count);
    assert_inside(head->path, bytes, head->byte_count);
    assert_inside(head->query, bytes, head->byte_count);
    assert(http1_target_is_valid(head->target) || slice_equals_text(head->target, "*"));
    assert(head->path.at == head->target.at && head->path.byte_count >= 1);
    assert(head->target.byte_count <= HTTP1_TARGET_BYTES_MAX);
    assert(head->path.byte_count + head->query.byte_count <= head->target.byte_count);
}

/* One field at most says where the request ends. */
static void check_framing(const struct http1_head *head)
{
    size_t length_count = count_of(head, "content-length"),
           coding_count = count_of(head, "transfer-encoding");
    assert(length_count == (head->framing == HTTP1_LENGTH));
    assert(coding_count == (head->framing == HTTP1_CHUNKED));
    assert(head->body_bytes <= BODY_BYTES_MAX && (head->body_bytes == 0 || head->framing == HTTP1_LENGTH));
    assert(head->method != HTTP1_HEAD || (head->framing != HTTP1_CHUNKED && head->body_bytes == 0));
    assert(count_of(head, "host") + (head->version_minor == 0) >= 1 && count_of(head, "host") <= 1);
    if (head->host.byte_count > 0)
        assert(http1_host_is_valid(head->host));
}

static void check_head(const struct http1_head *head, const char *bytes, size_t byte_count)
{
    assert(head->byte_count <= byte_count && head->byte_count <= HEAD_BYTES_MAX);
    assert(memcmp(bytes + head->byte_count - 4, "\r\n\r\n", 4) == 0);
    check_target(head, bytes);
    check_fields(head, bytes);
    check_framing(head);
}

static void check_same(const struct http1_head *a, const struct http1_head *b)
{
    assert(a->byte_count == b->byte_count && a->method == b->method && a->field_count == b->field_count);
    assert(a->target.at == b->target.at && a->target.byte_count == b->target.byte_count);
    assert(a->framing == b->framing && a->body_bytes == b->body_bytes);
    assert(a->is_kept_alive == b->is_kept_alive && a->is_continue_expected == b->is_continue_expected);
    assert(memcmp(a->fields, b->fields, a->field_count * sizeof a->fields[0]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    const char *bytes = (const char *)input;
    struct http1_head whole, early;
    enum finish whole_why, early_why;
    enum http1_status status = read_head(bytes, input_bytes, &whole, &whole_why);
    assert((status == HTTP1_REFUSED) == (whole_why != FINISH_NONE));
    assert(status != HTTP1_MORE || input_bytes <= HEAD_BYTES_MAX);
    if (status == HTTP1_DONE)
        check_head(&whole, bytes, input_bytes);
    for (size_t cut = 0; cut < input_bytes; cut += cut_step(input_bytes)) {
        enum http1_status early_status = read_head(bytes, cut, &early, &early_why);
        if (early_status == HTTP1_MORE) {
            assert(status != HTTP1_DONE || cut < whole.byte_count);
            continue;
        }
        assert(early_status == status && early_why == whole_why);
        if (status == HTTP1_DONE)
            check_same(&whole, &early);
    }
    return 0;
}
