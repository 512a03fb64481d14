/*
 * line.c - one line of an export.
 */
#include "line.h"

#include <assert.h>
#include <stdio.h>

/* ---- characters ------------------------------------------------------------------------------------------------- */

/* How many bytes the character at AT has (RFC 3629); 0: these bytes are none. */
static size_t character_bytes(const unsigned char *at, size_t left)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t count = at[0] < 0x80 ? 1 : (at[0] & 0xE0) == 0xC0 ? 2 : (at[0] & 0xF0) == 0xE0 ? 3 : 4;
    uint32_t number = count == 1 ? at[0] : at[0] & (0xFFu >> (count + 1));
    if (count > left || at[0] >= 0xF8 || (at[0] & 0xC0) == 0x80)
        return 0;
    for (size_t i = 1; i < count; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        number = number << 6 | (at[i] & 0x3F);
    }
    bool is_none = number < least[count] || number > 0x10FFFF || (number >= 0xD800 && number <= 0xDFFF);
    return is_none ? 0 : count;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void put(struct line_out *out, const char *bytes, size_t byte_count)
{
    assert(byte_count <= sizeof out->bytes - out->byte_count); /* rows are bounded, and so are their lines */
    memcpy(out->bytes + out->byte_count, bytes, byte_count);
    out->byte_count += byte_count;
}

static void put_text(struct line_out *out, const char *text)
{
    put(out, text, strlen(text));
}

static void put_name(struct line_out *out, const char *name)
{
    put_text(out, out->byte_count == 1 ? "\"" : ",\"");
    put_text(out, name);
    put_text(out, "\":");
}

void line_begin(struct line_out *out, const char *kind)
{
    out->bytes[0] = '{';
    out->byte_count = 1;
    line_put_text(out, "kind", slice_of_text(kind));
}

void line_put_number(struct line_out *out, const char *name, uint64_t number)
{
    char digits[24];
    put_name(out, name);
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    put_text(out, digits);
}

void line_put_signed(struct line_out *out, const char *name, int64_t number)
{
    char digits[24];
    put_name(out, name);
    snprintf(digits, sizeof digits, "%lld", (long long)number);
    put_text(out, digits);
}

void line_put_bool(struct line_out *out, const char *name, bool is_true)
{
    put_name(out, name);
    put_text(out, is_true ? "true" : "false");
}

void line_put_text(struct line_out *out, const char *name, struct slice text)
{
    put_name(out, name);
    put_text(out, "\"");
    for (size_t i = 0, count; i < text.byte_count; i += count == 0 ? 1 : count) {
        unsigned char byte = (unsigned char)text.at[i];
        char escape[8];
        count = character_bytes((const unsigned char *)text.at + i, text.byte_count - i);
        snprintf(escape, sizeof escape, byte < 0x20 ? "\\u%04x" : "\\%c", byte);
        if (count == 0)
            put_text(out, "?");
        else if (byte < 0x20 || byte == '"' || byte == '\\')
            put_text(out, escape);
        else
            put(out, text.at + i, count);
    }
    put_text(out, "\"");
}

void line_put_hex(struct line_out *out, const char *name, struct slice bytes)
{
    static const char digits[] = "0123456789abcdef";
    put_name(out, name);
    put_text(out, "\"");
    for (size_t i = 0; i < bytes.byte_count; i++) {
        unsigned char byte = (unsigned char)bytes.at[i];
        put(out, &digits[byte >> 4], 1);
        put(out, &digits[byte & 15], 1);
    }
    put_text(out, "\"");
}

struct slice line_end(struct line_out *out)
{
    put_text(out, "}");
    return slice_of(out->bytes, out->byte_count);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

struct reader {
    const char *at, *end; /* borrowed */
    struct line_in *in;   /* borrowed */
};

static bool refuse(struct line_in *in, const char *why)
{
    if (!in->is_bad)
        snprintf(in->why, sizeof in->why, "%s", why);
    in->is_bad = true;
    return false;
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t'))
        reader->at++;
}

static bool take(struct reader *reader, char byte)
{
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != byte)
        return false;
    reader->at++;
    return true;
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t byte_count = strlen(word);
    if ((size_t)(reader->end - reader->at) < byte_count || memcmp(reader->at, word, byte_count) != 0)
        return false;
    reader->at += byte_count;
    return true;
}

