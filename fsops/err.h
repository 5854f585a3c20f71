/* What went wrong, as plain data of fixed size. Last parameter everywhere, untouched on success; callers prepend context. */
#pragma once

struct err {
	int code;          /* negative errno */
	int refusal;       /* 0: "I could not". Else an entry of the caller's refusal table: "I will not" */
	char stage[24];    /* what was being done, one or two words: "open", "record" */
	char subject[256]; /* the path, name or key it was about; raw bytes, possibly cut */
	char text[3584];   /* one sentence without a full stop; 500 characters of somebody's stderr fit in, of four bytes each */
};

/* Fills *e (which may be NULL) and returns code. `subject` may be NULL. */
int err_set(struct err *e, int code, const char *stage, const char *subject, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The same with the text of strerror(-code). */
int err_code(struct err *e, int code, const char *stage, const char *subject);

/* Puts "context: " before the text; returns e->code, and -EIO where e is NULL: a failure stays one. */
int err_prepend(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
