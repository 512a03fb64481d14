/*
 * fuzz_settings.c - any values of any settings: read or refused with one line each, and no secret in any of them.
 *
 * The input is variables separated by zero bytes, without their prefix: "TARGET=http://h", "WAIT=5s".  File names are
 * left out, so that no run depends on the files of its machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include "fuzz.h"
#include "settings.h"

enum { VARIABLES_MAX = 16, VARIABLE_BYTES_MAX = 2300 };

static bool is_left_out(const char *variable)
{
    const size_t name_length = strcspn(variable, "=");
    return memmem(variable, name_length, "_FILE", 5) != NULL;
}

/* Owned strings from INPUT into ENVIRONMENT, which ends with NULL. */
static void make_environment(const char *input, size_t input_bytes, char *environment[VARIABLES_MAX + 1])
{
    size_t count = 0;
    for (size_t at = 0; at < input_bytes && count < VARIABLES_MAX;) {
        const size_t length = strnlen(input + at, input_bytes - at);
        char variable[VARIABLE_BYTES_MAX];
        snprintf(variable, sizeof variable, "SINKONCE_%.*s", (int)(length < 2200 ? length : 2200),
                 input + at);
        at += length + 1;
        if (is_left_out(variable))
            continue;
        environment[count] = strdup(variable);
        assert(environment[count] != NULL);
        count++;
    }
    environment[count] = NULL;
}

static void check_lines(char *const lines[], size_t line_count)
{
    for (size_t i = 0; i < line_count; i++) {
        assert(strncmp(lines[i], "SINKONCE_", 9) == 0);
        for (const char *c = lines[i]; *c != '\0'; c++)
            assert((unsigned char)*c >= ' ' && *c != 0x7f);
    }
}

static void check_url(const struct target_url *url)
{
    assert(url->host[0] != '\0' && url->port != 0 && strstr(url->authority, url->host) != NULL);
    assert(url->base_path[0] == '\0' ||
           (url->base_path[0] == '/' && url->base_path[strlen(url->base_path) - 1] != '/'));
    assert(strpbrk(url->host, "@/?#\\ ") == NULL && strchr(url->authority, '@') == NULL);
}

static void check_good(const struct settings *settings, char *const environment[])
{
    FILE *nowhere = fopen("/dev/null", "w");
    assert(nowhere != NULL);
    check_url(&settings->target);
    assert(settings->workers >= 1 && settings->workers <= 64);
    assert(settings->body_bytes_max >= 1 && settings->body_bytes_max <= (1u << 30));
    assert(strpbrk(settings->authorization, "\r\n") == NULL &&
           strpbrk(settings->admin_token, "\r\n ") == NULL);
    for (int status = 0; status < 640; status++)
        assert(!status_set_has(&settings->applied_status, status) ||
               !status_set_has(&settings->not_applied_status, status));
    settings_print(settings, environment, nowhere);
    fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    char *environment[VARIABLES_MAX + 1];
    struct settings settings;
    struct settings_mistakes mistakes;
    make_environment((const char *)input, input_bytes, environment);
    const bool is_good = settings_read(environment, &settings, &mistakes);
    assert(is_good == (mistakes.line_count == 0));
    check_lines(mistakes.lines, mistakes.line_count);
    check_lines(mistakes.notes, mistakes.note_count);
    if (is_good)
        check_good(&settings, environment);
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    for (size_t i = 0; environment[i] != NULL; i++)
        free(environment[i]);
    return 0;
}
