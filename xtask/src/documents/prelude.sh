# What the script of a document begins with. $out is the folder for what its commands print.

set -u
shopt -s expand_aliases
server=

# Ends the server that the document has in the foreground, as its reader does with Ctrl-C.
end_server() {
    [ -z "$server" ] && return
    kill -INT -- "-$server" 2> /dev/null
    wait "$server" 2> /dev/null
    server=
}

# Runs the command on stdin. What it prints and its status go into files with this name.
run() {
    local text
    text=$(cat)
    printf '$ %s\n' "$text" >> "$out/transcript"
    echo running > "$out/$1.status"
    eval "$text" > "$out/$1.out" 2>&1 < /dev/null
    local status=$?
    case $text in
        *'&') until [ -s "$out/$1.out" ] || ! kill -0 $! 2> /dev/null; do sleep 0.02; done ;;
    esac
    cat "$out/$1.out" >> "$out/transcript"
    echo "$status" > "$out/$1.status"
}

# Starts the server on stdin and waits until it is ready.
serve() {
    local text
    text=$(cat)
    end_server
    printf '$ %s\n' "$text" >> "$out/transcript"
    echo running > "$out/$1.status"
    : > "$out/$1.live"
    set -m
    eval "$text" >> "$out/$1.live" 2>&1 < /dev/null &
    server=$!
    set +m
    local status=0
    until grep -q ' ready on ' "$out/$1.live"; do
        if ! kill -0 "$server" 2> /dev/null; then
            wait "$server"
            status=$?
            server=
            break
        fi
        sleep 0.02
    done
    # A reader is not root, as the script is in its namespace.
    # What cargo says while it builds comes before what the page shows.
    local hidden='WARN running as root|^ +(Compiling|Downloaded|Finished|Running) '
    grep -vE "$hidden" "$out/$1.live" > "$out/$1.out"
    cat "$out/$1.out" >> "$out/transcript"
    echo "$status" > "$out/$1.status"
}
