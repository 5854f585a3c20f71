/* Two threads that remove one tree: a directory that one of them meets may become the other's to remove. One slot, which whoever has to wait
 * empties himself, so that nobody waits for himself. Inside of tree_remove(). */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#include "fsops/tree.h"
#include "fsops/window.h"

enum tree_side { TREE_MAIN, TREE_ASSISTANT };

struct tree_gift {
	struct pin at; /* of the directory that it stands in; owned */
	struct level *from;
	enum tree_side giver;
	char name[NAME_MAX + 1];
	char path[512]; /* of that directory, for what is left */
};

typedef void (*tree_work)(void *context, enum tree_side side, struct tree_gift *gift);

/* The assistant calls `work` for what it is given. NULL: no memory or no thread; one can do it alone. */
struct tree_pair *tree_pair_start(tree_work work, void *context);
/* The giver has settled everything. What could not be removed is added to *left. */
void tree_pair_end(struct tree_pair *pair, struct tree_left *left);

/* False: the slot is full, or there is no descriptor. */
bool tree_pair_give(struct tree_pair *pair, enum tree_side giver, const struct pin *at, struct level *from, const char *name, const char *path);
/* Returns when everything given from `from` (NULL: by `giver`) is done, or true with something to do meanwhile, and then has to be called again. */
bool tree_pair_await(struct tree_pair *pair, enum tree_side giver, const struct level *from, struct tree_gift *ret_gift);
/* `stays`: the giver need not try it again. What was left of it is counted here. */
void tree_pair_done(struct tree_pair *pair, struct tree_gift *gift, bool stays, const struct tree_left *left);
/* Everything left is going to be met again. */
void tree_pair_forget_left(struct tree_pair *pair);

void tree_left_add(struct tree_left *left, const struct tree_left *more);
