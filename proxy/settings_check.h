/*
 * settings_check.h - what two or more settings say together.
 */
#ifndef SINKONCE_SETTINGS_CHECK_H
#define SINKONCE_SETTINGS_CHECK_H

#include "settings_rows.h"

/* Add a line for each combination that cannot work.  Rows that are wrong by themselves are left alone.  False: there
 * was one. */
MUST_CHECK bool settings_check(const struct settings *settings, const struct settings_origins *origins,
                               struct settings_mistakes *mistakes);
/* Add a note for each setting that works, but gives a promise away. */
void settings_check_risks(const struct settings *settings, struct settings_mistakes *mistakes);

/* Can only this machine reach ADDRESS? */
bool listen_address_is_local(const struct listen_address *address);

#endif
