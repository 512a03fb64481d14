/*
 * settings_check.c - combinations: wrong ones, and risky ones.
 *
 * Pure but for the certificates and keys that are named: they are read, and must be good today.
 */
#include "settings_check.h"
#include "settings_mistakes.h"
#include "tls_use.h"
#include <strings.h>
#include <time.h>

struct check {
    const struct settings *settings;
    const struct settings_origins *origins;
    struct settings_mistakes *mistakes;
    bool is_good;
};

#define WRONG(check, ...) ((check)->is_good = false, settings_mistake((check)->mistakes, __VA_ARGS__))

static bool is_set(const char *text)
{
    return text != NULL && *text != '\0';
}

static bool is_wildcard(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcasecmp(host, "localhost") == 0;
}

bool listen_address_is_local(const struct listen_address *address)
{
    return address->is_unix || is_loopback(address->host);
}

/* Would binding B fail because A is bound?  Linux refuses a port that a wildcard address already listens on. */
static bool is_same_address(const struct listen_address *a, const struct listen_address *b)
{
    if (a->is_unix != b->is_unix)
        return false;
    if (a->is_unix)
        return strcmp(a->host, b->host) == 0;
    return a->port != 0 && a->port == b->port &&
           (is_wildcard(a->host) || is_wildcard(b->host) || strcasecmp(a->host, b->host) == 0);
}

static void check_addresses(struct check *check)
{
    const struct listen_address *listen = &check->settings->listen, *admin = &check->settings->admin_listen;
    if (listen->text != NULL && admin->text != NULL && is_same_address(listen, admin))
        WRONG(check, "SINKONCE_ADMIN_LISTEN must be another address than SINKONCE_LISTEN (%s and %s)",
              admin->text, listen->text);
}

/* A target that is one of our own ports sends every request round and round. */
static void check_own_target(struct check *check, const char *name, const struct listen_address *address)
{
    const struct target_url *target = &check->settings->target;
    if (target->text == NULL || address->text == NULL || address->is_unix || target->port != address->port)
        return;
    const bool is_here =
        strcasecmp(target->host, address->host) == 0 ||
        (is_loopback(target->host) && (is_wildcard(address->host) || is_loopback(address->host)));
    if (is_here)
        WRONG(check, "SINKONCE_TARGET must not be sinkonce's own address: %s is %s", name, address->text);
}

static void check_statuses(struct check *check)
{
    for (int status = 0; status < 640; status++) {
        if (status_set_has(&check->settings->applied_status, status) &&
            status_set_has(&check->settings->not_applied_status, status)) {
            WRONG(check,
                  "SINKONCE_NOT_APPLIED_STATUS and SINKONCE_APPLIED_STATUS must not share a status (%d)",
                  status);
            return;
        }
    }
}

/* The largest request fits alone, if it is compressed too: its body is here in both forms. */
static void check_bodies(struct check *check)
{
    const struct settings *settings = check->settings;
    if (check->origins->is_wrong[ROW_MAX_BODY] || check->origins->is_wrong[ROW_MAX_BODIES])
        return;
    if (settings->all_body_bytes_max / 2 < settings->body_bytes_max)
        WRONG(check,
              "SINKONCE_MAX_BODIES must be at least twice SINKONCE_MAX_BODY: a compressed body is kept "
              "beside the opened one");
}

static bool has_topic_in_format(const struct id_format *format)
{
    for (size_t i = 0; i < format->part_count; i++) {
        if (format->parts[i] == ID_TOPIC)
            return true;
    }
    return false;
}

static void check_composite(struct check *check)
{
    const struct settings *settings = check->settings;
    const bool has_id = settings->id.count > 0, has_format = settings->id_format.text != NULL;
    if (check->origins->is_wrong[ROW_ID] || check->origins->is_wrong[ROW_ID_FORMAT])
        return;
    if (has_id && !has_format)
        WRONG(check, "SINKONCE_ID needs SINKONCE_ID_FORMAT too, as in {topic}+{partition}+{offset}");
    if (has_format && !has_id)
        WRONG(check, "SINKONCE_ID_FORMAT needs SINKONCE_ID too: the place whose value has this format");
    if (has_id && has_format && !has_topic_in_format(&settings->id_format) && settings->topic.count == 0 &&
        !check->origins->is_wrong[ROW_TOPIC])
        WRONG(check,
              "SINKONCE_ID_FORMAT has no {topic}: SINKONCE_TOPIC must say where it is, as in const:orders");
}

