/*
 * cli_version.c - sinkonce --version: what runs here, for a report of a fault.
 *
 * The libraries are asked at run time: a distribution replaces them under the program.  What it was built with is what
 * pkg-config said then (CMakeLists.txt).  The image has no dpkg: its build leaves a list of the packages that its files
 * came from (conf/image-root.sh).
 */
#include "cli_commands.h"
#include "store.h"
#include <curl/curl.h>
#include <event2/event.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

/* NAME VERSION, one package a line. */
#define PACKAGES_LIST "/usr/share/sinkonce/packages"

static void print_library(const char *name, const char *runs, const char *built)
{
    printf("%s %s (built with %s)\n", name, runs, built);
}

static void print_libraries(const curl_version_info_data *curl)
{
    char glibc[32], lmdb[STORE_VERSION_BYTES], xxhash[32];
    const unsigned number = XXH_versionNumber(); /* 801 is 0.8.1 */
    snprintf(xxhash, sizeof xxhash, "%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
    snprintf(glibc, sizeof glibc, "%d.%d", __GLIBC__, __GLIBC_MINOR__);
    store_database_version(lmdb);
    print_library("libevent", event_get_version(), BUILT_WITH_LIBEVENT);
    print_library("OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING), BUILT_WITH_OPENSSL);
    print_library("libcurl", curl->version, BUILT_WITH_CURL);
    print_library("jansson", jansson_version_str(), BUILT_WITH_JANSSON);
    print_library("LMDB", lmdb, BUILT_WITH_LMDB);
    print_library("xxHash", xxhash, BUILT_WITH_XXHASH);
    print_library("zlib", zlibVersion(), BUILT_WITH_ZLIB);
    print_library("zstd", ZSTD_versionString(), BUILT_WITH_ZSTD);
    print_library("glibc", gnu_get_libc_version(), glibc);
    printf("libcurl's TLS: %s\n", curl->ssl_version == NULL ? "none" : curl->ssl_version);
    printf("compiler: %s\n", __VERSION__);
}

static void print_packages(void)
{
    char line[256];
    FILE *list = fopen(PACKAGES_LIST, "re");
    if (list == NULL)
        return;
    while (fgets(line, sizeof line, list) != NULL)
        printf("package %s", line);
    fclose(list);
}

int cli_version(const struct cli_arguments *arguments)
{
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    printf("sinkonce %s\n", SINKONCE_VERSION);
    if (arguments->values[OPTION_VERBOSE] != NULL) {
        print_libraries(curl);
        print_packages();
        return 0;
    }
    printf("libevent %s\n", event_get_version());
    printf("libcurl %s (%s)\n", curl->version, curl->ssl_version == NULL ? "no TLS" : curl->ssl_version);
    printf("jansson %s\n", jansson_version_str());
    return 0;
}
