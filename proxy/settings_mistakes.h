/*
 * settings_mistakes.h - collects what is wrong with the settings, one sentence a line.
 */
#ifndef SINKONCE_SETTINGS_MISTAKES_H
#define SINKONCE_SETTINGS_MISTAKES_H

#include "settings.h"

/* Both keep one line without control bytes, cut after 1 KiB; the sentence begins with the setting's name. */
void settings_mistake(struct settings_mistakes *mistakes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void settings_note(struct settings_mistakes *mistakes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
