/* settings.c */
#include "http1.h"
