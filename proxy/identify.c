/* identify.c */
#include "http1.h"
