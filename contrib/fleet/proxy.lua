-- memcached's proxy (built with --enable-proxy):
--   memcached -p 11210 -o proxy_config=routelib,proxy_arg=proxy.lua
-- Three servers, placed by a jump hash of the key. While a server fails, its keys go to the same
-- servers by other hashes (gutters without idle servers), and are stored there for ten seconds, so
-- that they are not found again when they are old. Of three servers, one hash in three names the
-- failed one again, so there are two gutters.
local servers = {
    "127.0.0.1:11211",
    "127.0.0.1:11212",
    "127.0.0.1:11213",
}

settings{
    -- Seconds. A server that gives no answer for longer counts as failed.
    backend_connect_timeout = 0.25,
    backend_read_timeout = 0.25,
    backend_retry_timeout = 1,
    backend_failure_limit = 2,
}

pools{
    main = { backends = servers },
    gutter1 = { options = { seed = "gutter1" }, backends = servers },
    gutter2 = { options = { seed = "gutter2" }, backends = servers },
}

local short = function()
    return route_failover{
        children = {
            "main",
            route_ttl{ ttl = 10, child = "gutter1" },
            route_ttl{ ttl = 10, child = "gutter2" },
        },
        miss = false,
    }
end

routes{
    cmap = {
        set = short(), add = short(), cas = short(), ms = short(),
    },
    default = route_failover{ children = { "main", "gutter1", "gutter2" }, miss = false },
}
