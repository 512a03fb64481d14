/*
 * exchange.h - the story of one request: claim, send, settle, answer.
 *
 * The service behind the data port's connections.  Threads: [loop] throughout.
 */
#ifndef SINKONCE_EXCHANGE_H
#define SINKONCE_EXCHANGE_H

#include "loop.h"

void exchange_service_init(struct loop *loop); /* fills loop->service */
void exchange_free_spares(struct loop *loop);

/* Batches that the target took and never acknowledged become doubts; to be called a few times a minute. */
void ack_sweep(struct loop *loop);

#endif
