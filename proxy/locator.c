/* locator.c */
#include "http1.h"
