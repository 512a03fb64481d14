/*
 * cli_http.c - the only file of the commands that names libcurl.
 *
 * The proxy's own client (upstream.h) is made for a loop and for records; a command asks once and waits.  What the
 * environment says of proxies is not obeyed: the admin port is near.
 */
#include "cli_http.h"
#include "bearer.h"
#include "cli_commands.h"
#include "cli_token.h"
#include "health_socket.h"
#include "settings_rows.h"
#include "settings_url.h"
#include "text.h"
#include "tls.h"
#include <curl/curl.h>
#include <stdlib.h>
#include <strings.h>
#include <sysexits.h>

enum {
    CONNECT_TIMEOUT_MS = 5000,
    TOKEN_WAIT_MS = 30000, /* a password manager may ask its user first */
    ANSWER_BYTES_MAX = 64 << 20,
    ENVIRONMENT_MAX = 5,
    VARIABLE_BYTES_MAX = 8300
};

struct cli_server {
    struct settings settings; /* only those of the admin port mean anything */
    const struct cli_arguments *arguments;
    /* Borrowed: that of the admin port, as the environment names it; NULL: none, or another port is asked. */
    const char *certificate;
    bool is_https;
    struct listen_address health; /* owned while it is asked; text NULL: the admin port is */
    CURL *curl;                   /* owned; of one question: see cli_http_ask() */
};

/* ---- where ---------------------------------------------------------------------------------------------------- */

/* An environment of what belongs to the admin port, the options before the variables, so that the settings' own reader
 * judges them. */
struct few_variables {
    char room[ENVIRONMENT_MAX][VARIABLE_BYTES_MAX];
    char *list[ENVIRONMENT_MAX + 1];
    size_t count;
};

static void variable_add(struct few_variables *few, const char *name, const char *value)
{
    if (value == NULL)
        return;
    snprintf(few->room[few->count], VARIABLE_BYTES_MAX, "%s=%s", name, value);
    few->list[few->count] = few->room[few->count];
    few->list[++few->count] = NULL;
}

static const char *without_scheme(const char *address, bool *ret_is_https)
{
    *ret_is_https = address != NULL && strncasecmp(address, "https://", 8) == 0;
    if (*ret_is_https)
        return address + 8;
    return address != NULL && strncasecmp(address, "http://", 7) == 0 ? address + 7 : address;
}

static struct few_variables few;

/* False: what comes from there is no token, and that has been said. */
static bool token_add_stream(const char *token_file)
{
    char token[CLI_TOKEN_BYTES_MAX + 1];
    const char *why = cli_token_read(token_file, TOKEN_WAIT_MS, token);
    if (why == NULL)
        variable_add(&few, "SINKONCE_ADMIN_TOKEN", token);
    else
        fprintf(stderr, "sinkonce: --token-file %s: %s\n", token_file, why);
    explicit_bzero(token, sizeof token);
    return why == NULL;
}

/* The option before the variables.  False: see above. */
static bool token_add(const struct cli_arguments *arguments, const char *token_file)
{
    if (token_file != NULL && cli_token_is_stream(token_file))
        return token_add_stream(token_file);
    if (token_file == NULL)
        variable_add(&few, "SINKONCE_ADMIN_TOKEN",
                     settings_lookup(arguments->environment, "SINKONCE_ADMIN_TOKEN"));
    variable_add(&few, "SINKONCE_ADMIN_TOKEN_FILE",
                 token_file != NULL ? token_file
                                    : settings_lookup(arguments->environment, "SINKONCE_ADMIN_TOKEN_FILE"));
    return true;
}

static bool is_health(const struct cli_server *server)
{
    return !server->arguments->command->is_client;
}

/* False: what belongs to the admin port is wrong, and has been said. */
static bool server_read(struct cli_server *server)
{
    struct settings_mistakes mistakes;
    const struct cli_arguments *arguments = server->arguments;
    const char *admin = arguments->values[OPTION_ADMIN], *token_file = arguments->values[OPTION_TOKEN_FILE];
    bool is_good = true;
    few.count = 0;
    server->certificate = settings_lookup(arguments->environment, "SINKONCE_ADMIN_CERT_FILE");
    if (admin == NULL) {
        variable_add(&few, "SINKONCE_ADMIN_LISTEN",
                     settings_lookup(arguments->environment, "SINKONCE_ADMIN_LISTEN"));
        server->is_https = server->certificate != NULL;
    } else {
        server->certificate = NULL;
        variable_add(&few, "SINKONCE_ADMIN_LISTEN", without_scheme(admin, &server->is_https));
    }
    if (is_health(server)) /* needs no token, and nothing that may lie broken on the disk */
        variable_add(&few, "SINKONCE_DATA_DIR", settings_lookup(arguments->environment, "SINKONCE_DATA_DIR"));
    else
        is_good = token_add(arguments, token_file);
    const bool is_whole = settings_read(few.list, &server->settings, &mistakes);
    (void)is_whole; /* what is missing besides is serve's to report */
    for (size_t i = 0; i < mistakes.line_count; i++) {
        if (strncmp(mistakes.lines[i], "SINKONCE_ADMIN_", 15) != 0)
            continue;
        fprintf(stderr, "sinkonce: %s\n", mistakes.lines[i]);
        is_good = false;
    }
    settings_mistakes_deinit(&mistakes);
    return is_good;
}

