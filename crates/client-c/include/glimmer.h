/* A client of Glimmer's native protocol. Made by cbindgen from crates/client-c/src; change that. */

#ifndef GLIMMER_H
#define GLIMMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What became of a request. The first three are answers; everything from GLIMMER_OUTCOME_KEY on is a failure.
typedef enum {
  // It was done.
  GLIMMER_OUTCOME_OK = 0,
  // There is no item.
  GLIMMER_OUTCOME_NOT_FOUND = 1,
  // There is an item where there was to be none, or none or another where there was to be one.
  GLIMMER_OUTCOME_NOT_STORED = 2,
  // The key is empty, or longer than 250 bytes.
  GLIMMER_OUTCOME_KEY = 16,
  // The item is larger than the server takes.
  GLIMMER_OUTCOME_TOO_LARGE = 17,
  // The server has no memory for it.
  GLIMMER_OUTCOME_OUT_OF_MEMORY = 18,
  // The value is no decimal number.
  GLIMMER_OUTCOME_NOT_A_NUMBER = 19,
  // There was no answer in time. A change may have been made.
  GLIMMER_OUTCOME_SILENT = 20,
  // The server was asked again and again and would not take the request, which it has not carried out.
  GLIMMER_OUTCOME_OVERLOADED = 21,
  // The server and this client do not understand one another.
  GLIMMER_OUTCOME_PROTOCOL = 22,
  // The socket failed.
  GLIMMER_OUTCOME_SOCKET = 23,
  // The server's name has no address, or there is no server.
  GLIMMER_OUTCOME_NO_ADDRESS = 24,
  // An argument is null, no text where there is to be text, or a number that means nothing.
  GLIMMER_OUTCOME_ARGUMENT = 25,
  // The server has let several deadlines pass, and was not asked again yet.
  GLIMMER_OUTCOME_AWAY = 26,
  // The server has no room to remember another writing client. The change was not made.
  GLIMMER_OUTCOME_TOO_MANY_WRITERS = 27,
  // Nothing listens at the server's native port. A change that was sent more than once may have been made.
  GLIMMER_OUTCOME_REFUSED = 28,
  // A bug in this library. The client can only be freed; a change may have been made.
  GLIMMER_OUTCOME_INTERNAL = 29,
} glimmer_outcome;

// Which of several servers has a key. Functions take it as a number, because C accepts any.
typedef enum {
  // libmemcached's MEMCACHED_BEHAVIOR_KETAMA.
  GLIMMER_PLACEMENT_KETAMA = 0,
  // libmemcached's MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED.
  GLIMMER_PLACEMENT_KETAMA_WEIGHTED = 1,
  // Rendezvous hashing.
  GLIMMER_PLACEMENT_RENDEZVOUS = 2,
} glimmer_placement;

// A client of one server or of several. After a fork, parent and child may both go on with it: the
// child looks for the servers again, and is another client.
typedef struct glimmer_client glimmer_client;

// Where a value is read into. glimmer_item_new makes one, any number of reads may use it one after
// another, and glimmer_item_free ends it.
typedef struct glimmer_item glimmer_item;

// How a client behaves. What glimmer_settings_default returns is a good beginning. Times are in microseconds.
typedef struct {
  // A request that is not answered for so long is sent again; the next time after twice as long,
  uint64_t resend_first_us;
  // and so on, up to this.
  uint64_t resend_longest_us;
  // A request is given up after so long.
  uint64_t deadline_us;
  // A server that is away is asked again after so long.
  uint64_t retry_us;
  // A server that lets so many deadlines pass one after another is away: requests for it fail at once with GLIMMER_OUTCOME_AWAY. 0: none ever is.
  uint32_t away_after;
  // Requests that may share a datagram.
  uint32_t requests_per_datagram;
  // Whether keys of a server that is away are placed among the others until it is back: for values that may be stale.
  bool eject;
} glimmer_settings;

// One of several servers.
typedef struct {
  // Its host, as other clients name it; ends with a zero.
  const char *host;
  // Its TCP port, by which keys are placed, too.
  uint16_t port;
  // Its first native port.
  uint16_t native_port;
  // Its share of the keys, in relation to the others'.
  uint32_t weight;
} glimmer_member;

// A number of bytes.
typedef struct {
  // The first of them; may be null if there are none.
  const uint8_t *data;
  // How many there are.
  size_t length;
} glimmer_bytes;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Finds a server by the name or address of its host, which ends with a zero, and its native port.
// `settings` may be null, for the usual ones. Returns null if that fails; then the reason is where
// `outcome` points, unless that is null, and in glimmer_message.
//
// # Safety
//
// `host` is null or points at a string that ends with a zero; `settings` is null or points at
// settings; `outcome` is null or may be written to.
glimmer_client *glimmer_connect(const char *host,
                                uint16_t native_port,
                                const glimmer_settings *settings,
                                glimmer_outcome *outcome);

// Finds several servers, among which keys are placed as a glimmer_placement says. Returns null if
// none answers; see glimmer_connect.
//
// # Safety
//
// `members` points at `count` members, whose hosts are null or strings that end with a zero;
// `settings` is null or points at settings; `outcome` is null or may be written to.
glimmer_client *glimmer_connect_to_all(const glimmer_member *members,
                                       size_t count,
                                       uint32_t placement,
                                       const glimmer_settings *settings,
                                       glimmer_outcome *outcome);

