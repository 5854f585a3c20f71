#include "fsops/entries.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/attr.h>
#include <unistd.h>

/* getattrlistbulk(2) goes on where the descriptor stands and gives whole entries only. There is no place that could be told and come back to, so a
 * place is a count of entries. */

/* As the kernel packs what is asked for. */
struct packed {
	uint32_t length;
	attribute_set_t returned;
	attrreference_t name;
	fsobj_type_t type;
	uint64_t ino;
} __attribute__((packed, aligned(4)));

#define PACKED_BYTES 16384

/* enum vtype of <sys/vnode.h>, which not every SDK brings. */
enum { TYPE_REGULAR = 1, TYPE_DIRECTORY = 2, TYPE_LINK = 5 };

static uint8_t type_of(fsobj_type_t type)
{
	return type == TYPE_REGULAR ? DT_REG : type == TYPE_DIRECTORY ? DT_DIR : type == TYPE_LINK ? DT_LNK : DT_UNKNOWN;
}

static size_t entry_put(const char *at, int64_t next, char *out)
{
	struct packed packed;
	struct entry entry = {.next = next};
	memcpy(&packed, at, sizeof packed);
	const char *name = at + offsetof(struct packed, name) + packed.name.attr_dataoffset;
	size_t len = strnlen(name, packed.name.attr_length), size = offsetof(struct entry, name) + len + 1;
	size = (size + _Alignof(struct entry) - 1) / _Alignof(struct entry) * _Alignof(struct entry);
	entry.ino = packed.ino;
	entry.size = (uint16_t)size;
	entry.type = type_of(packed.type);
	memcpy(out, &entry, offsetof(struct entry, name));
	memcpy(out + offsetof(struct entry, name), name, len);
	out[offsetof(struct entry, name) + len] = '\0';
	return size;
}

/* An entry here is never longer than the kernel's. */
ssize_t entries_read(int fd, int64_t place, void *bytes, size_t size)
{
	_Static_assert(sizeof(struct packed) >= offsetof(struct entry, name) + _Alignof(struct entry), "the batch fits");
	char batch[PACKED_BYTES];
	struct attrlist wanted = {
		.bitmapcount = ATTR_BIT_MAP_COUNT,
		.commonattr = ATTR_CMN_RETURNED_ATTRS | ATTR_CMN_NAME | ATTR_CMN_OBJTYPE | ATTR_CMN_FILEID,
	};
	int count = getattrlistbulk(fd, &wanted, batch, size < sizeof batch ? size : sizeof batch, 0);
	if (count < 0)
		return -errno;
	size_t used = 0;
	const char *at = batch;
	for (int i = 0; i < count; i++) {
		uint32_t length;
		memcpy(&length, at, sizeof length);
		used += entry_put(at, place + i + 1, (char *)bytes + used);
		at += length;
	}
	return (ssize_t)used;
}

ssize_t entries_seek(int fd, int64_t place, void *bytes, size_t size)
{
	int64_t seen = 0;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while (seen < place) {
		ssize_t got = entries_read(fd, seen, bytes, size);
		if (got <= 0)
			return got;
		for (size_t at = 0; at < (size_t)got; seen++) {
			if (seen == place) {
				memmove(bytes, (char *)bytes + at, (size_t)got - at);
				return got - (ssize_t)at;
			}
			struct entry entry;
			memcpy(&entry, (char *)bytes + at, offsetof(struct entry, name));
			at += entry.size;
		}
	}
	return 0;
}
