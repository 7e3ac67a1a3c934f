// Go libraries of Redis as a cache, against the server at the address that is given.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

var ctx = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func expect[T comparable](got, wanted T) {
	if got != wanted {
		panic(fmt.Sprintf("got %v, not %v", got, wanted))
	}
}

func goRedis(client *redis.Client) {
	expect(must(client.Set(ctx, "a", "1", time.Minute).Result()), "OK")
	expect(must(client.SetNX(ctx, "a", "2", time.Minute).Result()), false)
	expect(must(client.GetEx(ctx, "a", time.Hour).Result()), "1")
	var sum *redis.IntCmd
	must(client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		sum = pipe.IncrBy(ctx, "a", 4)
		pipe.Expire(ctx, "a", time.Minute)
		return nil
	}))
	expect(sum.Val(), 5)
	for i := range 300 {
		must(client.Set(ctx, "key:"+strconv.Itoa(i), i, 0).Result())
	}
	count := 0
	for keys := client.Scan(ctx, 0, "key:*", 50).Iterator(); keys.Next(ctx); {
		count++
	}
	expect(count, 300)
	expect(len(must(client.Keys(ctx, "key:?").Result())), 10)
	expect(must(client.DBSize(ctx).Result()), 301)
	expect(must(client.GetDel(ctx, "a").Result()), "5")
}

func ofRedsync(client *redis.Client) {
	locks := redsync.New(goredis.NewPool(client))
	lock := locks.NewMutex("lock", redsync.WithExpiry(5*time.Second), redsync.WithTries(1))
	if err := lock.Lock(); err != nil {
		panic(err)
	}
	if locks.NewMutex("lock", redsync.WithTries(1)).TryLock() == nil {
		panic("locked twice")
	}
	expect(must(lock.Extend()), true)
	expect(must(lock.Unlock()), true)
	expect(must(client.Exists(ctx, "lock").Result()), 0)
}

func ofRueidis(address string) {
	client := must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}}))
	defer client.Close()
	do := func(command rueidis.Completed) rueidis.RedisResult { return client.Do(ctx, command) }
	expect(must(do(client.B().Set().Key("a").Value("1").Build()).ToString()), "OK")
	get := func() string {
		return must(client.DoCache(ctx, client.B().Get().Key("a").Cache(), time.Minute).ToString())
	}
	expect(get(), "1")
	// Another connection changes what the client may have kept.
	other := must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true}))
	defer other.Close()
	for i := range 100 {
		value := strconv.Itoa(i)
		must(other.Do(ctx, other.B().Set().Key("a").Value(value).Build()).ToString())
		for tries := 0; get() != value; tries++ {
			if tries == 100 {
				panic("an old value is kept")
			}
			time.Sleep(time.Millisecond)
		}
	}
	many := must(rueidis.MGetCache(client, ctx, time.Minute, []string{"a", "none"}))
	first := many["a"]
	expect(must(first.ToString()), "99")
}

func main() {
	address := os.Args[1]
	client := redis.NewClient(&redis.Options{Addr: address})
	for name, check := range map[string]func(){
		"go-redis": func() { goRedis(client) },
		"redsync":  func() { ofRedsync(client) },
		"rueidis":  func() { ofRueidis(address) },
	} {
		client.FlushAll(ctx)
		check()
		fmt.Println("ok", name)
	}
}
