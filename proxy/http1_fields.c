/* http1_fields.c */
#include "http1.h"
