/*
 * questions.h - the ways of machine_ask(), and what they share.
 */
#ifndef SINKONCE_STORE_QUESTIONS_H
#define SINKONCE_STORE_QUESTIONS_H

#include "machine_state.h"

enum { EVENTS_EACH_MAX = 100 /* more alike of one change are told in one event for all */ };

/* How many rows are wanted at most. */
size_t question_row_limit(const struct question *question);
/* Room for COUNT rows; false: no memory, and the question has failed. */
MUST_CHECK bool question_make_room(struct question *question, size_t count, size_t row_bytes);
void doubt_row_fill(struct doubt_row *row, const struct open_range *range);
bool question_is_about(const struct question *question, const struct partition *partition);
/* Where the partitions of the question's topic begin and end among all by name, from behind AFTER_TOPIC and
 * AFTER_PARTITION on ("": from the start); both ends of none are equal. */
void question_partitions(struct machine *machine, const struct question *question, const char *after_topic,
                         int32_t after_partition, size_t *ret_from, size_t *ret_to);

/* questions_records.c */
void ask_record(struct machine *machine, struct question *question);
void ask_intervals(struct machine *machine, struct question *question);
void ask_probes(struct machine *machine, struct question *question);
enum record_state record_state_at(struct machine *machine, const struct partition *partition, int64_t offset);
/* replays.c */
void ask_replays(struct machine *machine, struct question *question);
void do_replay_open(struct machine *machine, struct question *question);
void do_replay_close(struct machine *machine, struct question *question);
/* forget.c */
void do_forget(struct machine *machine, struct question *question);
/* resolve.c */
void do_resolve_one(struct machine *machine, struct question *question);
void do_resolve(struct machine *machine, struct question *question);

#endif