/* A part of a shape that another shape was chosen over would be passed by in silence. */
static void check_shape(struct check *check)
{
    const struct settings *settings = check->settings;
    const bool has_envelope = settings->envelope.count > 0, is_auto = settings->shape == SHAPE_AUTO;
    if (check->origins->is_wrong[ROW_SHAPE] || check->origins->is_wrong[ROW_ENVELOPE])
        return;
    if (settings->shape == SHAPE_ENVELOPE && !has_envelope)
        WRONG(check, "SINKONCE_SHAPE=envelope needs SINKONCE_ENVELOPE too, as in /rows");
    if (has_envelope && settings->shape != SHAPE_ENVELOPE && !is_auto)
        WRONG(check, "SINKONCE_ENVELOPE needs SINKONCE_SHAPE to be envelope or auto");
    if ((is_set(settings->prefix) || is_set(settings->suffix)) && settings->shape != SHAPE_SEPARATED)
        WRONG(check, "SINKONCE_PREFIX and SINKONCE_SUFFIX need SINKONCE_SHAPE=separated");
}

/* An expired certificate of ours: whoever checks it does not speak to us. */
static void check_certificate_times(struct check *check, enum tls_use use, const struct tls *tls)
{
    const int64_t now_s = (int64_t)time(NULL);
    char words[SETTINGS_WORDS_MAX];
    for (enum tls_part part = 0; part < TLS_PARTS; part++) {
        const int64_t end_s = tls_expiry_s(tls, part);
        tls_end_words(use, part, end_s, now_s, words, sizeof words);
        if (part == TLS_CERTIFICATE && use != TLS_USE_TARGET && tls_end_of(end_s, now_s) == TLS_END_PAST)
            WRONG(check, "%s", words);
        else if (words[0] != '\0')
            settings_note(check->mistakes, "%s", words);
    }
    if (tls_begin_s(tls) > now_s)
        settings_note(check->mistakes, "%s: its certificate is not valid yet; is the clock right?",
                      tls_uses[use].settings[TLS_CERTIFICATE]);
}

static void check_tls_files(struct check *check, enum tls_use use, const struct tls_files *files)
{
    struct tls_fault fault;
    struct tls *tls = tls_new(files, &fault);
    if (tls == NULL) {
        WRONG(check, "%s %s", tls_uses[use].settings[fault.part], fault.words);
        return;
    }
    check_certificate_times(check, use, tls);
    if (tls_is_key_exposed(tls))
        settings_note(check->mistakes, "%s can be read by every user of this machine (%s): take that away",
                      tls_uses[use].settings[TLS_KEY], files->paths[TLS_KEY]);
    tls_free(tls);
}

static void check_tls(struct check *check, enum tls_use use)
{
    const struct tls_files files = tls_files_of(check->settings, use);
    const char *const *names = tls_uses[use].settings;
    const bool has_cert = is_set(files.paths[TLS_CERTIFICATE]), has_key = is_set(files.paths[TLS_KEY]);
    const bool is_ca_alone = files.is_server && is_set(files.paths[TLS_CA]) && !has_cert;
    if (has_cert && !has_key)
        WRONG(check, "%s needs %s too; it may be the same file", names[TLS_CERTIFICATE], names[TLS_KEY]);
    if (has_key && !has_cert)
        WRONG(check, "%s needs %s too; it may be the same file", names[TLS_KEY], names[TLS_CERTIFICATE]);
    if (is_ca_alone)
        WRONG(check, "%s needs %s too: without TLS nobody can show a certificate", names[TLS_CA],
              names[TLS_CERTIFICATE]);
    if (has_cert == has_key && !is_ca_alone && !tls_files_are_none(&files))
        check_tls_files(check, use, &files);
    if (use == TLS_USE_TARGET && is_set(files.password) && !has_key)
        WRONG(check, "SINKONCE_TARGET_KEY_PASSWORD needs SINKONCE_TARGET_KEY_FILE too");
}

static bool is_status_shared(const struct status_set *a, const struct status_set *b)
{
    for (size_t i = 0; i < sizeof a->bits / sizeof a->bits[0]; i++) {
        if ((a->bits[i] & b->bits[i]) != 0)
            return true;
    }
    return false;
}

