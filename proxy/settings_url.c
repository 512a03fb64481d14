/*
 * settings_url.c - URLs of the target and its proxy, addresses to listen on.
 *
 * Source: RFC 3986, section 3 (parts), 3.2.2 (brackets around IPv6); RFC 9110, 4.2.4 (no userinfo in http URLs).
 */
#include "settings_url.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/un.h>

static const char no_memory[] = "could not be kept: out of memory";

static char *copy(struct slice bytes)
{
    return strndup(bytes.at, bytes.byte_count);
}

/* The characters of a URL; what RFC 3986 leaves out (space, quotes, <>\^`{|}, anything above ASCII) must be
 * percent-encoded, since libraries disagree about it. */
static bool is_url_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~' || strchr("\"<>\\^`{|}", *text) != NULL)
            return false;
    }
    return true;
}

static bool is_host_name(struct slice host)
{
    for (size_t i = 0; i < host.byte_count; i++) {
        const char c = host.at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
              c == '.' || c == '_'))
            return false;
    }
    return host.byte_count > 0 && host.byte_count <= 253;
}

static bool is_ipv6(struct slice host)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (host.byte_count >= sizeof text)
        return false;
    memcpy(text, host.at, host.byte_count);
    text[host.byte_count] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

/* Split AUTHORITY into a checked host, without brackets, and a port, whose AT is NULL when there is none. */
static const char *split_authority(struct slice authority, struct slice *ret_host, struct slice *ret_port)
{
    const char *end = authority.at + authority.byte_count;
    const char *after = memchr(authority.at, ':', authority.byte_count);
    const bool is_bracketed = authority.byte_count > 0 && authority.at[0] == '[';
    *ret_port = slice_of(NULL, 0);
    if (is_bracketed) {
        const char *bracket = memchr(authority.at, ']', authority.byte_count);
        if (bracket == NULL)
            return "has an opening bracket without a closing one";
        *ret_host = slice_of(authority.at + 1, (size_t)(bracket - authority.at - 1));
        after = bracket + 1;
        if (after < end && *after != ':')
            return "has something between the closing bracket and the port";
    } else {
        after = after == NULL ? end : after;
        *ret_host = slice_of(authority.at, (size_t)(after - authority.at));
    }
    if (after < end)
        *ret_port = slice_of(after + 1, (size_t)(end - after - 1));
    if (ret_host->byte_count == 0)
        return "has no host";
    if (!is_bracketed && ret_port->at != NULL && memchr(ret_port->at, ':', ret_port->byte_count) != NULL)
        return "must have an IPv6 address in brackets, as in [::1]:8080";
    if (is_bracketed ? !is_ipv6(*ret_host) : !is_host_name(*ret_host))
        return is_bracketed ? "has no IPv6 address between the brackets"
                            : "has a character in its host that no host has";
    return NULL;
}

static const char *parse_port(struct slice text, uint16_t low, uint16_t *ret_port)
{
    uint32_t port = 0;
    bool is_number = text.byte_count > 0 && text.byte_count <= 5;
    for (size_t i = 0; is_number && i < text.byte_count; i++) {
        is_number = text.at[i] >= '0' && text.at[i] <= '9';
        port = port * 10 + (uint32_t)(text.at[i] - '0');
    }
    if (!is_number || port > UINT16_MAX || port < low)
        return low == 0 ? "must have a port from 0 to 65535" : "must have a port from 1 to 65535";
    *ret_port = (uint16_t)port;
    return NULL;
}

/* Scheme and userinfo off, authority and the rest told apart. */
static const char *split_url(const char *text, struct target_url *ret, struct slice *ret_authority,
                             const char **ret_rest)
{
    if (strncasecmp(text, "http://", 7) != 0 && strncasecmp(text, "https://", 8) != 0)
        return "must begin with http:// or https://";
    if (!is_url_text(text))
        return "must not have spaces, control characters or others that belong percent-encoded into a URL";
    if (strchr(text, '#') != NULL)
        return "must not have a fragment (#)";
    ret->is_https = strncasecmp(text, "https", 5) == 0;
    const char *authority = text + (ret->is_https ? 8 : 7);
    const size_t byte_count = strcspn(authority, "/?");
    *ret_authority = slice_of(authority, byte_count);
    *ret_rest = authority + byte_count;
    return NULL;
}

static const char *parse_authority(struct slice authority, struct target_url *ret)
{
    struct slice host, port;
    const char *wrong = split_authority(authority, &host, &port);
    ret->port = ret->is_https ? 443 : 80;
    if (wrong == NULL && port.at != NULL)
        wrong = parse_port(port, 1, &ret->port);
    if (wrong != NULL)
        return wrong;
    const bool is_default = ret->port == (ret->is_https ? 443 : 80);
    const bool is_bracketed = authority.at[0] == '[';
    char port_text[8] = "";
    if (!is_default)
        snprintf(port_text, sizeof port_text, ":%u", (unsigned)ret->port);
    ret->host = copy(host);
    if (asprintf(&ret->authority, is_bracketed ? "[%.*s]%s" : "%.*s%s", (int)host.byte_count, host.at,
                 port_text) < 0)
        ret->authority = NULL;
    return ret->host == NULL || ret->authority == NULL ? no_memory : NULL;
}

