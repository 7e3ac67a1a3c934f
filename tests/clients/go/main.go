// gomemcache against a running server: `program 127.0.0.1:11211 text`. Prints `ok NAME` for each check and ends at the first wrong answer.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

const never = 100_000

func main() {
	if len(os.Args) != 3 || os.Args[2] != "text" {
		fmt.Fprintln(os.Stderr, "usage: program HOST:PORT text")
		os.Exit(2)
	}
	client := connect()
	for _, check := range []struct {
		name string
		run  func(*memcache.Client)
	}{
		{"set and get", setAndGet},
		{"multi-get", multiGet},
		{"add and replace", addAndReplace},
		{"append and prepend", appendAndPrepend},
		{"cas", compareAndSwap},
		{"delete", remove},
		{"incr and decr", count},
		{"touch", touch},
		{"expiry", expiry},
		{"large values", largeValues},
		{"many keys", manyKeys},
		{"many connections", manyConnections},
		{"flush", flush},
	} {
		must(client.FlushAll())
		check.run(client)
		fmt.Println("ok", check.name)
	}
	must(client.Close())
}

// connect opens a client; with $TLS_AUTHORITY, the file of the server's authority, its connections are encrypted.
func connect() *memcache.Client {
	client := memcache.New(os.Args[1])
	client.Timeout = 20 * time.Second
	client.MaxIdleConns = 16
	if file := os.Getenv("TLS_AUTHORITY"); file != "" {
		pem, err := os.ReadFile(file)
		must(err)
		authorities := x509.NewCertPool()
		equal(authorities.AppendCertsFromPEM(pem), true)
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: authorities, ServerName: "localhost"}}
		client.DialContext = dialer.DialContext
	}
	return client
}

func setAndGet(client *memcache.Client) {
	refused(func() error { _, err := client.Get("absent"); return err }, memcache.ErrCacheMiss)
	for _, value := range [][]byte{{}, []byte("value"), {0, 255, '\r', '\n'}, []byte("END\r\n"), bytes.Repeat([]byte("x"), 5000)} {
		must(client.Set(&memcache.Item{Key: "key", Value: value, Flags: 4_294_967_295}))
		item := get(client, "key")
		equal(item.Value, value)
		equal(item.Flags, uint32(4_294_967_295))
		equal(item.Key, "key")
	}
	longest := strings.Repeat("k", 250)
	set(client, longest, "long")
	equal(string(get(client, longest).Value), "long")
	must(client.Ping())
}

func multiGet(client *memcache.Client) {
	set(client, "a", "1")
	set(client, "b", "")
	found, err := client.GetMulti([]string{"a", "absent", "b"})
	must(err)
	equal(len(found), 2)
	equal(string(found["a"].Value), "1")
	equal(len(found["b"].Value), 0)
}

func addAndReplace(client *memcache.Client) {
	refused(func() error { return client.Replace(item("key", "0")) }, memcache.ErrNotStored)
	must(client.Add(item("key", "1")))
	refused(func() error { return client.Add(item("key", "2")) }, memcache.ErrNotStored)
	must(client.Replace(item("key", "3")))
	holds(client, "key", "3")
}

func appendAndPrepend(client *memcache.Client) {
	refused(func() error { return client.Append(item("key", "0")) }, memcache.ErrNotStored)
	refused(func() error { return client.Prepend(item("key", "0")) }, memcache.ErrNotStored)
	must(client.Set(&memcache.Item{Key: "key", Value: []byte("1"), Flags: 7}))
	must(client.Append(item("key", "2")))
	must(client.Prepend(item("key", "0")))
	holds(client, "key", "012")
	equal(get(client, "key").Flags, uint32(7))
}

func compareAndSwap(client *memcache.Client) {
	set(client, "key", "1")
	mine, theirs := get(client, "key"), get(client, "key")
	mine.Value = []byte("2")
	must(client.CompareAndSwap(mine))
	refused(func() error { return client.CompareAndSwap(theirs) }, memcache.ErrCASConflict)
	holds(client, "key", "2")
	mine = get(client, "key")
	must(client.Delete("key"))
	refused(func() error { return client.CompareAndSwap(mine) }, memcache.ErrCacheMiss)
}

func remove(client *memcache.Client) {
	refused(func() error { return client.Delete("key") }, memcache.ErrCacheMiss)
	set(client, "key", "1")
	must(client.Delete("key"))
	missing(client, "key")
}

