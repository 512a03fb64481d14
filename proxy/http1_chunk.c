/* http1_chunk.c */
#include "http1.h"
