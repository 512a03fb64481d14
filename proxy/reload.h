/*
 * reload.h - SIGHUP: read secrets and certificates again, and hand them to all who use them; whole or not at all.
 *
 *     environment --> credentials_read() --+--> wrong: every mistake is logged, counted and noted; the old ones hold
 *                                          +--> loops, admin port, prober; logged, counted and noted
 *
 * Threads: [main] throughout.
 */
#ifndef SINKONCE_RELOAD_H
#define SINKONCE_RELOAD_H

#include "admin.h"
#include "loop.h"
#include "prober.h"

/* All borrowed. */
struct reload_parts {
    char *const *environment;
    struct program *program; /* whose credentials are replaced */
    struct program_state *state;
    struct loop **loops;
    size_t loop_count;
    struct admin *admin;
    struct prober *prober; /* NULL: none */
};

void reload(const struct reload_parts *parts);
/* One line in the log for each mistake and each note. */
void reload_log_mistakes(const struct settings_mistakes *mistakes);
/* Log which certificates end soon. */
void reload_log_ends(const struct credentials *credentials);

#endif
