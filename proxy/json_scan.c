/* json_scan.c */
#include "http1.h"
