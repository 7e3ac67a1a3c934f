// Stores, reads and counts with gomemcache.
//
// Run it: go run -C examples/go . 127.0.0.1:11211
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/bradfitz/gomemcache/memcache"
)

func main() {
	address := "127.0.0.1:11211"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	client := memcache.New(address)

	check(client.Set(&memcache.Item{Key: "greeting", Value: []byte("hello"), Expiration: 60}))
	greeting, err := client.Get("greeting")
	check(err)
	fmt.Println("greeting:", string(greeting.Value))

	check(client.Set(&memcache.Item{Key: "visits", Value: []byte("41")}))
	visits, err := client.Increment("visits", 1)
	check(err)
	fmt.Println("visits:", visits)

	both, err := client.GetMulti([]string{"greeting", "visits"})
	check(err)
	fmt.Println("together:", string(both["greeting"].Value), string(both["visits"].Value))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
