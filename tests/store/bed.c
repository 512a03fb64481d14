/*
 * bed.c - a real store in a folder of its own.
 */
#include "bed.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct bed bed;
const char *bed_root = "/tmp";

int bed_setup(void **state)
{
    (void)state;
    memset(&bed, 0, sizeof bed);
    snprintf(bed.folder, sizeof bed.folder, "%s/sinkonce-store-XXXXXX", bed_root);
    if (mkdtemp(bed.folder) == NULL)
        return -1;
    bed.options = desk_options(bed.folder);
    return 0;
}

void bed_path(const char *name, char path[160])
{
    snprintf(path, 160, "%s/%s", bed.folder, name);
}

enum store_open_status bed_try_open(void)
{
    assert(bed.store == NULL);
    enum store_open_status status = store_open(&bed.options, &bed.store, bed.why, sizeof bed.why);
    if (status == STORE_OPENED)
        bed.desk = desk_open(bed.store);
    return status;
}

void bed_open(void)
{
    if (bed_try_open() == STORE_OPENED)
        return;
    fprintf(stderr, "%s\n", bed.why);
    abort();
}

void bed_close(void)
{
    if (bed.store == NULL)
        return;
    desk_close(&bed.desk);
    store_close(bed.store);
    bed.store = NULL;
}

int bed_teardown(void **state)
{
    (void)state;
    bed_close();
    DIR *folder = opendir(bed.folder);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[160];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%.60s", bed.folder, entry->d_name);
        unlink(path);
    }
    if (folder != NULL)
        closedir(folder);
    return rmdir(bed.folder);
}
