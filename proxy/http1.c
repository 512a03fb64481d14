/* http1.c */
#include "http1.h"
