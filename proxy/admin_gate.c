/*
 * admin_gate.c - who may change something on the admin port.
 *
 * Against pages that a browser of this machine has open: a page of another origin sends Origin, a page whose name was
 * rebound to our address sends that name as Host, and neither can send a JSON content type without being asked first
 * (admin.c checks it), which we never permit.
 */
#include "admin_gate.h"
#include <arpa/inet.h>
#include <string.h>
#include "bearer.h"

static const struct gate_row {
    const char *label;
    int status;
    const char *sentence;
} rows[GATE_COUNT] = {
    [GATE_OPEN] = { "open", 200, "" },
    [GATE_NO_TOKEN_SET] = { "no-admin-token", 403,
                            "changes from beyond loopback need SINKONCE_ADMIN_TOKEN, and it is not set; set "
                            "it, or "
                            "send the change from the same machine or, where it runs in one, container" },
    [GATE_NOT_AUTHORIZED] = { "not-authorized", 401,
                              "send Authorization: Bearer with a value of SINKONCE_ADMIN_TOKEN" },
    [GATE_FOREIGN_HOST] = { "foreign-host", 403,
                            "Host must be an IP address or localhost, or the request must carry the admin "
                            "token" },
    [GATE_FOREIGN_ORIGIN] = { "foreign-origin", 403, "changes are not taken from pages of another origin" },
};

const char *admin_gate_label(enum gate gate)
{
    return rows[gate].label;
}

const char *admin_gate_sentence(enum gate gate)
{
    return rows[gate].sentence;
}

int admin_gate_status(enum gate gate)
{
    return rows[gate].status;
}

/* HOST without a port; of "[::1]:80" what stands in the brackets. */
static struct slice host_name(struct slice host)
{
    if (host.byte_count > 0 && host.at[0] == '[') {
        const char *end = memchr(host.at, ']', host.byte_count);
        return end == NULL ? host : slice_of(host.at + 1, (size_t)(end - host.at) - 1);
    }
    const char *colon = host.byte_count == 0 ? NULL : memchr(host.at, ':', host.byte_count);
    return colon == NULL ? host : slice_of(host.at, (size_t)(colon - host.at));
}

bool admin_host_is_local_name(struct slice host)
{
    char name[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    struct slice slice = host_name(host);
    if (slice.byte_count == 0 || slice.byte_count >= sizeof name)
        return false;
    memcpy(name, slice.at, slice.byte_count);
    name[slice.byte_count] = '\0';
    if (host.at[0] == '[')
        return inet_pton(AF_INET6, name, address) == 1;
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1;
}

static bool is_token_right(const struct request *request, const char *token)
{
    return bearer_is_right(http1_field_find(request->head.fields, request->head.field_count, "authorization"),
                           token);
}

/* An Origin is "scheme://host[:port]", or "null" (RFC 6454, 7.1); every such field must name our Host. */
static bool is_origin_foreign(const struct http1_head *head)
{
    for (size_t i = 0; i < head->field_count; i++) {
        struct slice value = head->fields[i].value;
        if (!http1_name_equals(head->fields[i].name, "origin"))
            continue;
        const char *mark = memmem(value.at, value.byte_count, "://", 3);
        if (mark == NULL)
            return true;
        struct slice authority = slice_of(mark + 3, value.byte_count - (size_t)(mark + 3 - value.at));
        if (!slice_equals_caseless(authority, head->host))
            return true;
    }
    return false;
}

enum gate admin_gate(const struct request *request, const char *token)
{
    bool has_token = is_token_right(request, token);
    if (is_origin_foreign(&request->head))
        return GATE_FOREIGN_ORIGIN;
    if (has_token)
        return GATE_OPEN;
    if (!request->is_trusted_peer)
        return token[0] == '\0' ? GATE_NO_TOKEN_SET : GATE_NOT_AUTHORIZED;
    return admin_host_is_local_name(request->head.host) ? GATE_OPEN : GATE_FOREIGN_HOST;
}
