package main

import (
	"errors"
	"strconv"
	"sync/atomic"
)

var asked atomic.Int64

// database has products with the numbers of their questions, and none that is called "none".
func database(id string) (string, error) {
	if id == "none" {
		return "", errors.New("no such product")
	}
	return id + " " + strconv.FormatInt(asked.Add(1), 10), nil
}
