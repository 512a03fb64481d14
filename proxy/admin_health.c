/*
 * admin_health.c - probes and version.
 *
 * None of the probes looks at the target: a target that is down must not have the sidecar restarted, and its records
 * wait with the connector.  A full ledger stays ready, because duplicates are still answered; a failing one does not.
 */
#include "admin_call.h"
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include "admin_query.h"

struct check {
    const char *name;
    bool is_fine;
};

/* "ok", or the names of what is not; with ?verbose a line for each check. */
static void answer_checks(struct admin_call *call, const struct check checks[], size_t check_count)
{
    char *text = NULL;
    size_t bytes;
    bool is_fine = true;
    bool is_verbose = admin_query_has(call->request->head.query, "verbose");
    FILE *out = open_memstream(&text, &bytes);
    for (size_t i = 0; i < check_count; i++) {
        is_fine = is_fine && checks[i].is_fine;
        if (out != NULL && (is_verbose || !checks[i].is_fine))
            fprintf(out, "%s: %s\n", checks[i].name, checks[i].is_fine ? "ok" : "failed");
    }
    if (out != NULL) {
        if (is_fine)
            fputs("ok\n", out);
        if (fclose(out) != 0) {
            free(text);
            text = NULL;
        }
    }
    admin_answer_text(call, is_fine ? 200 : 503, "text/plain; charset=utf-8", text);
}

/* That this is answered at all proves that the main loop turns. */
void admin_on_livez(struct admin_call *call)
{
    const struct check checks[] = { { "main loop", true } };
    answer_checks(call, checks, 1);
}

void admin_on_readyz(struct admin_call *call)
{
    struct store_figures figures;
    const struct program_state *state = call->admin->parts.state;
    store_figures_get(call->admin->parts.store, &figures);
    const struct check checks[] = { { "started", state->is_started },
                                    { "serving", state->is_ready },
                                    { "not draining", !state->is_draining },
                                    { "ledger", !figures.is_failing } };
    answer_checks(call, checks, sizeof checks / sizeof checks[0]);
}

void admin_on_startupz(struct admin_call *call)
{
    const struct check checks[] = { { "started", call->admin->parts.state->is_started } };
    answer_checks(call, checks, 1);
}

void admin_on_version(struct admin_call *call)
{
    admin_answer_json(call, 200,
                      json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", "sinkonce", "version", SINKONCE_VERSION,
                                "libevent", event_get_version(), "jansson", jansson_version_str(), "compiler",
                                __VERSION__));
}
