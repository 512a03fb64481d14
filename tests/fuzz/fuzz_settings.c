/*
 * fuzz_settings.c - any values of any settings, and any bytes in the files that they name: read or refused with one line
 * each, and no secret in any of them.
 *
 * The input is variables separated by zero bytes, without their prefix: "TARGET=http://h", "WAIT=5s".  What stands behind
 * the name of a file is what the file holds, 0x01 in place of zero bytes, so that no run depends on the files of its
 * machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "credentials.h"
#include "fuzz.h"
#include "settings.h"

enum { VARIABLES_MAX = 16, VARIABLE_BYTES_MAX = 2300 };

struct environment {
    char *list[VARIABLES_MAX + 1];
    int files[VARIABLES_MAX];
    size_t count, file_count;
};

static void variable_add(struct environment *environment, const char *variable)
{
    environment->list[environment->count] = strdup(variable);
    assert(environment->list[environment->count] != NULL);
    environment->count++;
}

/* The path of a file in memory that holds HELD. */
static void file_make(struct environment *environment, const char *held, char path[64])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    assert(fd >= 0);
    for (; *held != '\0'; held++) {
        const char byte = *held == 1 ? '\0' : *held;
        ssize_t written = write(fd, &byte, 1);
        assert(written == 1);
    }
    environment->files[environment->file_count++] = fd;
    snprintf(path, 64, "/proc/self/fd/%d", fd);
}

static void variable_make(struct environment *environment, char *variable)
{
    char *value = strchr(variable, '='), path[64], named[VARIABLE_BYTES_MAX];
    if (value == NULL || memmem(variable, (size_t)(value - variable), "_FILE", 5) == NULL) {
        variable_add(environment, variable);
        return;
    }
    file_make(environment, value + 1, path);
    snprintf(named, sizeof named, "%.*s=%s", (int)(value - variable), variable, path);
    variable_add(environment, named);
}

static void environment_make(struct environment *environment, const char *input, size_t input_bytes)
{
    *environment = (struct environment){ .count = 0 };
    for (size_t at = 0; at < input_bytes && environment->count < VARIABLES_MAX;) {
        const size_t length = strnlen(input + at, input_bytes - at);
        char variable[VARIABLE_BYTES_MAX];
        snprintf(variable, sizeof variable, "SINKONCE_%.*s", (int)(length < 2200 ? length : 2200),
                 input + at);
        at += length + 1;
        variable_make(environment, variable);
    }
}

static void environment_release(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->list[i]);
    for (size_t i = 0; i < environment->file_count; i++)
        close(environment->files[i]);
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

/* What the files of certificates and keys hold is read when the program starts, and at each SIGHUP. */
static void check_credentials(const struct settings *settings)
{
    struct settings_mistakes mistakes;
    struct credentials *credentials = credentials_of(settings, &mistakes);
    assert((credentials == NULL) == (mistakes.line_count > 0));
    check_lines(mistakes.lines, mistakes.line_count);
    credentials_release(credentials);
    settings_mistakes_deinit(&mistakes);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    struct environment environment;
    struct settings settings;
    struct settings_mistakes mistakes;
    environment_make(&environment, (const char *)input, input_bytes);
    const bool is_good = settings_read(environment.list, &settings, &mistakes);
    assert(is_good == (mistakes.line_count == 0));
    check_lines(mistakes.lines, mistakes.line_count);
    check_lines(mistakes.notes, mistakes.note_count);
    if (is_good) {
        check_good(&settings, environment.list);
        check_credentials(&settings);
    }
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    environment_release(&environment);
    return 0;
}
