/*
 * reload.h - SIGHUP: read secrets and certificates again, and hand them to all who use them; whole or not at all.
 *
 *     environment --> credentials_read() --+--> wrong: every mistake is logged, counted and noted; the old ones hold
 *                                          +--> admin port, prober; loops, each when it gets to it
 *                                                   all have it: logged (config.reloaded), counted and noted
 *                                                   one stands still: logged (config.reloading), and told by /status
 *
 * Who reads config.reloaded may rely on it: what was taken out of the files is good nowhere any more.
 *
 * Threads: [main] throughout.
 */
#ifndef SINKONCE_RELOAD_H
#define SINKONCE_RELOAD_H

#include "admin.h"
#include "loop.h"
#include "prober.h"

/* How far what was read has come.  The caller's memory, all zero at first. */
struct reload_course {
    size_t handed_count; /* SIGHUPs whose credentials were handed to the loops */
    size_t taken_count;  /* those that every loop has taken */
    uint64_t moved_ns;   /* when the latter last changed, or the first that is late was handed over */
    bool is_late_told;
};

/* All borrowed. */
struct reload_parts {
    struct reload_course *course;
    char *const *environment;
    struct program *program; /* whose credentials are replaced */
    struct program_state *state;
    struct loop **loops;
    size_t loop_count;
    struct admin *admin;
    struct prober *prober; /* NULL: none */
};

void reload(const struct reload_parts *parts);
/* To be called often: is what was read last in use everywhere now? */
void reload_tick(const struct reload_parts *parts, uint64_t now_ns);
/* One line in the log for each mistake and each note. */
void reload_log_mistakes(const struct settings_mistakes *mistakes);
/* Log which certificates end soon. */
void reload_log_ends(const struct credentials *credentials);

#endif
