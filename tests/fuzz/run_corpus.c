/*
 * run_corpus.c - give every file of a folder to the fuzz target this is linked with: the corpus as a unit test.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "fuzz.h"

enum { INPUT_BYTES_MAX = 1 << 20 };

/* Of the processor: a busy machine changes nothing. */
static long cpu_us(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (long)spent.tv_sec * 1000000 + spent.tv_nsec / 1000;
}

/* The input in memory of exactly its size, so that AddressSanitizer sees the first byte read past it. */
static bool run_file(const char *path)
{
    static char buffer[INPUT_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    size_t byte_count = fread(buffer, 1, sizeof buffer, file);
    bool is_read = ferror(file) == 0 && byte_count < sizeof buffer;
    fclose(file);
    uint8_t *input = is_read ? malloc(byte_count + (byte_count == 0)) : NULL;
    if (input == NULL)
        return false;
    memcpy(input, buffer, byte_count);
    printf("%s, %zu bytes", path, byte_count);
    fflush(stdout); /* the last line before an abort names the file */
    long before_us = cpu_us();
    LLVMFuzzerTestOneInput(input, byte_count);
    printf(", %ld us\n", cpu_us() - before_us);
    free(input);
    return true;
}

static int run_folder(const char *folder)
{
    char path[4096];
    int file_count = 0;
    DIR *listing = opendir(folder);
    if (listing == NULL)
        return -1;
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (entry->d_name[0] == '.')
            continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            !run_file(path)) {
            fprintf(stderr, "%s/%s cannot be read\n", folder, entry->d_name);
            closedir(listing);
            return -1;
        }
        file_count++;
    }
    closedir(listing);
    return file_count;
}

int main(int argc, char *argv[])
{
    int file_count = argc == 2 ? run_folder(argv[1]) : -1;
    if (file_count <= 0) {
        fprintf(stderr, "usage: %s FOLDER, which must hold at least one file\n", argv[0]);
        return EXIT_FAILURE;
    }
    printf("%d inputs\n", file_count);
    return EXIT_SUCCESS;
}