struct cli_server *cli_server_new(const struct cli_arguments *arguments, int *ret_code)
{
    struct cli_server *server = calloc(1, sizeof *server);
    *ret_code = EX_OSERR;
    if (server == NULL)
        return NULL;
    server->arguments = arguments;
    *ret_code = EX_CONFIG;
    if (server_read(server)) {
        const struct listen_address *address = &server->settings.admin_listen;
        if (address->is_unix || address->port != 0)
            return server;
        fprintf(stderr, "sinkonce: SINKONCE_ADMIN_LISTEN has port 0: nobody can know which one was taken; "
                        "name it with --admin\n");
    }
    cli_server_free(server);
    return NULL;
}

void cli_server_free(struct cli_server *server)
{
    if (server == NULL)
        return;
    settings_deinit(&server->settings);
    free(server);
}

const char *cli_server_name(const struct cli_server *server)
{
    return server->settings.admin_listen.text;
}

/* ---- ask ------------------------------------------------------------------------------------------------------- */

/* A wildcard is an address to listen on, not one to connect to. */
static const char *host_to_ask(const char *host)
{
    if (strcmp(host, "0.0.0.0") == 0)
        return "127.0.0.1";
    return strcmp(host, "::") == 0 ? "::1" : host;
}

static void url_set(struct cli_server *server, const char *path)
{
    const bool is_socket = server->health.text != NULL;
    const struct listen_address *address = is_socket ? &server->health : &server->settings.admin_listen;
    const char *host = address->is_unix ? "localhost" : host_to_ask(address->host);
    const bool is_v6 = strchr(host, ':') != NULL;
    char url[4096], port[8] = "";
    if (!address->is_unix)
        snprintf(port, sizeof port, ":%u", (unsigned)address->port);
    snprintf(url, sizeof url, "%s://%s%s%s%s%s", server->is_https && !is_socket ? "https" : "http",
             is_v6 ? "[" : "", host, is_v6 ? "]" : "", port, path);
    curl_easy_setopt(server->curl, CURLOPT_URL, url);
    if (address->is_unix)
        curl_easy_setopt(server->curl, CURLOPT_UNIX_SOCKET_PATH, address->host);
}

/* The health check of a container looks at the process beside it: what its certificate says does not make it ill.  Every
 * other command checks it.  Of the instance that shares our environment the key itself is known, and who signed it or
 * which names it has is no matter: those are seldom 127.0.0.1. */