static bool keep(struct line_in *in, unsigned byte)
{
    if (in->byte_count == sizeof in->bytes)
        return refuse(in, "too long");
    in->bytes[in->byte_count++] = (char)byte;
    return true;
}

/* Behind "\u": the control characters are all that an export writes so. */
static bool read_code(struct reader *reader)
{
    int code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = reader->at < reader->end ? hex_digit(*reader->at++) : -1;
        if (digit < 0)
            return refuse(reader->in, "a \\u without four hexadecimal digits");
        code = code << 4 | digit;
    }
    return code < 0x80 ? keep(reader->in, (unsigned)code)
                       : refuse(reader->in, "a \\u above 007f; such characters stand for themselves");
}

static bool read_escape(struct reader *reader)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    char name = '\0';
    if (reader->at < reader->end)
        name = *reader->at++;
    if (name == 'u')
        return read_code(reader);
    const char *at = name == '\0' ? NULL : strchr(names, name);
    return at != NULL ? keep(reader->in, (unsigned char)bytes[at - names])
                      : refuse(reader->in, "an unknown escape in a text");
}

/* The opening quote is behind us. */
static bool read_text(struct reader *reader, struct slice *ret_text)
{
    struct line_in *in = reader->in;
    size_t first = in->byte_count;
    for (;;) {
        size_t left = (size_t)(reader->end - reader->at);
        size_t count = left == 0 ? 0 : character_bytes((const unsigned char *)reader->at, left);
        if (left == 0)
            return refuse(in, "a text that does not end");
        if (count == 0 || (unsigned char)*reader->at < 0x20)
            return refuse(in, "a text with bytes that are no characters");
        if (take_word(reader, "\""))
            break;
        if (take_word(reader, "\\")) {
            if (!read_escape(reader))
                return false;
            continue;
        }
        for (; count > 0; count--)
            if (!keep(in, (unsigned char)*reader->at++))
                return false;
    }
    *ret_text = slice_of(in->bytes + first, in->byte_count - first);
    return true;
}

static bool read_number(struct reader *reader, struct line_field *field)
{
    const char *first = reader->at;
    field->type = LINE_NUMBER;
    field->is_negative = take_word(reader, "-");
    const char *digits = reader->at;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++) {
        unsigned digit = (unsigned)(*reader->at - '0');
        if (field->number > (UINT64_MAX - digit) / 10)
            return refuse(reader->in, "a number that is too large");
        field->number = field->number * 10 + digit;
    }
    bool is_padded = reader->at - digits > 1 && *digits == '0';
    return reader->at > digits && !is_padded
               ? true
               : refuse(reader->in, first == reader->at ? "no value" : "no whole number");
}

static bool read_value(struct reader *reader, struct line_field *field)
{
    skip_space(reader);
    if (take_word(reader, "\"")) {
        field->type = LINE_TEXT;
        return read_text(reader, &field->text);
    }
    bool is_true = take_word(reader, "true");
    if (is_true || take_word(reader, "false")) {
        field->type = LINE_BOOL;
        field->is_true = is_true;
        return true;
    }
    return read_number(reader, field);
}

static struct line_field *find(struct line_in *in, struct slice name)
{
    for (size_t i = 0; i < in->field_count; i++)
        if (slice_equals(in->fields[i].name, name))
            return &in->fields[i];
    return NULL;
}

static bool read_field(struct reader *reader)
{
    struct line_in *in = reader->in;
    struct line_field field = { 0 };
    if (in->field_count == LINE_FIELDS_MAX)
        return refuse(in, "too many fields");
    if (!take(reader, '"'))
        return refuse(in, "no name where one was expected");
    if (!read_text(reader, &field.name))
        return false;
    if (find(in, field.name) != NULL)
        return refuse(in, "the same field twice");
    if (!take(reader, ':'))
        return refuse(in, "no colon behind a name");
    if (!read_value(reader, &field))
        return false;
    in->fields[in->field_count++] = field;
    return true;
}

