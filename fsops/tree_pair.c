#include "fsops/tree_pair.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsops/cleanup.h"

struct tree_pair {
	pthread_t assistant;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	tree_work work;
	void *context;
	bool full, over;
	struct tree_gift slot;
	unsigned given[2]; /* by each side, not done yet */
	struct tree_left left;
};

void tree_left_add(struct tree_left *left, const struct tree_left *more)
{
	for (size_t i = 0; i < more->count && i < TREE_LEFT_NAMED && left->count + i < TREE_LEFT_NAMED; i++)
		left->named[left->count + i] = more->named[i];
	left->count += more->count;
}

static void take(struct tree_pair *pair, struct tree_gift *ret_gift)
{
	*ret_gift = pair->slot;
	pair->full = false;
}

static void *assist(void *context)
{
	struct tree_pair *pair = context;
	struct tree_gift gift;
	(void)pthread_mutex_lock(&pair->lock);
	for (;;) {
		while (!pair->full && !pair->over)
			(void)pthread_cond_wait(&pair->changed, &pair->lock);
		if (!pair->full)
			break;
		take(pair, &gift);
		(void)pthread_mutex_unlock(&pair->lock);
		pair->work(pair->context, TREE_ASSISTANT, &gift);
		(void)pthread_mutex_lock(&pair->lock);
	}
	(void)pthread_mutex_unlock(&pair->lock);
	return NULL;
}

/* Signals are for the thread that was there before. */
static int start_assistant(struct tree_pair *pair)
{
	sigset_t all, before;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = pthread_create(&pair->assistant, NULL, assist, pair);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

struct tree_pair *tree_pair_start(tree_work work, void *context)
{
	struct tree_pair *pair = calloc(1, sizeof *pair);
	if (!pair)
		return NULL;
	pair->work = work;
	pair->context = context;
	(void)pthread_mutex_init(&pair->lock, NULL);
	(void)pthread_cond_init(&pair->changed, NULL);
	if (start_assistant(pair) == 0)
		return pair;
	free(pair);
	return NULL;
}

void tree_pair_end(struct tree_pair *pair, struct tree_left *left)
{
	if (!pair)
		return;
	(void)pthread_mutex_lock(&pair->lock);
	pair->over = true;
	(void)pthread_cond_broadcast(&pair->changed);
	(void)pthread_mutex_unlock(&pair->lock);
	(void)pthread_join(pair->assistant, NULL);
	tree_left_add(left, &pair->left);
	(void)pthread_cond_destroy(&pair->changed);
	(void)pthread_mutex_destroy(&pair->lock);
	free(pair);
}

static bool put(struct tree_pair *pair, const struct tree_gift *gift)
{
	(void)pthread_mutex_lock(&pair->lock);
	bool taken = !pair->full;
	if (taken) {
		pair->slot = *gift;
		pair->full = true;
		gift->from->gifts++;
		pair->given[gift->giver]++;
		(void)pthread_cond_broadcast(&pair->changed);
	}
	(void)pthread_mutex_unlock(&pair->lock);
	return taken;
}

static bool has_room(struct tree_pair *pair)
{
	(void)pthread_mutex_lock(&pair->lock);
	bool room = !pair->full;
	(void)pthread_mutex_unlock(&pair->lock);
	return room;
}

bool tree_pair_give(struct tree_pair *pair, enum tree_side giver, const struct pin *at, struct level *from, const char *name, const char *path)
{
	struct tree_gift gift = {.at = *at, .from = from, .giver = giver};
	if (!has_room(pair))
		return false;
	gift.at.fd = fcntl(at->fd, F_DUPFD_CLOEXEC, 0);
	if (gift.at.fd < 0)
		return false;
	(void)snprintf(gift.name, sizeof gift.name, "%s", name);
	(void)snprintf(gift.path, sizeof gift.path, "%s", path);
	bool given = put(pair, &gift);
	if (!given)
		close_quietly(gift.at.fd);
	return given;
}

bool tree_pair_await(struct tree_pair *pair, enum tree_side giver, const struct level *from, struct tree_gift *ret_gift)
{
	bool busy = false;
	(void)pthread_mutex_lock(&pair->lock);
	while (!busy && (from ? from->gifts : pair->given[giver])) {
		busy = pair->full;
		if (busy)
			take(pair, ret_gift);
		else
			(void)pthread_cond_wait(&pair->changed, &pair->lock);
	}
	(void)pthread_mutex_unlock(&pair->lock);
	return busy;
}

void tree_pair_done(struct tree_pair *pair, struct tree_gift *gift, bool stays, const struct tree_left *left)
{
	close_quietly(gift->at.fd);
	(void)pthread_mutex_lock(&pair->lock);
	gift->from->gifts--;
	gift->from->gift_left |= stays;
	pair->given[gift->giver]--;
	tree_left_add(&pair->left, left);
	(void)pthread_cond_broadcast(&pair->changed);
	(void)pthread_mutex_unlock(&pair->lock);
}

void tree_pair_forget_left(struct tree_pair *pair)
{
	(void)pthread_mutex_lock(&pair->lock);
	pair->left.count = 0;
	(void)pthread_mutex_unlock(&pair->lock);
}
