//! Memcached's classic text protocol.
