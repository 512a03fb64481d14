/* settings_parse.c */
#include "http1.h"
