#include "pod/model/port.h"

#include <string.h>

#include "pod/model/ascii.h"
#include "pod/model/refusal.h"

#define PORT_MAX 65535

static uint32_t crc_byte(uint32_t crc, unsigned char byte)
{
	crc ^= (uint32_t)byte << 24;
	for (int bit = 0; bit < 8; bit++)
		crc = crc & 0x80000000u ? crc << 1 ^ 0x04c11db7u : crc << 1;
	return crc;
}

uint32_t posix_cksum(const char *bytes, size_t len)
{
	uint32_t crc = 0;
	for (size_t i = 0; i < len; i++)
		crc = crc_byte(crc, (unsigned char)bytes[i]);
	for (size_t left = len; left; left >>= 8)
		crc = crc_byte(crc, (unsigned char)(left & 0xff));
	return ~crc;
}

static int candidate(const struct plane *plane, const struct pod_name *name, int step)
{
	uint32_t span = (uint32_t)plane->port_span;
	uint32_t first = posix_cksum(name->text, strlen(name->text)) % span;
	return plane->base_port + (int)((first + (uint32_t)step) % span) + 1;
}

int port_preferred(const struct plane *plane, const struct pod_name *name)
{
	return candidate(plane, name, 0);
}

int port_parse(const char *text, int *ret_port, struct err *err)
{
	uint64_t port = 0;
	if (!ascii_decimal(text, PORT_MAX, &port) || !port)
		return refuse(err, REFUSAL_BAD_CONFIG, text, "a port is a decimal number from 1 to 65535");
	*ret_port = (int)port;
	return 0;
}

void port_set_add(struct port_set *set, int port)
{
	if (port >= 0 && port <= PORT_MAX)
		set->bits[port / 64] |= UINT64_C(1) << (port % 64);
}

bool port_set_has(const struct port_set *set, int port)
{
	return port >= 0 && port <= PORT_MAX && (set->bits[port / 64] >> (port % 64) & 1);
}

int port_next(const struct plane *plane, const struct pod_name *name, const struct port_set *taken, int *step)
{
	while (*step < plane->port_span) {
		int port = candidate(plane, name, (*step)++);
		if (port != plane->live_port && !(taken && port_set_has(taken, port)))
			return port;
	}
	return 0;
}
