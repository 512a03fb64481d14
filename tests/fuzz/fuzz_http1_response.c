/*
 * fuzz_http1_response.c - response heads: only whole ones pass, and nothing in them can end a line of ours.
 */
#include "fuzz.h"
#include "http1.h"

static void check_response(const struct http1_response *response, const char *bytes, size_t byte_count)
{
    assert(response->status >= 100 && response->status <= 599);
    assert(response->field_count <= HTTP1_FIELDS_MAX);
    assert(response->is_length_known || response->length_bytes == 0);
    for (size_t i = 0; i < response->field_count; i++) {
        assert_inside(response->fields[i].name, bytes, byte_count);
        assert_inside(response->fields[i].value, bytes, byte_count);
        assert_one_line(response->fields[i].value);
        assert(http1_token_is_valid(response->fields[i].name));
        assert(http1_value_is_valid(response->fields[i].value));
    }
    bool is_coded = http1_field_find(response->fields, response->field_count, "transfer-encoding") != NULL;
    bool has_length = http1_field_find(response->fields, response->field_count, "content-length") != NULL;
    assert(has_length == response->is_length_known && !(is_coded && has_length));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    const char *bytes = (const char *)input;
    struct http1_response response;
    enum http1_status status = http1_response(bytes, input_bytes, &response);
    assert(status == HTTP1_DONE || status == HTTP1_REFUSED);
    if (status == HTTP1_REFUSED)
        return 0;
    check_response(&response, bytes, input_bytes);
    assert(memcmp(bytes + input_bytes - 4, "\r\n\r\n", 4) == 0);
    for (size_t cut = 0; cut < input_bytes; cut += cut_step(input_bytes))
        assert(http1_response(bytes, cut, &response) == HTTP1_REFUSED);
    return 0;
}