// Ends a client; null is allowed.
//
// # Safety
//
// The client is null or comes from glimmer_connect or glimmer_connect_to_all, and is not used
// afterwards.
void glimmer_free(glimmer_client *client);

// An item that nothing has been read into. It is never null.
glimmer_item *glimmer_item_new(void);

// Ends an item, and with it its value; null is allowed.
//
// # Safety
//
// The item is null or comes from glimmer_item_new, and is not used afterwards.
void glimmer_item_free(glimmer_item *item);

// The value that was read, until the item is read into again or freed; no bytes if there is none.
//
// # Safety
//
// The item is null or comes from glimmer_item_new.
glimmer_bytes glimmer_item_value(const glimmer_item *item);

// The 32 bits that were stored with the value.
//
// # Safety
//
// As for glimmer_item_value.
uint32_t glimmer_item_flags(const glimmer_item *item);

// What glimmer_compare_and_swap compares; 0 if it was not asked for.
//
// # Safety
//
// As for glimmer_item_value.
uint64_t glimmer_item_cas(const glimmer_item *item);

// What failed last in this thread, in words: with the address of the server that it concerns, and
// the system's reason, unlike glimmer_outcome_text. Empty if nothing has failed yet. It ends with a
// zero, and stays until something else fails in this thread.
const char *glimmer_message(void);

// Reads an item into `item`. Unless the outcome is GLIMMER_OUTCOME_OK, it has no value afterwards.
//
// # Safety
//
// The client is null or was handed out; the key is as long as it says; `item` is null or comes from
// glimmer_item_new.
glimmer_outcome glimmer_get(glimmer_client *client, glimmer_bytes key, glimmer_item *item);

// Reads an item with its CAS unique into `item`; see glimmer_get.
//
// # Safety
//
// As for glimmer_get.
glimmer_outcome glimmer_get_for_swap(glimmer_client *client, glimmer_bytes key, glimmer_item *item);

// Reads many items with requests that leave together: the item of each key into the item of the
// same number, and what came of it into `outcomes`. Returns GLIMMER_OUTCOME_OK, or what ended all
// of it; then nothing is written.
//
// # Safety
//
// As for glimmer_get; there are `count` keys and as many items, none of them twice, and room for as
// many outcomes.
glimmer_outcome glimmer_get_many(glimmer_client *client,
                                 const glimmer_bytes *keys,
                                 size_t count,
                                 glimmer_item *const *items,
                                 glimmer_outcome *outcomes);

// Stores an item. `expiry` is memcached's: 0 is never, up to 30 days is in seconds from now, and
// more is seconds since 1970.
//
// # Safety
//
// The client is null or was handed out; key and value are as long as they say.
glimmer_outcome glimmer_put(glimmer_client *client,
                            glimmer_bytes key,
                            glimmer_bytes value,
                            uint32_t flags,
                            uint32_t expiry);

// Stores an item if there is none; GLIMMER_OUTCOME_NOT_STORED if there is.
//
// # Safety
//
// As for glimmer_put.
glimmer_outcome glimmer_add(glimmer_client *client,
                            glimmer_bytes key,
                            glimmer_bytes value,
                            uint32_t flags,
                            uint32_t expiry);

// Stores an item if there is one; GLIMMER_OUTCOME_NOT_STORED if there is none.
//
// # Safety
//
// As for glimmer_put.
glimmer_outcome glimmer_replace(glimmer_client *client,
                                glimmer_bytes key,
                                glimmer_bytes value,
                                uint32_t flags,
                                uint32_t expiry);

// Stores an item if the one that is there has this CAS unique; GLIMMER_OUTCOME_NOT_STORED if there
// is none, or another.
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

// Adds to a decimal number, wrapping at 2^64; the result goes to `number`, unless that is null.
//
// # Safety
//
// The client is null or was handed out; the key is as long as it says; `number` is null or may be
// written to.
glimmer_outcome glimmer_increment(glimmer_client *client, glimmer_bytes key, uint64_t delta, uint64_t *number);

// Subtracts from a decimal number, stopping at zero; the result goes to `number`, unless that is
// null.
//
// # Safety
//
// As for glimmer_increment.
glimmer_outcome glimmer_decrement(glimmer_client *client, glimmer_bytes key, uint64_t delta, uint64_t *number);

// Removes an item.
//
// # Safety
//
// The client is null or was handed out, and the key is as long as it says.
glimmer_outcome glimmer_delete(glimmer_client *client, glimmer_bytes key);

// Gives an item a new expiry time; see glimmer_put.
//
// # Safety
//
// As for glimmer_delete.
glimmer_outcome glimmer_touch(glimmer_client *client, glimmer_bytes key, uint32_t expiry);

// A glimmer_outcome in words, which end with a zero and are not to be freed.
const char *glimmer_outcome_text(uint32_t outcome);

// The usual settings.
glimmer_settings glimmer_settings_default(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GLIMMER_H */
