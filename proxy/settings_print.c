/* settings_print.c */
#include "http1.h"
