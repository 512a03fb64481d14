/*
 * process.h - what the process needs of the system before it serves: descriptors, memory, and signals that come too early.
 */
#ifndef SINKONCE_PROCESS_H
#define SINKONCE_PROCESS_H

#include <stdbool.h>

/* [main] Once, before any thread is started.  From now on SIGTERM and SIGINT end the process at once, SIGHUP waits. */
void process_prepare(void);
/* [main] There is an event for SIGHUP now: what waited is told to it. */
void process_hangup_release(void);
/* [main] It will be freed now, as will those for SIGTERM and SIGINT: all is again as it was prepared. */
void process_hangup_hold(void);

#endif