/* One answer must not say both yes and no: then no record would ever be resolved. */
static bool is_rule_shared(const struct probe_rule *applied, const struct probe_rule *absent)
{
    if (applied->kind != absent->kind)
        return false;
    return applied->kind == PROBE_RULE_STATUS
               ? is_status_shared(&applied->statuses, &absent->statuses)
               : strcmp(applied->pointer.items[0].text, absent->pointer.items[0].text) == 0;
}

static void check_probe(struct check *check)
{
    const struct settings *settings = check->settings;
    const struct probe_rule *applied = &settings->probe_applied, *absent = &settings->probe_absent;
    const bool has_json = applied->kind != PROBE_RULE_STATUS || absent->kind != PROBE_RULE_STATUS;
    if (settings->in_doubt == IN_DOUBT_PROBE && settings->probe_url.text == NULL &&
        !check->origins->is_wrong[ROW_PROBE_URL])
        WRONG(check, "SINKONCE_IN_DOUBT=probe needs SINKONCE_PROBE_URL too: where the target can be asked");
    if (check->origins->is_wrong[ROW_PROBE_APPLIED] || check->origins->is_wrong[ROW_PROBE_ABSENT])
        return;
    if (is_rule_shared(applied, absent))
        WRONG(check, "SINKONCE_PROBE_APPLIED and SINKONCE_PROBE_ABSENT must not both hold of one answer");
    if (has_json && settings->probe_method == PROBE_HEAD)
        WRONG(check, "SINKONCE_PROBE_METHOD=HEAD gets no body for a json: rule to look at");
}

bool settings_check(const struct settings *settings, const struct settings_origins *origins,
                    struct settings_mistakes *mistakes)
{
    struct check check = { settings, origins, mistakes, true };
    check_addresses(&check);
    check_own_target(&check, "SINKONCE_LISTEN", &settings->listen);
    check_own_target(&check, "SINKONCE_ADMIN_LISTEN", &settings->admin_listen);
    check_composite(&check);
    check_shape(&check);
    check_statuses(&check);
    check_bodies(&check);
    for (enum tls_use use = 0; use < TLS_USES; use++)
        check_tls(&check, use);
    check_probe(&check);
    return check.is_good;
}

static void check_promises(const struct settings *settings, struct settings_mistakes *mistakes)
{
    if (settings->mode == MODE_OFF)
        settings_note(mistakes,
                      "SINKONCE_MODE=off: nothing is recorded or dropped, duplicates reach the target");
    if (settings->in_doubt == IN_DOUBT_RETRY)
        settings_note(mistakes, "SINKONCE_IN_DOUBT=retry: a record in doubt may reach the target twice");
    if (settings->in_doubt == IN_DOUBT_ASSUME_APPLIED)
        settings_note(mistakes,
                      "SINKONCE_IN_DOUBT=assume-applied: a record in doubt may never reach the target");
    if (settings->probe_url.text != NULL && settings->in_doubt != IN_DOUBT_PROBE)
        settings_note(mistakes, "SINKONCE_PROBE_URL is not used: SINKONCE_IN_DOUBT is not probe");
}

/* A token is as good as its way. */
static void check_client_token(const struct settings *settings, struct settings_mistakes *mistakes)
{
    const struct listen_address *listen = &settings->listen;
    if (is_set(settings->client_token) && !is_set(settings->listen_cert_file) && listen->text != NULL &&
        !listen_address_is_local(listen))
        settings_note(mistakes,
                      "SINKONCE_CLIENT_TOKEN crosses the network as it is: SINKONCE_LISTEN can be reached "
                      "from other machines and has no SINKONCE_LISTEN_CERT_FILE");
}

void settings_check_risks(const struct settings *settings, struct settings_mistakes *mistakes)
{
    const struct listen_address *admin = &settings->admin_listen;
    const bool has_tls = is_set(settings->target_ca_file) || is_set(settings->target_cert_file);
    check_promises(settings, mistakes);
    check_client_token(settings, mistakes);
    if (!settings->is_target_verified)
        settings_note(mistakes, "SINKONCE_TARGET_VERIFY=off: anybody on the way can be the target");
    if (settings->target.text != NULL && !settings->target.is_https && has_tls)
        settings_note(mistakes, "SINKONCE_TARGET begins with http://: the TLS files are not used");
    if (admin->text != NULL && !listen_address_is_local(admin) && !is_set(settings->admin_token))
        settings_note(
            mistakes,
            "SINKONCE_ADMIN_LISTEN can be reached from other machines and SINKONCE_ADMIN_TOKEN is not set: "
            "they can read everything and change nothing");
}
