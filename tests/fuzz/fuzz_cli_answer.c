/*
 * fuzz_cli_answer.c - any answers of an admin port to any command that asks it: what a person is shown holds no byte
 * that a terminal would obey, and the command ends.
 *
 * The first byte chooses the command; then answers, separated by zero bytes: two bytes of status, and the body.  When they
 * are used up nobody answers any more.
 */
#include <stdio.h>
#include <stdlib.h>
#include "cli_http.h"
#include "cli_parse.h"
#include "fuzz.h"

enum { WORDS_MAX = 12, SHOWN_BYTES_MAX = 1 << 20 };

static const char *const lines[][WORDS_MAX] = {
    { "status" },
    { "partitions" },
    { "in-doubt", "--topic", "orders" },
    { "conflicts", "--limit", "3" },
    { "replay" },
    { "replay", "list" },
    { "events" },
    { "records", "get", "orders", "0", "1" },
    { "in-doubt", "resolve", "7", "--applied", "--reason", "seen" },
    { "in-doubt", "resolve", "--topic", "orders", "--not-applied", "--expect", "2", "--reason", "seen" },
    { "forget", "--topic", "orders", "--partition", "0", "--expect", "1", "--reason", "seen" },
    { "conflicts", "decide", "1", "same", "--reason", "seen" },
    { "replay", "open", "--topic", "t", "--partition", "0", "--from", "0", "--to", "9", "--for", "1h" },
    { "replay", "close", "1", "--reason", "seen" },
    { "ledger", "backup", "/b" },
    { "health" },
    { "health", "--live" },
};
enum { LINE_COUNT = sizeof lines / sizeof lines[0] };

/* ---- the admin port ---------------------------------------------------------------------------------------------- */

static struct slice answers; /* that have not been given yet */
static int server;

struct cli_server *cli_server_new(const struct cli_arguments *arguments, int *ret_code)
{
    (void)arguments;
    *ret_code = 0;
    return (struct cli_server *)(void *)&server;
}

void cli_server_free(struct cli_server *given)
{
    (void)given;
}

const char *cli_server_name(const struct cli_server *given)
{
    (void)given;
    return "127.0.0.1:8651";
}

bool cli_http_ask(struct cli_server *given, const char *method, const char *path, const char *body,
                  uint64_t timeout_ms, struct cli_answer *ret, char ret_why[], size_t why_bytes_max)
{
    (void)given, (void)body, (void)timeout_ms;
    assert(method[0] != '\0' && path[0] == '/');
    *ret = (struct cli_answer){ .status = 0 };
    snprintf(ret_why, why_bytes_max, "nobody is there");
    if (answers.byte_count < 2)
        return false;
    const char *end = memchr(answers.at, '\0', answers.byte_count);
    size_t byte_count = end == NULL ? answers.byte_count : (size_t)(end - answers.at);
    if (byte_count >= 2) {
        ret->status = 100 * (2 + answers.at[0] % 4) + (uint8_t)answers.at[1] % 100;
        ret->body = strndup(answers.at + 2, byte_count - 2);
        ret->body_bytes = byte_count - 2;
        assert(ret->body != NULL && strlen(ret->body) == ret->body_bytes);
    }
    size_t used = byte_count + (end != NULL);
    answers = slice_of(answers.at + used, answers.byte_count - used);
    return ret->body != NULL;
}

bool cli_http_ask_socket(struct cli_server *given, const char *path, uint64_t timeout_ms, struct cli_answer *ret,
                         char ret_why[], size_t why_bytes_max)
{
    (void)given, (void)path, (void)timeout_ms, (void)ret_why, (void)why_bytes_max;
    *ret = (struct cli_answer){ .status = 0 };
    return false;
}

void cli_answer_deinit(struct cli_answer *answer)
{
    free(answer->body);
    answer->body = NULL;
}

/* ---- the terminal ------------------------------------------------------------------------------------------------ */

static void check_shown(const char *bytes, size_t byte_count)
{
    for (size_t i = 0; i < byte_count; i++) {
        unsigned char byte = (unsigned char)bytes[i],
                      next = i + 1 < byte_count ? (unsigned char)bytes[i + 1] : 0;
        assert((byte >= ' ' && byte != 0x7f) || byte == '\n');
        assert(byte != 0xc2 || next < 0x80 || next >= 0xa0); /* the control characters of Latin 1 */
    }
}

static void run(const struct cli_arguments *arguments)
{
    static char shown[SHOWN_BYTES_MAX];
    FILE *real_out = stdout, *real_err = stderr;
    FILE *terminal = fmemopen(shown, sizeof shown, "w");
    assert(terminal != NULL);
    stdout = stderr = terminal;
    int code = arguments->command->run(arguments);
    stdout = real_out;
    stderr = real_err;
    long byte_count = ftell(terminal);
    assert(code >= 0 && code <= 255 && byte_count >= 0);
    fclose(terminal);
    check_shown(shown, (size_t)byte_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    char *argv[WORDS_MAX + 1] = { NULL };
    char *environment[] = { NULL };
    struct cli_arguments arguments;
    if (input_bytes < 1)
        return 0;
    const char *const *line = lines[input[0] % LINE_COUNT];
    for (size_t i = 0; i < WORDS_MAX && line[i] != NULL; i++) {
        argv[i] = strdup(line[i]);
        assert(argv[i] != NULL);
    }
    const char *why = cli_parse(argv, &arguments);
    assert(why == NULL);
    arguments.environment = environment;
    answers = slice_of((const char *)input + 1, input_bytes - 1);
    run(&arguments);
    for (size_t i = 0; argv[i] != NULL; i++)
        free(argv[i]);
    return 0;
}
