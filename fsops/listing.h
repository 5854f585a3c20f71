/* Entries of a directory, one after the other. readdir(3) tells an error from the end only through errno: who does not look takes half a directory
 * for the whole. */
#pragma once

#include <dirent.h>

/* 1: an entry, never "." or ".."; 0: the end; negative errno. The entry is the directory's, until the next call. */
int listing_next(DIR *dir, const struct dirent **ret_entry);
