/* A client of Glimmer's native protocol. Made by cbindgen from crates/client-c/src; change that. */

#ifndef GLIMMER_H
#define GLIMMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The outcome of a request. The first three are answers; every value from GLIMMER_OUTCOME_KEY on
// is a failure.
typedef enum {
  // The operation was executed.
  GLIMMER_OUTCOME_OK = 0,
  // There is no item.
  GLIMMER_OUTCOME_NOT_FOUND = 1,
  // The condition for storing was not met: there is an item, none, or one with a different CAS
  // unique.
  GLIMMER_OUTCOME_NOT_STORED = 2,
  // The key is empty, or longer than 250 bytes.
  GLIMMER_OUTCOME_KEY = 16,
  // The item is larger than the server accepts.
  GLIMMER_OUTCOME_TOO_LARGE = 17,
  // The server has no memory for the item.
  GLIMMER_OUTCOME_OUT_OF_MEMORY = 18,
  // The value is not a decimal number.
  GLIMMER_OUTCOME_NOT_A_NUMBER = 19,
  // No answer arrived in time. A change may have been executed.
  GLIMMER_OUTCOME_SILENT = 20,
  // The server refused the request for lack of room each time. It has not executed the request.
  GLIMMER_OUTCOME_OVERLOADED = 21,
  // The server did not understand the request, or the client did not understand the answer.
  GLIMMER_OUTCOME_PROTOCOL = 22,
  // The socket failed.
  GLIMMER_OUTCOME_SOCKET = 23,
  // The server's name has no address, or no server was given.
  GLIMMER_OUTCOME_NO_ADDRESS = 24,
  // An argument is null, not valid text, or out of range.
  GLIMMER_OUTCOME_ARGUMENT = 25,
  // The server has missed several deadlines and is not being asked for the moment.
  GLIMMER_OUTCOME_AWAY = 26,
  // The server has no room to remember another client's changes. The change was not executed.
  GLIMMER_OUTCOME_TOO_MANY_WRITERS = 27,
  // Nothing listens at the server's native port. If a change was sent more than once, it may
  // have been executed.
  GLIMMER_OUTCOME_REFUSED = 28,
  // A bug in this library. The client can only be freed; a change may have been executed.
  GLIMMER_OUTCOME_INTERNAL = 29,
} glimmer_outcome;

// How keys are placed among several servers. Functions take it as a number, because C accepts any.
typedef enum {
  // libmemcached's MEMCACHED_BEHAVIOR_KETAMA.
  GLIMMER_PLACEMENT_KETAMA = 0,
  // libmemcached's MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED.
  GLIMMER_PLACEMENT_KETAMA_WEIGHTED = 1,
  // Rendezvous hashing.
  GLIMMER_PLACEMENT_RENDEZVOUS = 2,
} glimmer_placement;

// A client of one server or of several. After a fork, the parent and the child may both keep using
// it: the child connects again, as a new client.
typedef struct glimmer_client glimmer_client;

// The result of a read. glimmer_item_new creates one, any number of successive reads may use it,
// and glimmer_item_free frees it.
typedef struct glimmer_item glimmer_item;

// The settings of a client. Start from glimmer_settings_default. Times are in microseconds.
typedef struct {
  // The first timeout of a request. After it, the request is retransmitted, and each further
  // timeout is twice the previous one.
  uint64_t resend_first_us;
  // The longest timeout.
  uint64_t resend_longest_us;
  // The deadline after which a request fails.
  uint64_t deadline_us;
  // The interval after which a server that is away is asked again.
  uint64_t retry_us;
  // A server that misses this many deadlines in a row is away: its requests fail at once with
  // GLIMMER_OUTCOME_AWAY. With 0, no server is ever away.
  uint32_t away_after;
  // Requests that may share a datagram.
  uint32_t requests_per_datagram;
  // Whether the keys of a server that is away are placed on the other servers until it is back.
  // For values that may be stale.
  bool eject;
} glimmer_settings;

// One of several servers.
typedef struct {
  // Its host as a NUL-terminated string, spelled as other clients spell it.
  const char *host;
  // Its TCP port. Keys are placed by host and TCP port.
  uint16_t port;
  // Its first native port.
  uint16_t native_port;
  // Its share of the keys relative to the other servers.
  uint32_t weight;
} glimmer_member;

