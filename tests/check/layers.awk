# Who includes whom. Reads every .c and .h of the layers, whose paths are relative to the tree; prints one line for each violation.
# Passes: 1 gathers what is declared, defined and included; END judges.

function rank(file)
{
	if (file ~ /^fsops\//)
		return 1
	if (file ~ /^pod\/model\//)
		return 2
	if (file ~ /^pod\/system\//)
		return 3
	if (file ~ /^pod\/lifecycle\//)
		return 4
	if (file ~ /^cmd\//)
		return 5
	return 0
}

function violation(file, what)
{
	printf "%s: %s\n", file, what
	violations++
}

# "pod/system/systemd_bus.c" → "systemd". A backend and the one half that is a program of its own, or its log, are one module.
function family(file)
{
	sub(/.*\//, "", file)
	sub(/[_.].*/, "", file)
	return file in part_of ? part_of[file] : file
}

# The function that a line at column 0 declares or defines, or "".
function function_of(line)
{
	if (line !~ /^[A-Za-z_].*[A-Za-z0-9_] *\(/ || line ~ /^(static|typedef|return|else|if|for|while|switch|#)/)
		return ""
	sub(/ *\(.*/, "", line)
	sub(/.*[^A-Za-z0-9_]/, "", line)
	return line
}

BEGIN {
	split("spawn.h service.h process.h records.h logfile.h command.h sandbox.h dialogue.h library.h life.h watch.h interrupt.h", words, " ")
	for (i in words)
		shared["pod/system/" words[i]] = 1
	part_of["keeper"] = "embedded"
	part_of["journal"] = "systemd"
	part_of["store"] = part_of["snapshot"] = "stores"
	part_of["scenarios"] = "seeds"
	n = split("systemd/sd-bus.h systemd/sd-journal.h uuid/uuid.h ini.h jansson.h sqlite3.h", libraries, " ")
	for (i = 1; i <= n; i++)
		library[libraries[i]] = 1
	split("assert ctype errno inttypes limits signal stdalign stdarg stdbool stddef stdint stdio stdlib string strings sys/types", words, " ")
	for (i in words)
		pure[words[i] ".h"] = 1
	impure = "(getenv|secure_getenv|environ|fopen|fdopen|freopen|popen|system|tmpfile|perror|printf|puts|putchar|stdin|stdout|stderr|time|clock|kill|raise|abort|exit)"
}

FNR == 1 {
	file = FILENAME
	sub(/^\.\//, "", file)
	files[file] = 1
	comment = 0
}

/^[ \t]*# *include/ {
	target = $0
	sub(/^[ \t]*# *include[ \t]*/, "", target)
	system_header = target ~ /^</
	target = substr(target, 2)
	sub(/[>"].*$/, "", target)
	if (system_header)
		angle[file, ++angles[file]] = target
	else
		quote[file, ++quotes[file]] = target
	next
}

{
	name = function_of($0)
	if (name != "" && file ~ /\.h$/)
		declares[file, name] = 1
	if (name != "" && file ~ /\.c$/)
		defines[file] = defines[file] " " name

	# Words in comments and strings name nothing.
	line = $0
	gsub(/"([^"\\]|\\.)*"/, "", line)
	if (comment && line !~ /\*\//)
		next
	if (comment)
		sub(/.*\*\//, "", line)
	gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", line)
	sub(/\/\/.*/, "", line)
	comment = line ~ /\/\*/
	sub(/\/\*.*/, "", line)
	if (file != "fsops/listing.c" && line ~ /(^|[^A-Za-z0-9_])readdir *\(/)
		violation(file ":" FNR, "directories are read through fsops/listing.h, which tells an error from the end")
	if (file ~ /^pod\/model\// && match(line, "(^|[^A-Za-z0-9_.>])" impure "($|[^A-Za-z0-9_])"))
		if (substr(line, RSTART, RLENGTH) ~ /(stdin|stdout|stderr|environ)/ || line ~ impure " *\\(")
			violation(file ":" FNR, "the model is pure, and this is not:" line)
}

# Does the file define something that the header promises? Then the header is its own.
function is_own(c, header,   i, n, names)
{
	n = split(defines[c], names, " ")
	for (i = 1; i <= n; i++)
		if ((header, names[i]) in declares)
			return 1
	return 0
}

function judge_quote(file, target)
{
	if (target == "unit_templates.h") {
		if (rank(file) != 2)
			violation(file, "includes " target ", which is the model's")
		return
	}
	if (!rank(target) || !(target in files)) {
		violation(file, "includes \"" target "\", which is no header of a layer")
		return
	}
	if (rank(target) > rank(file))
		violation(file, "includes " target ": a lower layer looks up")
	if (rank(file) == 3 && rank(target) == 3 && !(target in shared) && family(file) != family(target) && file ~ /\.c$/ && !is_own(file, target))
		violation(file, "includes " target ", a sibling that is not shared and not its own")
}

function judge_angle(file, target)
{
	if (target in library)
		named[target] = named[target] " " file
	if (rank(file) == 2 && !(target in pure) && !(target in library))
		violation(file, "includes <" target ">: the model knows no I/O")
}

# Depth first; `path` is how we came here.
function visit(header, path,   i)
{
	if (state[header] == 2)
		return
	if (state[header] == 1) {
		violation(header, "includes itself:" path " " header)
		return
	}
	state[header] = 1
	for (i = 1; i <= quotes[header]; i++)
		visit(quote[header, i], path " " header)
	state[header] = 2
}

END {
	for (file in files) {
		for (i = 1; i <= quotes[file]; i++)
			judge_quote(file, quote[file, i])
		for (i = 1; i <= angles[file]; i++)
			judge_angle(file, angle[file, i])
	}
	for (file in files)
		visit(file, "")
	for (i = 1; i <= n; i++) {
		count = split(named[libraries[i]], names, " ")
		if (count > 1 || named[libraries[i]] ~ /\.h( |$)/)
			violation("<" libraries[i] ">", "is named by" named[libraries[i]] ", not by one .c alone")
	}
	exit violations > 0
}
