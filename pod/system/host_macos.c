#include "pod/system/host_parts.h"

void host_look_system(struct host_facts *facts)
{
	facts->linux_host = false;
}
