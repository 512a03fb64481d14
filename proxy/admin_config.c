/*
 * admin_config.c - every setting with its value, where the value comes from, and its default.
 *
 * The rows are those of tbl/settings.h, and the hiding of secrets is theirs (settings_visit).
 */
#include "admin_call.h"
#include <unistd.h>

static void setting_add(const struct settings_view *view, void *context)
{
    json_t *json = json_pack("{s:s, s:s, s:o, s:s, s:o, s:b, s:s}", "name", view->name, "group", view->group,
                             "value", admin_text_json(view->value), "source", view->source, "default",
                             view->default_text == NULL ? json_null() : admin_text_json(view->default_text),
                             "secret", (int)view->is_secret, "meaning", view->words);
    json_array_append_new(context, json);
}

/* The environment is read at start and never written, so that what it says still is what the settings were read from. */
void admin_on_config(struct admin_call *call)
{
    json_t *rows = json_array();
    settings_visit(call->admin->parts.settings, environ, setting_add, rows);
    admin_answer_json(call, 200, json_pack("{s:o}", "settings", rows));
}
