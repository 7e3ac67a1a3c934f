-- memcached's proxy with a copy of every item on each server:
--   memcached -p 11210 -o proxy_config=routelib,proxy_arg=proxy-replicas.lua
-- A read goes to the first server, and to the next one if that has failed or misses. What changes
-- goes to all, and its answer is the first error if there is one.
settings{
    backend_connect_timeout = 0.25,
    backend_read_timeout = 0.25,
    backend_retry_timeout = 1,
    backend_failure_limit = 2,
}

pools{
    set_all = {
        { backends = { "127.0.0.1:11211" } },
        { backends = { "127.0.0.1:11212" } },
        { backends = { "127.0.0.1:11213" } },
    },
}

local read = function()
    return route_failover{ children = "set_all", miss = true }
end

routes{
    cmap = { get = read(), gets = read(), mg = read() },
    default = route_allsync{ children = "set_all" },
}