bool line_read(struct line_in *in, struct slice line)
{
    struct reader reader = { line.at, line.at + line.byte_count, in };
    in->field_count = in->byte_count = 0;
    in->is_bad = false;
    in->why[0] = '\0';
    if (line.byte_count == 0 || !take(&reader, '{'))
        return refuse(in, "no JSON object");
    do {
        if (!read_field(&reader))
            return false;
    } while (take(&reader, ','));
    if (!take(&reader, '}'))
        return refuse(in, "neither a comma nor the end of the object");
    skip_space(&reader);
    return reader.at == reader.end ? true : refuse(in, "something behind the object");
}

/* ---- fields ----------------------------------------------------------------------------------------------------- */

static void refuse_field(struct line_in *in, const char *name, const char *what)
{
    char why[96];
    snprintf(why, sizeof why, "\"%s\" %s", name, what);
    refuse(in, why);
}

/* NULL: it is missing or of another type, and the line is bad. */
static struct line_field *take_field(struct line_in *in, const char *name, enum line_type type)
{
    struct line_field *field = find(in, slice_of_text(name));
    if (field == NULL || field->type != type) {
        refuse_field(in, name, field == NULL ? "is missing" : "is of another type");
        return NULL;
    }
    field->is_taken = true;
    return field;
}

bool line_has(struct line_in *in, const char *name)
{
    return find(in, slice_of_text(name)) != NULL;
}

uint64_t line_number(struct line_in *in, const char *name, uint64_t low, uint64_t high)
{
    const struct line_field *field = take_field(in, name, LINE_NUMBER);
    if (field == NULL)
        return low;
    if (!field->is_negative && field->number >= low && field->number <= high)
        return field->number;
    refuse_field(in, name, "is out of its range");
    return low;
}

int64_t line_offset(struct line_in *in, const char *name, int64_t lowest)
{
    const struct line_field *field = find(in, slice_of_text(name));
    if (lowest < 0 && field != NULL && field->type == LINE_NUMBER && field->is_negative &&
        field->number == 1) {
        (void)take_field(in, name, LINE_NUMBER);
        return -1;
    }
    return (int64_t)line_number(in, name, 0, INT64_MAX);
}

bool line_bool(struct line_in *in, const char *name)
{
    const struct line_field *field = take_field(in, name, LINE_BOOL);
    return field != NULL && field->is_true;
}

void line_text(struct line_in *in, const char *name, char text[], size_t bytes_max)
{
    const struct line_field *field = take_field(in, name, LINE_TEXT);
    text[0] = '\0';
    if (field == NULL)
        return;
    if (field->text.byte_count >= bytes_max || memchr(field->text.at, '\0', field->text.byte_count) != NULL) {
        refuse_field(in, name, "is too long, or holds a zero");
        return;
    }
    memcpy(text, field->text.at, field->text.byte_count);
    text[field->text.byte_count] = '\0';
}

size_t line_hex(struct line_in *in, const char *name, uint8_t bytes[], size_t bytes_max)
{
    const struct line_field *field = take_field(in, name, LINE_TEXT);
    size_t count = field == NULL ? 0 : field->text.byte_count / 2;
    if (field == NULL || field->text.byte_count % 2 != 0 || count > bytes_max) {
        refuse_field(in, name, "is no hexadecimal, or too long");
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        int high = hex_digit(field->text.at[2 * i]), low = hex_digit(field->text.at[2 * i + 1]);
        if (high < 0 || low < 0) {
            refuse_field(in, name, "is no hexadecimal");
            return 0;
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return count;
}

void line_refuse(struct line_in *in, const char *why)
{
    refuse(in, why);
}

/* A name of the file's own, for a sentence that may be read on a terminal. */
static void name_write(char room[], size_t room_bytes, struct slice name)
{
    size_t byte_count = name.byte_count < room_bytes ? name.byte_count : room_bytes - 1;
    for (size_t i = 0; i < byte_count; i++)
        room[i] = name.at[i] >= ' ' && name.at[i] <= '~' ? name.at[i] : '?';
    room[byte_count] = '\0';
}

bool line_is_good(struct line_in *in)
{
    for (size_t i = 0; i < in->field_count; i++) {
        const struct line_field *field = &in->fields[i];
        char name[32];
        name_write(name, sizeof name, field->name);
        if (!field->is_taken && !in->is_bad)
            refuse_field(in, name, "does not belong here");
    }
    return !in->is_bad;
}
