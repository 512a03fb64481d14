/*
 * pages.c - a walk over the pages of an LMDB file, which believes nothing.
 *
 * Source of the layout: LMDB 0.9.24, mdb.c, MDB_page, MDB_node, MDB_meta and MDB_db on a machine of 64 bits.
 */
#include "pages.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAGE_HEAD_BYTES = 16,
    NODE_HEAD_BYTES = 8,
    META_BYTES = 152, /* of a page, its header included */
    PAGE_BYTES_MIN = 4096,
    PAGE_BYTES_MAX = 32768, /* the library's own limit */
    KEY_BYTES_LIMIT = 511,
    DEPTH_MAX = 32, /* as the library's own stack */
    FLAG_BRANCH = 1,
    FLAG_LEAF = 2,
    FLAG_OVERFLOW = 4,
    FLAG_META = 8,
    NODE_IS_BIG = 1,
    TREE_KEYS_ARE_INTEGERS = 8,
    TREE_FLAGS_MASK = 0x7f, /* what changes how a tree is read; the rest are the environment's */
};
static const uint32_t magic = 0xBEEFC0DE, version = 1;
static const uint64_t no_page = UINT64_MAX;

struct tree {
    uint16_t flags, depth;
    uint64_t branch_count, leaf_count, overflow_count, entry_count, root;
};

struct meta {
    uint32_t page_bytes;
    struct tree free, rows;
    uint64_t last_page, transaction;
};

struct walk {
    int fd;
    bool has_failed; /* errno says why */
    const struct meta *meta;
    uint8_t *seen;    /* owned: a bit for each page */
    uint8_t *pages;   /* owned: one for each level */
    uint8_t *big;     /* owned: room for a list of free pages that has pages of its own */
    size_t big_bytes; /* of that room */
    bool is_free;     /* the tree of free pages, not that of rows */
    struct tree met;  /* counted on the way */
    uint8_t last_key[KEY_BYTES_LIMIT];
    size_t last_key_bytes;
    bool has_last_key;
};

