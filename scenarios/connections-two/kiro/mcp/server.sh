#!/bin/sh
# An MCP server over stdio with one tool, for hosts where nothing but a POSIX shell and sed is certain. One JSON message a line; the text of its
# one tool result is fixed, so nothing from outside is ever evaluated. usage: server.sh NAME TOOL DESCRIPTION
name=${1:?name} tool=${2:?tool} description=${3:?description}

# The last key at the top that is spelt so; enough for messages of one line that a client wrote.
field() {
	printf '%s\n' "$line" | sed -n "s/.*\"$1\"[[:space:]]*:[[:space:]]*\\(\"[^\"]*\"\\|-\\{0,1\\}[0-9][0-9]*\\).*/\\1/p"
}

reply() {
	printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"
}

while IFS= read -r line; do
	id=$(field id)
	method=$(field method)
	[ -n "$id" ] || continue
	case $method in
	'"initialize"')
		version=$(field protocolVersion)
		reply "\"result\":{\"protocolVersion\":${version:-\"2025-06-18\"},\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"$name\",\"version\":\"1.0.0\"}}"
		;;
	'"ping"') reply '"result":{}' ;;
	'"tools/list"')
		reply "\"result\":{\"tools\":[{\"name\":\"$tool\",\"description\":\"$description\",\"inputSchema\":{\"type\":\"object\"}}]}"
		;;
	'"tools/call"')
		case $tool in
		tell_time) text=$(date) ;;
		*) text='There is one note: this pod was made from a scenario.' ;;
		esac
		reply "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}"
		;;
	*) reply '"error":{"code":-32601,"message":"method not found"}' ;;
	esac
done
