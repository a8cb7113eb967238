#!/usr/bin/env bash
# nats.go v1.55.0, package jetstream, with nats-server v2.15.2. Needs Go.
#
# What happens: ListConsumers of a stream sends what it finds over a channel without a buffer, from a goroutine of its own. Whoever stops
# reading before the end, for example because of an error, leaves that goroutine behind for ever: the end of the caller's context does not end
# it, and neither does closing the connection. Of its four siblings (ConsumerNames, ListStreams, StreamNames and this one) it is the only one
# whose send does not end with the context. Read the channel to its end.
#
# Output seen (EXPECTED):
#   ListConsumers: read one of three, context cancelled, connection closed: 1 goroutine is left
#   ListConsumers: read to the end: 0 goroutines are left
#
# Ends with an error if a count is another one.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
export GOFLAGS=-mod=mod CGO_ENABLED=0
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// left returns how many goroutines of ListConsumers there are, after a while.
func left() int {
	time.Sleep(2 * time.Second)
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "ListConsumers in goroutine")
}

// list reads at most some infos of the consumers of a stream, then cancels its context and closes its connection.
func list(url string, most int) {
	nc, err := nats.Connect(url)
	check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := js.Stream(ctx, "S")
	check(err)
	read := 0
	for range stream.ListConsumers(ctx).Info() {
		if read++; read == most {
			return
		}
	}
}

func main() {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: os.Args[1], NoLog: true, NoSigs: true})
	check(err)
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		log.Fatal("the server is not ready")
	}
	nc, err := nats.Connect(s.ClientURL())
	check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	check(err)
	ctx := context.Background()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	check(err)
	for _, name := range []string{"A", "B", "C"} {
		_, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: name})
		check(err)
	}
	list(s.ClientURL(), 3000)
	whole := left()
	list(s.ClientURL(), 1)
	part := left()
	fmt.Printf("ListConsumers: read one of three, context cancelled, connection closed: %d goroutine is left\n", part)
	fmt.Printf("ListConsumers: read to the end: %d goroutines are left\n", whole)
	if part != 1 || whole != 0 {
		log.Fatal("the behaviour has changed")
	}
}
GO
go mod init client 2>/dev/null
go get github.com/nats-io/nats.go@v1.55.0 github.com/nats-io/nats-server/v2@v2.15.2 2>/dev/null
go mod tidy 2>/dev/null
go build -o client .
./client "$dir/data"
