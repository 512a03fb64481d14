/*
 * loop_library.h - what libevent has to say goes into our log, and its end of all hope ends the process at once.
 *
 * Left to itself it writes bare lines to stderr, and on some errors calls exit(), which runs the handlers of a process
 * whose other threads still serve.
 */
#ifndef SINKONCE_LOOP_LIBRARY_H
#define SINKONCE_LOOP_LIBRARY_H

void loop_library_init(void); /* [main] before the first event base */

#endif
