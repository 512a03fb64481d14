/*
 * prober_judge.h - what an answer to a probe proves.
 *
 * A decider.  Only a clear answer counts: one rule holds and the other does not.
 */
#ifndef SINKONCE_PROBER_JUDGE_H
#define SINKONCE_PROBER_JUDGE_H

#include "settings.h"

enum probe_answer { PROBE_UNCLEAR, PROBE_SAYS_APPLIED, PROBE_SAYS_ABSENT };

/* BODY is the whole body; nothing when it was cut, coded or left out: then no JSON rule holds. */
enum probe_answer probe_judge(const struct settings *settings, int status, struct slice body);

#endif
