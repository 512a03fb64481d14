/*
 * cli_explain.c - sinkonce explain: a sample request, read by the proxy's own strict reader, and what becomes of it.
 */
#include "cli_client.h"
#include "cli_commands.h"
#include "cli_print.h"
#include "explain.h"
#include "text.h"
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sysexits.h>

/* ---- the sample ---------------------------------------------------------------------------------------------- */

/* False: said. */
static bool body_read(const struct cli_arguments *arguments, struct text *body)
{
    const char *name = arguments->operand_count == 0 ? "-" : arguments->operands[0];
    const bool is_stdin = strcmp(name, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(name, "rb");
    char bytes[65536];
    size_t count = 0;
    while (file != NULL && (count = fread(bytes, 1, sizeof bytes, file)) > 0)
        text_add(body, slice_of(bytes, count));
    const bool is_good = file != NULL && !ferror(file) && !body->is_lost;
    if (!is_good)
        fprintf(stderr, "sinkonce explain: %s cannot be read: %s\n", name,
                body->is_lost ? "no memory" : strerror(errno));
    if (file != NULL && !is_stdin)
        fclose(file);
    return is_good;
}

static bool has_name(const char *header, const char *name)
{
    const size_t bytes = strlen(name);
    return strncasecmp(header, name, bytes) == 0 && header[bytes] == ':';
}

/* The head as a client would send it.  What says how long the body is follows from the body. */
static void head_write(const struct cli_arguments *arguments, size_t body_bytes, struct text *head)
{
    const char *method = arguments->values[OPTION_METHOD], *path = arguments->values[OPTION_PATH];
    bool has_host = false;
    text_add_chars(head, method != NULL ? method : "POST");
    text_add_chars(head, " ");
    text_add_chars(head, path != NULL ? path : "/");
    text_add_chars(head, " HTTP/1.1\r\n");
    for (size_t i = 0; i < arguments->header_count; i++) {
        const char *header = arguments->headers[i];
        if (has_name(header, "content-length") || has_name(header, "transfer-encoding"))
            continue;
        has_host = has_host || has_name(header, "host");
        text_add_chars(head, header);
        text_add_chars(head, "\r\n");
    }
    text_add_chars(head, has_host ? "Content-Length: " : "Host: localhost\r\nContent-Length: ");
    text_add_number(head, (int64_t)body_bytes);
    text_add_chars(head, "\r\n\r\n");
}

/* False: the proxy would refuse it, or there is no memory; said. */
static bool request_make(const struct cli_arguments *arguments, const struct settings *settings,
                         struct request *ret)
{
    struct text body = { 0 }, head = { 0 };
    enum finish why = FINISH_NO_MEMORY;
    *ret = (struct request){ .is_trusted_peer = true };
    if (!body_read(arguments, &body)) {
        text_deinit(&body);
        return false;
    }
    head_write(arguments, body.byte_count, &head);
    const bool has_head = text_take(&head, &ret->bytes, &ret->byte_count);
    const bool has_body = text_take(&body, &ret->body, &ret->body_bytes);
    if (has_head && has_body &&
        http1_head(ret->bytes, ret->byte_count, settings->head_bytes_max, settings->body_bytes_max,
                   &ret->head, &why) == HTTP1_DONE)
        return true;
    fprintf(stderr, "sinkonce explain: it would be answered with %d: %s\n", finish_rows[why].status,
            finish_rows[why].words);
    return false;
}

/* ---- for people ---------------------------------------------------------------------------------------------- */

static void print_sent(json_t *sent)
{
    json_t *body = json_object_get(sent, "body");
    const json_int_t body_bytes = json_integer_value(json_object_get(sent, "body_bytes"));
    size_t index;
    json_t *field;
    printf("\n%s %s\n", json_string_value(json_object_get(sent, "method")),
           json_string_value(json_object_get(sent, "target")));
    json_array_foreach(json_object_get(sent, "fields"), index, field)
    {
        cli_print_text(json_string_value(json_object_get(field, "name")), stdout);
        fputs(": ", stdout);
        cli_print_text(json_string_value(json_object_get(field, "value")), stdout);
        putchar('\n');
    }
    printf("\n(%" JSON_INTEGER_FORMAT " bytes, %s)\n", body_bytes,
           json_is_true(json_object_get(sent, "rewritten")) ? "rewritten" : "as they came");
    if (json_is_string(body) && json_string_length(body) > 0)
        cli_print_lines(json_string_value(body), stdout);
}

static void print_explained(json_t *json)
{
    static const struct cli_column columns[] = {
        { "TOPIC", "topic", false }, { "PARTITION", "partition", true }, { "OFFSET", "offset", true },
        { "MARK", "mark", false },   { "BEGIN", "begin", true },         { "END", "end", true }
    };
    json_t *records = json_incref(json_object_get(json, "records"));
    json_t *sent = json_incref(json_object_get(json, "sent"));
    json_object_del(json, "records");
    json_object_del(json, "sent");
    cli_print_members(json, stdout);
    if (json_array_size(records) > 0) {
        putchar('\n');
        cli_print_table(records, columns, sizeof columns / sizeof columns[0], true, stdout);
    }
    if (json_is_object(sent))
        print_sent(sent);
    json_decref(records);
    json_decref(sent);
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static int explain(const struct cli_arguments *arguments, const struct settings *settings)
{
    struct request request;
    json_t *json = NULL;
    const bool is_read = request_make(arguments, settings, &request);
    if (is_read && (json = explain_json(settings, &request)) == NULL)
        fputs("sinkonce explain: no memory\n", stderr);
    if (json != NULL && arguments->values[OPTION_JSON] != NULL) {
        json_dumpf(json, stdout, JSON_COMPACT);
        putchar('\n');
    } else if (json != NULL) {
        print_explained(json);
    }
    const int code = json != NULL ? 0 : is_read ? EX_OSERR : EXIT_REFUSED;
    json_decref(json);
    free(request.bytes);
    free(request.body);
    return code;
}

int cli_explain(const struct cli_arguments *arguments)
{
    struct settings settings;
    const bool is_good = cli_settings_read(arguments, &settings);
    const int code = is_good ? explain(arguments, &settings) : EX_CONFIG;
    settings_deinit(&settings);
    return code;
}
