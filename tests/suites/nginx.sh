#!/usr/bin/env bash
# nginx's memcached modules against the server at $HOST and $PORT: memcached_pass, which reads, and memc_pass, which does all.
set -u
another_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
WEB=$(another_port)
rm -rf nginx
mkdir nginx
cat > nginx/nginx.conf <<CONF
load_module /usr/lib/nginx/modules/ngx_http_memc_module.so;
pid nginx.pid;
error_log error.log;
daemon off;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream cache {
        server $HOST:$PORT;
        keepalive 4;
    }
    server {
        listen 127.0.0.1:$WEB;
        location /read/ {
            set \$memcached_key \$uri;
            memcached_pass cache;
        }
        location /store {
            set \$memc_cmd set;
            set \$memc_key \$arg_key;
            memc_pass cache;
        }
        location /memc {
            set \$memc_cmd \$arg_cmd;
            set \$memc_key \$arg_key;
            set \$memc_value \$arg_value;
            set \$memc_exptime \$arg_exptime;
            memc_pass cache;
        }
    }
}
CONF
nginx -p "$PWD/nginx" -c nginx.conf & web=$!
trap 'kill $web; wait $web' EXIT
until (: < "/dev/tcp/127.0.0.1/$WEB") 2> /dev/null; do
    kill -0 $web || exit 1
    sleep 0.05
done

# check NAME STATUS BODY CURL-ARGUMENTS...: a request is answered so; a body of - is not looked at.
check() {
    local name=$1 status=$2 body=$3 received
    shift 3
    received=$(curl -s -o nginx/answer -w '%{http_code}' "$@")
    if [ "$received" = "$status" ] && { [ "$body" = - ] || [ "$(tr -d '\r' < nginx/answer)" = "$body" ]; }; then
        echo "ok $name"
    else
        echo "$name: $received $(head -c 300 nginx/answer)" >&2
        echo "not ok $name"
    fi
}
memc() { echo "http://127.0.0.1:$WEB/memc?cmd=$1&key=$2&value=${3:-}&exptime=${4:-}"; }

check "memc: flush_all" 200 OK "$(memc flush_all '')"
check "memc: get of nothing" 404 - "$(memc get key)"
check "memc: set" 201 STORED "$(memc set key value)"
check "memc: get" 200 value "$(memc get key)"
check "memc: add of what is there" 200 NOT_STORED "$(memc add key other)"
check "memc: append" 201 STORED "$(memc append key s)"
check "memc: prepend" 201 STORED "$(memc prepend key the-)"
check "memc: replace" 201 STORED "$(memc replace key 10)"
check "memc: incr" 201 15 "$(memc incr key 5)"
check "memc: decr" 201 0 "$(memc decr key 100)"
check "memc: delete" 200 DELETED "$(memc delete key)"
check "memc: delete of nothing" 404 - "$(memc delete key)"
check "memc: stats" 200 - "$(memc stats '')"
check "memc: version" 200 - "$(memc version '')"
check "memc: set of a body" 201 STORED -X PUT --data-binary "a page" "http://127.0.0.1:$WEB/store?key=/read/page"
check "memcached: hit" 200 "a page" "http://127.0.0.1:$WEB/read/page"
check "memcached: miss" 404 - "http://127.0.0.1:$WEB/read/none"
head -c 500000 /dev/zero | tr '\0' x > nginx/large
check "memc: set of a large body" 201 STORED -X PUT -H 'Expect:' --data-binary @nginx/large "http://127.0.0.1:$WEB/store?key=/read/large"
check "memcached: large hit" 200 "$(cat nginx/large)" "http://127.0.0.1:$WEB/read/large"
seq 200 | xargs -P 8 -I{} curl -s -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$WEB/read/page" | sort | uniq -c > nginx/many
if grep -qx ' *200 200' nginx/many; then echo "ok memcached: 200 hits, 8 at once"; else echo "not ok memcached: 200 hits, 8 at once"; fi
