/*
 * failing_calls.h - the Nth call of the system or of LMDB fails: for tests of the ledger, linked with failing_calls.
 *
 * What the objects of the program ask of the file system, of the clock's neighbours (threads, random numbers) and of the
 * library counts in one row with their allocations; failing_memory.h says which one fails.  A commit counts twice: it may
 * fail before anything of it is on disk, or behind all of it.
 *
 * Nothing is flushed and the disk is not waited for, since no power is cut here.
 */
#ifndef SINKONCE_TESTS_FAILING_CALLS_H
#define SINKONCE_TESTS_FAILING_CALLS_H

#include <stdint.h>
#include "failing_memory.h"

/* The number that a call fails with: EIO until another is named. */
void calls_error(int error);
/* From now on no commit reaches the disk, as if the process were dead already; or it is alive again. */
void calls_die(bool is_dead);
/* The file system that statfs() tells of, by its number; 0: the true one. */
void calls_fs_type(long fs_type);
/* The program's clocks go on from so much later. */
void calls_skip_ms(uint64_t ms);

#endif