func count(client *memcache.Client) {
	refused(func() error { _, err := client.Increment("key", 1); return err }, memcache.ErrCacheMiss)
	set(client, "key", "18446744073709551614")
	counted(client.Increment("key", 1))(18446744073709551615)
	counted(client.Increment("key", 2))(1)
	set(client, "key", "10")
	counted(client.Decrement("key", 3))(7)
	counted(client.Decrement("key", 100))(0)
	set(client, "key", "word")
	_, err := client.Increment("key", 1)
	equal(err != nil && strings.Contains(err.Error(), "non-numeric"), true)
}

func touch(client *memcache.Client) {
	refused(func() error { return client.Touch("key", never) }, memcache.ErrCacheMiss)
	refused(func() error { _, err := client.GetAndTouch("key", never); return err }, memcache.ErrCacheMiss)
	set(client, "key", "1")
	must(client.Touch("key", never))
	touched, err := client.GetAndTouch("key", -1)
	must(err)
	equal(string(touched.Value), "1")
	missing(client, "key")
}

func expiry(client *memcache.Client) {
	must(client.Set(&memcache.Item{Key: "past", Value: []byte("1"), Expiration: -1}))
	missing(client, "past")
	must(client.Set(&memcache.Item{Key: "short", Value: []byte("1"), Expiration: 1}))
	must(client.Set(&memcache.Item{Key: "absolute", Value: []byte("1"), Expiration: int32(time.Now().Unix()) + 1}))
	must(client.Set(&memcache.Item{Key: "kept", Value: []byte("1"), Expiration: 1}))
	must(client.Touch("kept", never))
	time.Sleep(3 * time.Second)
	missing(client, "short")
	missing(client, "absolute")
	holds(client, "kept", "1")
}

func largeValues(client *memcache.Client) {
	for _, size := range []int{4096, 65_536, 1_000_000} {
		value := bytes.Repeat([]byte("0123456789"), size/10)
		must(client.Set(&memcache.Item{Key: "large", Value: value}))
		equal(bytes.Equal(get(client, "large").Value, value), true)
	}
	err := client.Set(&memcache.Item{Key: "large", Value: make([]byte, 2<<20)})
	equal(err != nil && strings.Contains(err.Error(), "object too large for cache"), true)
	missing(client, "large")
}

func manyKeys(client *memcache.Client) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
		set(client, keys[i], fmt.Sprint("value-", i))
	}
	found, err := client.GetMulti(keys)
	must(err)
	equal(len(found), len(keys))
	for i, key := range keys {
		equal(string(found[key].Value), fmt.Sprint("value-", i))
	}
}

func manyConnections(client *memcache.Client) {
	set(client, "count", "0")
	const goroutines, rounds = 16, 200
	var group sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < rounds; j++ {
				_, err := client.Increment("count", 1)
				must(err)
			}
		}()
	}
	group.Wait()
	counted(client.Increment("count", 0))(goroutines * rounds)
}

func flush(client *memcache.Client) {
	set(client, "key", "1")
	must(client.DeleteAll())
	missing(client, "key")
}

func item(key, value string) *memcache.Item {
	return &memcache.Item{Key: key, Value: []byte(value)}
}

func set(client *memcache.Client, key, value string) {
	must(client.Set(item(key, value)))
}

func get(client *memcache.Client, key string) *memcache.Item {
	item, err := client.Get(key)
	must(err)
	return item
}

func holds(client *memcache.Client, key, value string) {
	equal(string(get(client, key).Value), value)
}

func missing(client *memcache.Client, key string) {
	refused(func() error { _, err := client.Get(key); return err }, memcache.ErrCacheMiss)
}

func counted(value uint64, err error) func(uint64) {
	must(err)
	return func(expected uint64) { equal(value, expected) }
}

func refused(call func() error, expected error) {
	if err := call(); !errors.Is(err, expected) {
		fail("expected %v, received %v", expected, err)
	}
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func equal[T any](received, expected T) {
	if !reflect.DeepEqual(received, expected) {
		fail("expected %v, received %v", expected, received)
	}
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	for depth := 1; depth < 8; depth++ {
		if _, file, line, known := runtime.Caller(depth); known && strings.HasSuffix(file, "main.go") {
			fmt.Fprintf(os.Stderr, "  at main.go:%d\n", line)
		}
	}
	os.Exit(1)
}