static void trust_set(struct cli_server *server)
{
    const char *ca_file = server->arguments->values[OPTION_CA_FILE];
    char pin[TLS_PIN_BYTES_MAX];
    bool is_pinned = !is_health(server) && ca_file == NULL && server->certificate != NULL &&
                     tls_pin_of(server->certificate, pin);
    if (is_health(server) || is_pinned) {
        curl_easy_setopt(server->curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(server->curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (is_pinned)
        curl_easy_setopt(server->curl, CURLOPT_PINNEDPUBLICKEY, pin);
    else if (!is_health(server) && ca_file != NULL)
        curl_easy_setopt(server->curl, CURLOPT_CAINFO, ca_file);
}

/* A port that asks for certificates gets its own where no other is named: one authority often signs both kinds. */
static void tls_set(struct cli_server *server)
{
    const struct cli_arguments *arguments = server->arguments;
    const char *certificate = arguments->values[OPTION_CERT_FILE], *key = arguments->values[OPTION_KEY_FILE];
    if (certificate == NULL && server->certificate != NULL &&
        settings_lookup(arguments->environment, "SINKONCE_ADMIN_CLIENT_CA_FILE") != NULL) {
        certificate = server->certificate;
        key = settings_lookup(arguments->environment, "SINKONCE_ADMIN_KEY_FILE");
    }
    trust_set(server);
    if (certificate != NULL)
        curl_easy_setopt(server->curl, CURLOPT_SSLCERT, certificate);
    if (key != NULL)
        curl_easy_setopt(server->curl, CURLOPT_SSLKEY, key);
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct text *text = context;
    if (text->byte_count + size * count > ANSWER_BYTES_MAX)
        return 0;
    text_add(text, slice_of(bytes, size * count));
    return text->is_lost ? 0 : size * count;
}

/* The health check may be speaking to anybody, and needs no token.  False: no memory. */
static bool fields_make(const struct cli_server *server, bool has_body, struct curl_slist **ret_fields)
{
    char field[VARIABLE_BYTES_MAX];
    struct curl_slist *fields = curl_slist_append(NULL, "Expect:");
    *ret_fields = fields;
    if (fields != NULL && has_body)
        fields = curl_slist_append(fields, "Content-Type: application/json");
    if (fields == NULL || server->settings.admin_token[0] == '\0' || is_health(server))
        return fields != NULL;
    struct slice token = bearer_first(server->settings.admin_token);
    snprintf(field, sizeof field, "Authorization: Bearer %.*s", (int)token.byte_count, token.at);
    return curl_slist_append(fields, field) != NULL;
}

/* The options of one question; FIELDS and TEXT are borrowed until it is over. */
static void question_set(struct cli_server *server, const char *method, const char *path, const char *body,
                         struct curl_slist *fields, struct text *text)
{
    CURL *curl = server->curl;
    url_set(server, path);
    if (server->health.text == NULL)
        tls_set(server);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, text);
    if (body != NULL)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
}

/* Each question has a connection of its own: on one that may have ended libcurl would send a change twice.  And a handle:
 * used again, libcurl before 8.1.1 may free the last answer's fields twice (curl's issue 11101). */
bool cli_http_ask(struct cli_server *server, const char *method, const char *path, const char *body,
                  uint64_t timeout_ms, struct cli_answer *ret, char ret_why[], size_t why_bytes_max)
{
    struct text text = { 0 };
    struct curl_slist *fields = NULL;
    char words[CURL_ERROR_SIZE] = "";
    long status = 0, sent_bytes = 0;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    *ret = (struct cli_answer){ .status = 0 };
    server->curl = curl_easy_init();
    if (server->curl != NULL && fields_make(server, body != NULL, &fields)) {
        question_set(server, method, path, body, fields, &text);
        curl_easy_setopt(server->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
        curl_easy_setopt(server->curl, CURLOPT_ERRORBUFFER, words);
        code = curl_easy_perform(server->curl);
        curl_easy_getinfo(server->curl, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(server->curl, CURLINFO_REQUEST_SIZE, &sent_bytes);
    }
    curl_easy_cleanup(server->curl);
    server->curl = NULL;
    curl_slist_free_all(fields);
    text_add(&text, slice_of("", 1));
    ret->is_asked = sent_bytes > 0;
    ret->status = (int)status;
    if (code == CURLE_OK && text_take(&text, &ret->body, &ret->body_bytes)) {
        ret->body_bytes--;
        return true;
    }
    if (code == CURLE_SSL_PINNEDPUBKEYNOTMATCH)
        snprintf(
            words, sizeof words,
            "it shows another key than SINKONCE_ADMIN_CERT_FILE holds; was the file replaced, and no SIGHUP "
            "sent or the SIGHUP refused?  With --ca-file the certificate's authority is asked instead");
    snprintf(ret_why, why_bytes_max, "%s", words[0] != '\0' ? words : curl_easy_strerror(code));
    text_deinit(&text);
    return false;
}

bool cli_http_ask_socket(struct cli_server *server, const char *path, uint64_t timeout_ms,
                         struct cli_answer *ret, char ret_why[], size_t why_bytes_max)
{
    *ret = (struct cli_answer){ .status = 0 };
    if (settings_lookup(server->arguments->environment, "SINKONCE_ADMIN_CLIENT_CA_FILE") == NULL ||
        server->settings.data_dir == NULL ||
        health_socket_address(server->settings.data_dir, &server->health) != NULL)
        return false;
    const bool is_answered = cli_http_ask(server, "GET", path, NULL, timeout_ms, ret, ret_why, why_bytes_max);
    listen_address_deinit(&server->health);
    return is_answered;
}

void cli_answer_deinit(struct cli_answer *answer)
{
    free(answer->body);
    *answer = (struct cli_answer){ .status = 0 };
}