/* What two spellings of one target have in common. */
static const char *name_target(struct target_url *ret)
{
    if (asprintf(&ret->name, "%s://%s%s", ret->is_https ? "https" : "http", ret->authority, ret->base_path) <
        0) {
        ret->name = NULL;
        return no_memory;
    }
    for (char *at = strstr(ret->name, "://") + 3; *at != '\0' && *at != '/'; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    return NULL;
}

/* REST is the path and query behind the authority. */
static const char *keep_base(const char *text, const char *rest, struct target_url *ret)
{
    size_t path_bytes = strcspn(rest, "?");
    const char *query = rest[path_bytes] == '?' ? rest + path_bytes + 1 : "";
    while (path_bytes > 0 && rest[path_bytes - 1] == '/')
        path_bytes--;
    ret->base_path = copy(slice_of(rest, path_bytes));
    ret->base_query = strdup(query);
    ret->text = strdup(text);
    return ret->base_path == NULL || ret->base_query == NULL || ret->text == NULL ? no_memory
                                                                                  : name_target(ret);
}

const char *target_url_parse(const char *text, struct target_url *ret)
{
    struct slice authority;
    const char *rest;
    *ret = (struct target_url){ 0 };
    const char *wrong = split_url(text, ret, &authority, &rest);
    if (wrong == NULL && memchr(authority.at, '@', authority.byte_count) != NULL)
        wrong = "must not have a user or password in it; SINKONCE_AUTHORIZATION is for them";
    if (wrong == NULL)
        wrong = parse_authority(authority, ret);
    if (wrong == NULL)
        wrong = keep_base(text, rest, ret);
    return wrong;
}

const char *proxy_url_parse(const char *text, struct target_url *ret)
{
    struct slice authority;
    const char *rest;
    *ret = (struct target_url){ 0 };
    const char *wrong = split_url(text, ret, &authority, &rest);
    if (wrong != NULL)
        return wrong;
    const char *at_sign = memrchr(authority.at, '@', authority.byte_count);
    if (at_sign != NULL)
        authority = slice_of(at_sign + 1, (size_t)(authority.at + authority.byte_count - at_sign - 1));
    wrong = parse_authority(authority, ret);
    /* libcurl's own default is 1080, a browser's is 80: whoever leaves it out may mean either */
    if (wrong == NULL && (authority.at[authority.byte_count - 1] == ']' ||
                          memchr(authority.at, ':', authority.byte_count) == NULL))
        wrong = "needs a port, as in http://proxy:3128";
    if (wrong == NULL && *rest != '\0' && strcmp(rest, "/") != 0)
        wrong = "must not have a path or a query";
    return wrong == NULL ? keep_base(text, rest, ret) : wrong;
}

void target_url_deinit(struct target_url *url)
{
    free(url->text);
    free(url->host);
    free(url->authority);
    free(url->base_path);
    free(url->base_query);
    free(url->name);
    *url = (struct target_url){ 0 };
}

static const char *parse_unix(const char *path, struct listen_address *ret)
{
    if (path[0] != '/')
        return "must have a path that begins with a slash, as in unix:/run/sinkonce.sock";
    if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return "has a longer path than the 107 bytes that a Unix socket may have";
    ret->is_unix = true;
    ret->host = strdup(path);
    return ret->host == NULL ? no_memory : NULL;
}

static const char *parse_inet(const char *text, struct listen_address *ret)
{
    struct slice host, port;
    if (text[0] == ':')
        return "needs a host before the port: 127.0.0.1, or 0.0.0.0 for every interface";
    const char *wrong = split_authority(slice_of_text(text), &host, &port);
    if (wrong == NULL && port.at == NULL)
        wrong = "needs a port, as in 127.0.0.1:8650";
    if (wrong == NULL)
        wrong = parse_port(port, 0, &ret->port);
    if (wrong != NULL)
        return wrong;
    ret->host = copy(host);
    return ret->host == NULL ? no_memory : NULL;
}

const char *listen_address_parse(const char *text, struct listen_address *ret)
{
    *ret = (struct listen_address){ 0 };
    const char *wrong = strncmp(text, "unix:", 5) == 0 ? parse_unix(text + 5, ret) : parse_inet(text, ret);
    if (wrong != NULL)
        return wrong;
    ret->text = strdup(text);
    return ret->text == NULL ? no_memory : NULL;
}

void listen_address_deinit(struct listen_address *address)
{
    free(address->text);
    free(address->host);
    *address = (struct listen_address){ 0 };
}
