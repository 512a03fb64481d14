/*
 * test_damage.c - rows that a broken disk or a foreign hand changed: refused or lived with, never a crash or an
 * assertion.  What is damaged may answer wrongly; it must not take the process with it.
 */
#include "busy.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ROUNDS = 4000 };

static void test_damaged_rows_are_refused_or_lived_with(void **state)
{
    struct rows *good = busy_ledger();
    unsigned which = 5;
    size_t refused_count = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct rows *rows = rows_mem_copy(good);
        for (int i = 0; i < 1 + round % 3; i++)
            rows_mem_damage(rows, &which);
        struct machine *machine = busy_begin(rows, 2);
        refused_count += machine == NULL;
        if (machine != NULL) {
            machine_recover(machine);
            for (int64_t i = 0; i < 8; i++)
                busy_work(machine, i * 30000);
            busy_ask_everything(machine);
            machine_end(machine);
            machine_free(machine);
        }
        rows_mem_free(rows);
    }
    assert_true(refused_count > ROUNDS / 20 && refused_count < ROUNDS);
    rows_mem_free(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_damaged_rows_are_refused_or_lived_with) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
