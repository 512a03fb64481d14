/*
 * health_socket.c - see health_socket.h.
 */
#include "health_socket.h"

#include <limits.h>
#include <stdlib.h>
#include "settings_url.h"

const char *health_socket_address(const char *data_dir, struct listen_address *ret)
{
    char folder[PATH_MAX], text[PATH_MAX + 32];
    *ret = (struct listen_address){ 0 };
    if (realpath(data_dir, folder) == NULL)
        return "has no data folder";
    snprintf(text, sizeof text, "unix:%s/health.sock", folder);
    const char *wrong = listen_address_parse(text, ret);
    if (wrong != NULL)
        listen_address_deinit(ret);
    return wrong;
}
