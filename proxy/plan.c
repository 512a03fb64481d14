/* plan.c */
#include "http1.h"
