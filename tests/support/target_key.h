/*
 * target_key.h - which records a request of the counting target carries.
 */
#ifndef TARGET_KEY_H
#define TARGET_KEY_H

#include "target_request.h"

#define TARGET_KEY_MAX 320 /* a topic of 249 bytes, two numbers, slashes, and some path */

/* Told each record in order: its key ("topic/partition/offset", or the path where no coordinates are found)
 * and its own bytes. */
typedef void target_key_fn(void *context, const char *key, struct target_text record);

/* Calls FOUND once per record: the actions of a bulk request, named by an _id TOPIC+PARTITION+OFFSET or by their source;
 * else the JSON objects of the body that lie in no other object, an array's elements and lines alike; else the body as
 * one record.  x-kafka-* headers name the whole body. */
void target_keys(const struct target_request *request, target_key_fn *found, void *context);

#endif
