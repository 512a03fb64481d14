/*
 * backup.c - a copy of the ledger, written while all goes on.
 */
#include "backup.h"

#include <stdio.h>

/* [backup] Reads as a reader of the library, so that commits go on. */
static void *backup_main(void *argument)
{
    struct backup *backup = argument;
    struct question *question = backup->question;
    enum env_copy_status status = env_copy(backup->env, question->detail, &question->ret_count,
                                           question->ret_why, sizeof question->ret_why);
    question->ret_status = status == ENV_COPIED        ? QUESTION_OK
                           : status == ENV_COPY_EXISTS ? QUESTION_MISMATCH
                                                       : QUESTION_FAILED;
    question->posting.kind = POSTING_BACKUP;
    queue_add(backup->queue, &question->posting);
    return NULL;
}

bool backup_start(struct backup *backup, struct question *question)
{
    question->ret_count = 0;
    question->ret_status = QUESTION_FAILED; /* no MISMATCH: that would say that the file exists */
    snprintf(question->ret_why, sizeof question->ret_why,
             "another backup is being written; ask again when it is done");
    if (backup->question != NULL)
        return false;
    backup->question = question;
    if (pthread_create(&backup->thread, NULL, backup_main, backup) == 0)
        return true;
    backup->question = NULL;
    snprintf(question->ret_why, sizeof question->ret_why, "cannot start a thread for it");
    return false;
}

void backup_join(struct backup *backup)
{
    if (backup->question != NULL)
        pthread_join(backup->thread, NULL);
    backup->question = NULL;
}

void backup_note(const struct question *question, struct machine *machine)
{
    char detail[192];
    if (question->ret_status == QUESTION_OK)
        snprintf(detail, sizeof detail, "%llu bytes to %.140s", (unsigned long long)question->ret_count,
                 question->detail);
    else
        snprintf(detail, sizeof detail, "failed: %.170s", question->ret_why);
    machine_note(machine, EVENT_BACKUP, detail);
}