// A byte string.
typedef struct {
  // The first byte; may be null if the length is 0.
  const uint8_t *data;
  // The number of bytes.
  size_t length;
} glimmer_bytes;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Connects to a server, given by the name or address of its host (NUL-terminated) and its native
// port. `settings` may be null for the defaults. On failure it returns null, writes the reason to
// `outcome` unless that is null, and stores a message for glimmer_message.
//
// # Safety
//
// `host` is null or a NUL-terminated string; `settings` is null or points at settings; `outcome`
// is null or may be written to.
glimmer_client *glimmer_connect(const char *host,
                                uint16_t native_port,
                                const glimmer_settings *settings,
                                glimmer_outcome *outcome);

// Connects to several servers. `placement` is a glimmer_placement that says how keys are placed
// among them. Returns null if no server answers; see glimmer_connect.
//
// # Safety
//
// `members` points at `count` members, whose hosts are null or NUL-terminated strings; `settings`
// is null or points at settings; `outcome` is null or may be written to.
glimmer_client *glimmer_connect_to_all(const glimmer_member *members,
                                       size_t count,
                                       uint32_t placement,
                                       const glimmer_settings *settings,
                                       glimmer_outcome *outcome);

// Frees a client. Null is allowed.
//
// # Safety
//
// The client is null or comes from glimmer_connect or glimmer_connect_to_all, and is not used
// afterwards.
void glimmer_free(glimmer_client *client);

// Creates an empty item. Never returns null.
glimmer_item *glimmer_item_new(void);

// Frees an item and its value. Null is allowed.
//
// # Safety
//
// The item is null or comes from glimmer_item_new, and is not used afterwards.
void glimmer_item_free(glimmer_item *item);

// The value that was read; no bytes if there is none. It is valid until the item is used for
// another read or freed.
//
// # Safety
//
// The item is null or comes from glimmer_item_new.
glimmer_bytes glimmer_item_value(const glimmer_item *item);

// The 32-bit flags stored with the value.
//
// # Safety
//
// As for glimmer_item_value.
uint32_t glimmer_item_flags(const glimmer_item *item);

// The CAS unique for glimmer_compare_and_swap; 0 if it was not requested.
//
// # Safety
//
// As for glimmer_item_value.
uint64_t glimmer_item_cas(const glimmer_item *item);

// The message of the last failure in this thread. Unlike glimmer_outcome_text, it includes the
// server's address and the system's reason. It is empty if nothing has failed yet. It is
// NUL-terminated and valid until the next failure in this thread.
const char *glimmer_message(void);

// Like glimmer_put, for an item that expires this many milliseconds from now, or never if they are
// 0. A server that does not know milliseconds does not answer.
//
// # Safety
//
// As for glimmer_put.
glimmer_outcome glimmer_put_ms(glimmer_client *client,
                               glimmer_bytes key,
                               glimmer_bytes value,
                               uint32_t flags,
                               uint32_t expiry_ms);

// Like glimmer_add; see glimmer_put_ms.
//
// # Safety
//
// As for glimmer_put.
glimmer_outcome glimmer_add_ms(glimmer_client *client,
                               glimmer_bytes key,
                               glimmer_bytes value,
                               uint32_t flags,
                               uint32_t expiry_ms);

// Like glimmer_replace; see glimmer_put_ms.
//
// # Safety
//
// As for glimmer_put.
glimmer_outcome glimmer_replace_ms(glimmer_client *client,
                                   glimmer_bytes key,
                                   glimmer_bytes value,
                                   uint32_t flags,
                                   uint32_t expiry_ms);

// Like glimmer_compare_and_swap; see glimmer_put_ms.
//
// # Safety
//
// As for glimmer_put.
glimmer_outcome glimmer_compare_and_swap_ms(glimmer_client *client,
                                            glimmer_bytes key,
                                            uint64_t cas,
                                            glimmer_bytes value,
                                            uint32_t flags,
                                            uint32_t expiry_ms);

