/*
 * cli_version.c - sinkonce --version: what runs here, for a report of a fault.
 *
 * The libraries are asked at run time: a distribution replaces them under the program.
 */
#include "cli_commands.h"
#include <curl/curl.h>
#include <event2/event.h>
#include <jansson.h>

int cli_version(const struct cli_arguments *arguments)
{
    (void)arguments;
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    printf("sinkonce %s\n", SINKONCE_VERSION);
    printf("libevent %s\n", event_get_version());
    printf("libcurl %s (%s)\n", curl->version, curl->ssl_version == NULL ? "no TLS" : curl->ssl_version);
    printf("jansson %s\n", jansson_version_str());
    return 0;
}
