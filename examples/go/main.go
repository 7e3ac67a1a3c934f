// Stores, reads and counts with gomemcache.
//
// Run it: go run -C examples/go . 127.0.0.1:11211
// Over TLS, with the certificate of the server's authority: go run -C examples/go . cache.example:11211 $PWD/ca.pem
package main

import (
	"crypto/tls"
	"crypto/x509"
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
	if len(os.Args) > 2 {
		pem, err := os.ReadFile(os.Args[2])
		check(err)
		authorities := x509.NewCertPool()
		authorities.AppendCertsFromPEM(pem)
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: authorities}}
		client.DialContext = dialer.DialContext
	}

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