// Like glimmer_touch; see glimmer_put_ms.
//
// # Safety
//
// As for glimmer_delete.
glimmer_outcome glimmer_touch_ms(glimmer_client *client, glimmer_bytes key, uint32_t expiry_ms);

// Reads an item into `item`. Unless the outcome is GLIMMER_OUTCOME_OK, the item has no value
// afterwards.
//
// # Safety
//
// The client is null or comes from this library; the key has the given length; `item` is null or
// comes from glimmer_item_new.
glimmer_outcome glimmer_get(glimmer_client *client, glimmer_bytes key, glimmer_item *item);

// Reads an item with its CAS unique into `item`; see glimmer_get.
//
// # Safety
//
// As for glimmer_get.
glimmer_outcome glimmer_get_for_swap(glimmer_client *client, glimmer_bytes key, glimmer_item *item);

// Reads many items with requests that are sent together. The item of each key goes into the
// element of `items` with the same index, and its outcome into `outcomes`. Returns
// GLIMMER_OUTCOME_OK, or the failure that ended the whole call; nothing is written in that case.
// All keys have one deadline.
//
// # Safety
//
// As for glimmer_get. There are `count` keys, `count` distinct items, and room for `count`
// outcomes.
glimmer_outcome glimmer_get_many(glimmer_client *client,
                                 const glimmer_bytes *keys,
                                 size_t count,
                                 glimmer_item *const *items,
                                 glimmer_outcome *outcomes);

// Stores an item. `expiry` follows memcached: 0 means never, up to 30 days counts seconds from
// now, and larger values are seconds since 1970.
//
// # Safety
//
// The client is null or comes from this library; key and value have the given lengths.
glimmer_outcome glimmer_put(glimmer_client *client,
                            glimmer_bytes key,
                            glimmer_bytes value,
                            uint32_t flags,
                            uint32_t expiry);

// Stores an item only if the key has none; otherwise returns GLIMMER_OUTCOME_NOT_STORED.
//
// # Safety
//
// As for glimmer_put.
glimmer_outcome glimmer_add(glimmer_client *client,
                            glimmer_bytes key,
                            glimmer_bytes value,
                            uint32_t flags,
                            uint32_t expiry);

// Stores an item only if the key has one already; otherwise returns GLIMMER_OUTCOME_NOT_STORED.
//
// # Safety
//
// As for glimmer_put.
glimmer_outcome glimmer_replace(glimmer_client *client,
                                glimmer_bytes key,
                                glimmer_bytes value,
                                uint32_t flags,
                                uint32_t expiry);

// Stores an item only if the current item has this CAS unique; otherwise returns
// GLIMMER_OUTCOME_NOT_STORED.
//
// # Safety
//
// As for glimmer_put.
glimmer_outcome glimmer_compare_and_swap(glimmer_client *client,
                                         glimmer_bytes key,
                                         uint64_t cas,
                                         glimmer_bytes value,
                                         uint32_t flags,
                                         uint32_t expiry);

// Adds to a decimal number, wrapping at 2^64. Writes the new number to `number` unless that is
// null.
//
// # Safety
//
// The client is null or comes from this library; the key has the given length; `number` is null or
// may be written to.
glimmer_outcome glimmer_increment(glimmer_client *client, glimmer_bytes key, uint64_t delta, uint64_t *number);

// Subtracts from a decimal number, stopping at zero. Writes the new number to `number` unless that
// is null.
//
// # Safety
//
// As for glimmer_increment.
glimmer_outcome glimmer_decrement(glimmer_client *client, glimmer_bytes key, uint64_t delta, uint64_t *number);

// Deletes an item.
//
// # Safety
//
// The client is null or comes from this library, and the key has the given length.
glimmer_outcome glimmer_delete(glimmer_client *client, glimmer_bytes key);

// Sets an item's expiry time; see glimmer_put.
//
// # Safety
//
// As for glimmer_delete.
glimmer_outcome glimmer_touch(glimmer_client *client, glimmer_bytes key, uint32_t expiry);

// The text of a glimmer_outcome: NUL-terminated, not to be freed.
const char *glimmer_outcome_text(uint32_t outcome);

// The default settings.
glimmer_settings glimmer_settings_default(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GLIMMER_H */