static uint16_t u16_at(const uint8_t *at)
{
    uint16_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static uint32_t u32_at(const uint8_t *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static uint64_t u64_at(const uint8_t *at)
{
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

/* What is behind the end of the file reads as zeros.  False: errno says why. */
static bool read_at(int fd, uint8_t *bytes, size_t byte_count, uint64_t at)
{
    memset(bytes, 0, byte_count);
    while (byte_count > 0) {
        ssize_t count = pread(fd, bytes, byte_count, (off_t)at);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count == 0;
        bytes += count;
        byte_count -= (size_t)count;
        at += (uint64_t)count;
    }
    return true;
}

/* ---- the two metas ---------------------------------------------------------------------------------------------- */

static struct tree tree_at(const uint8_t *at)
{
    return (struct tree){ .flags = u16_at(at + 4),
                          .depth = u16_at(at + 6),
                          .branch_count = u64_at(at + 8),
                          .leaf_count = u64_at(at + 16),
                          .overflow_count = u64_at(at + 24),
                          .entry_count = u64_at(at + 32),
                          .root = u64_at(at + 40) };
}

static bool is_meta(const uint8_t page[META_BYTES])
{
    return (u16_at(page + 10) & FLAG_META) != 0 && u32_at(page + 16) == magic && u32_at(page + 20) == version;
}

static struct meta meta_at(const uint8_t page[META_BYTES])
{
    return (struct meta){ .page_bytes = u32_at(page + 40),
                          .free = tree_at(page + 40),
                          .rows = tree_at(page + 88),
                          .last_page = u64_at(page + 136),
                          .transaction = u64_at(page + 144) };
}

static bool is_page_size(uint32_t byte_count)
{
    return byte_count >= PAGE_BYTES_MIN && byte_count <= PAGE_BYTES_MAX &&
           (byte_count & (byte_count - 1)) == 0;
}

/* The last pages of a file may never have been written, when one transaction took and left them; not so many, though,
 * as a damaged number may say. */
static bool is_last_page(int fd, const struct meta *meta)
{
    enum { SPARE_PAGES = 4096 };
    struct stat file;
    return fstat(fd, &file) == 0 && meta->last_page >= 1 &&
           meta->last_page / 2 <= (uint64_t)file.st_size / meta->page_bytes + SPARE_PAGES;
}

/* The one that the library will choose. */
static enum pages_status choose_meta(int fd, struct meta *ret_meta)
{
    uint8_t page[META_BYTES];
    if (!read_at(fd, page, sizeof page, 0))
        return PAGES_FAILED;
    if (!is_meta(page))
        return PAGES_UNKNOWN;
    struct meta first = meta_at(page);
    if (!is_page_size(first.page_bytes))
        return PAGES_DAMAGED;
    if (!read_at(fd, page, sizeof page, first.page_bytes))
        return PAGES_FAILED;
    if (!is_meta(page))
        return PAGES_UNKNOWN;
    struct meta second = meta_at(page);
    *ret_meta = second.transaction > first.transaction ? second : first;
    bool is_sane = second.page_bytes == first.page_bytes && is_last_page(fd, ret_meta) &&
                   (ret_meta->free.flags & TREE_FLAGS_MASK) == TREE_KEYS_ARE_INTEGERS &&
                   (ret_meta->rows.flags & TREE_FLAGS_MASK) == 0;
    return is_sane ? PAGES_SOUND : PAGES_DAMAGED;
}

/* ---- pages ------------------------------------------------------------------------------------------------------ */

/* A page that may exist and was not met before. */
static bool take_page(struct walk *walk, uint64_t number)
{
    if (number < 2 || number > walk->meta->last_page)
        return false;
    uint8_t bit = (uint8_t)(1u << (number % 8)), *cell = &walk->seen[number / 8];
    bool is_new = (*cell & bit) == 0;
    *cell |= bit;
    return is_new;
}

static bool load_page(struct walk *walk, uint64_t number, uint8_t *page, uint16_t flags)
{
    if (!take_page(walk, number))
        return false;
    if (!read_at(walk->fd, page, walk->meta->page_bytes, number * walk->meta->page_bytes)) {
        walk->has_failed = true;
        return false;
    }
    return u64_at(page) == number && u16_at(page + 10) == flags;
}

static size_t node_count_of(const uint8_t *page)
{
    return (u16_at(page + 12) - PAGE_HEAD_BYTES) / 2u;
}

/* Where nodes may be is well-formed. */
static bool has_frame(const struct walk *walk, const uint8_t *page)
{
    uint32_t lower = u16_at(page + 12), upper = u16_at(page + 14);
    return lower > PAGE_HEAD_BYTES && lower % 2 == 0 && lower <= upper && upper <= walk->meta->page_bytes;
}

struct node {
    const uint8_t *key, *value; /* in the page */
    size_t key_bytes, value_bytes;
    uint16_t flags;
    uint64_t child; /* of a branch */
};

/* False: it does not lie inside of its page. */
static bool node_read(const struct walk *walk, const uint8_t *page, size_t index, bool is_branch,
                      struct node *ret)
{
    size_t at = u16_at(page + PAGE_HEAD_BYTES + 2 * index), page_bytes = walk->meta->page_bytes;
    if (at < u16_at(page + 14) || at % 2 != 0 || at + NODE_HEAD_BYTES > page_bytes)
        return false;
    const uint8_t *node = page + at;
    uint64_t low = u16_at(node) | (uint64_t)u16_at(node + 2) << 16;
    *ret = (struct node){ .key = node + NODE_HEAD_BYTES,
                          .key_bytes = u16_at(node + 6),
                          .flags = u16_at(node + 4) };
    ret->value = ret->key + ret->key_bytes;
    if (is_branch)
        ret->child = low | (uint64_t)ret->flags << 32;
    else
        ret->value_bytes = (size_t)low;
    size_t stored = is_branch ? 0 : (ret->flags & NODE_IS_BIG) != 0 ? sizeof(uint64_t) : ret->value_bytes;
    return ret->key_bytes <= KEY_BYTES_LIMIT && (is_branch || (ret->flags & ~NODE_IS_BIG) == 0) &&
           stored <= page_bytes && at + NODE_HEAD_BYTES + ret->key_bytes + stored <= page_bytes;
}

/* Below 0: A comes before B. */
static int compare_keys(const struct walk *walk, const uint8_t *a, size_t a_bytes, const uint8_t *b,
                        size_t b_bytes)
{
    if (walk->is_free) {
        uint64_t number_a = u64_at(a), number_b = u64_at(b);
        return (number_a > number_b) - (number_a < number_b);
    }
    int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static bool is_key(const struct walk *walk, const struct node *node)
{
    return walk->is_free ? node->key_bytes == sizeof(uint64_t) : node->key_bytes > 0;
}

/* Keys ascend over the whole tree. */
static bool follow_key(struct walk *walk, const struct node *node)
{
    if (!is_key(walk, node) || (walk->has_last_key && compare_keys(walk, walk->last_key, walk->last_key_bytes,
                                                                   node->key, node->key_bytes) >= 0))
        return false;
    memcpy(walk->last_key, node->key, node->key_bytes);
    walk->last_key_bytes = node->key_bytes;
    walk->has_last_key = true;
    return true;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* The pages of a value that has its own: the first has a header, the others nothing but its bytes. */
static bool check_big(struct walk *walk, const struct node *node)
{
    uint64_t first = u64_at(node->value), page_bytes = walk->meta->page_bytes;
    uint64_t count = (PAGE_HEAD_BYTES - 1 + node->value_bytes) / page_bytes + 1;
    uint8_t head[PAGE_HEAD_BYTES];
    if (first < 2 || first > walk->meta->last_page || count > walk->meta->last_page - first + 1)
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!take_page(walk, first + i))
            return false;
    if (!read_at(walk->fd, head, sizeof head, first * page_bytes)) {
        walk->has_failed = true;
        return false;
    }
    walk->met.overflow_count += count;
    return u64_at(head) == first && u16_at(head + 10) == FLAG_OVERFLOW && u32_at(head + 12) == count;
}

/* The bytes of a value, wherever they are; NULL: they cannot be had. */
static const uint8_t *value_of(struct walk *walk, const struct node *node)
{
    if ((node->flags & NODE_IS_BIG) == 0)
        return node->value;
    if (node->value_bytes > walk->big_bytes) {
        uint8_t *grown = realloc(walk->big, node->value_bytes);
        if (grown == NULL) {
            walk->has_failed = true;
            return NULL;
        }
        walk->big = grown;
        walk->big_bytes = node->value_bytes;
    }
    uint64_t at = u64_at(node->value) * walk->meta->page_bytes + PAGE_HEAD_BYTES;
    if (read_at(walk->fd, walk->big, node->value_bytes, at))
        return walk->big;
    walk->has_failed = true;
    return NULL;
}

/* Pages that a transaction left: their count, then their numbers, descending.  Nobody else may use them. */
static bool check_free_list(struct walk *walk, const struct node *node)
{
    const uint8_t *list = node->value_bytes < sizeof(uint64_t) ? NULL : value_of(walk, node);
    if (list == NULL || u64_at(list) > node->value_bytes / sizeof(uint64_t) - 1)
        return false;
    uint64_t count = u64_at(list), before = no_page;
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t number = u64_at(list + i * sizeof(uint64_t));
        if (number >= before || !take_page(walk, number))
            return false;
        before = number;
    }
    return true;
}

/* ---- trees ------------------------------------------------------------------------------------------------------ */

/* The keys below one branch: from LOW on, up to but not HIGH; NULL bytes: no bound. */
struct bounds {
    const uint8_t *low, *high;
    size_t low_bytes, high_bytes;
};

static bool is_within(const struct walk *walk, const struct node *node, const struct bounds *bounds)
{
    return (bounds->low == NULL ||
            compare_keys(walk, bounds->low, bounds->low_bytes, node->key, node->key_bytes) <= 0) &&
           (bounds->high == NULL ||
            compare_keys(walk, node->key, node->key_bytes, bounds->high, bounds->high_bytes) < 0);
}

static bool check_leaf(struct walk *walk, const uint8_t *page, const struct bounds *bounds)
{
    size_t count = node_count_of(page);
    struct node node;
    walk->met.leaf_count++;
    walk->met.entry_count += count;
    for (size_t i = 0; i < count; i++) {
        if (!node_read(walk, page, i, false, &node) || !follow_key(walk, &node) ||
            !is_within(walk, &node, bounds))
            return false;
        if ((node.flags & NODE_IS_BIG) != 0 && !check_big(walk, &node))
            return false;
        if (walk->is_free && !check_free_list(walk, &node))
            return false;
    }
    return true;
}

static bool check_page(struct walk *walk, uint64_t number, size_t level, size_t depth,
                       const struct bounds *bounds);

/* The first node of a branch has no key that means anything: it holds what is below the second. */
static bool check_branch(struct walk *walk, const uint8_t *page, size_t level, size_t depth,
                         const struct bounds *bounds)
{
    size_t count = node_count_of(page);
    struct node node, next;
    walk->met.branch_count++;
    if (count < 2 && !walk->is_free)
        return false;
    if (!node_read(walk, page, 0, true, &node))
        return false;
    struct bounds below = *bounds;
    for (size_t i = 0; i < count; i++, node = next) {
        bool is_last = i + 1 == count;
        if (!is_last && (!node_read(walk, page, i + 1, true, &next) || !is_key(walk, &next)))
            return false;
        below.high = is_last ? bounds->high : next.key;
        below.high_bytes = is_last ? bounds->high_bytes : next.key_bytes;
        if (!check_page(walk, node.child, level + 1, depth, &below))
            return false;
        if (is_last)
            break;
        below.low = next.key;
        below.low_bytes = next.key_bytes;
    }
    return true;
}

static bool check_page(struct walk *walk, uint64_t number, size_t level, size_t depth,
                       const struct bounds *bounds)
{
    uint8_t *page = walk->pages + level * walk->meta->page_bytes;
    bool is_leaf = level + 1 == depth;
    if (!load_page(walk, number, page, is_leaf ? FLAG_LEAF : FLAG_BRANCH) || !has_frame(walk, page))
        return false;
    return is_leaf ? check_leaf(walk, page, bounds) : check_branch(walk, page, level, depth, bounds);
}

static bool check_tree(struct walk *walk, const struct tree *tree, bool is_free)
{
    walk->is_free = is_free;
    walk->met = (struct tree){ 0 };
    walk->has_last_key = false;
    if (tree->root == no_page)
        return tree->depth == 0 && tree->entry_count == 0;
    if (tree->depth == 0 || tree->depth > DEPTH_MAX ||
        !check_page(walk, tree->root, 0, tree->depth, &(struct bounds){ 0 }))
        return false;
    return walk->met.branch_count == tree->branch_count && walk->met.leaf_count == tree->leaf_count &&
           walk->met.overflow_count == tree->overflow_count && walk->met.entry_count == tree->entry_count;
}

static enum pages_status check_trees(struct walk *walk)
{
    size_t depth =
        walk->meta->free.depth > walk->meta->rows.depth ? walk->meta->free.depth : walk->meta->rows.depth;
    if (depth > DEPTH_MAX)
        return PAGES_DAMAGED;
    walk->seen = calloc(walk->meta->last_page / 8 + 1, 1);
    walk->pages = malloc((depth + 1) * walk->meta->page_bytes);
    if (walk->seen == NULL || walk->pages == NULL)
        return PAGES_FAILED;
    bool is_sound = check_tree(walk, &walk->meta->free, true) && check_tree(walk, &walk->meta->rows, false);
    if (walk->has_failed)
        return PAGES_FAILED;
    return is_sound ? PAGES_SOUND : PAGES_DAMAGED;
}

enum pages_status pages_check(int fd)
{
    struct meta meta;
    enum pages_status status = choose_meta(fd, &meta);
    if (status != PAGES_SOUND)
        return status;
    struct walk walk = { .fd = fd, .meta = &meta };
    status = check_trees(&walk);
    int error = errno;
    free(walk.seen);
    free(walk.pages);
    free(walk.big);
    errno = error;
    return status;
}
