#!/usr/bin/env bash
# nats-server 2.12.0, 2.15.2 and 2.15.3 (NATS_SERVER=v2.15.3), one server. Needs Go.
#
# What happens: two messages of a work queue are delivered and not acknowledged. A newer message of the second one's subject with the header
# Nats-Rollup: sub removes the second one. That moves the consumer's acknowledged sequence up to the delivery of the removed message, so that the
# acknowledgement of the next delivery moves the ack floor above the first message, which is still in flight. After its ack wait the consumer
# no longer counts it and never delivers it again; it stays in the stream. A client that deletes the second message by its sequence instead of the
# rollup has the first one delivered again.
#
# Output seen with 2.15.2 (EXPECTED):
#   rollup: ack floor 3 while message 1 is in flight; delivered again: false; left in the stream: 1
#   delete: ack floor 0 while message 1 is in flight; delivered again: true; left in the stream: 1
#
# Ends with an error if any of this changes.
set -euo pipefail
version=${NATS_SERVER:-v2.15.2}
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
export GOFLAGS=-mod=mod CGO_ENABLED=0
mkdir "$dir/client"
cd "$dir/client"
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func try(rollup bool) (floor uint64, again bool, left uint64) {
	ctx := context.Background()
	s := must(server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: must(os.MkdirTemp(os.Args[1], "")), NoSigs: true}))
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(time.Minute) {
		panic("the server does not start")
	}
	nc := must(nats.Connect(s.ClientURL()))
	defer nc.Close()
	js := must(jetstream.New(nc))
	stream := must(js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Retention: jetstream.WorkQueuePolicy, AllowRollup: true}))
	consumer := must(stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second}))
	for _, subject := range []string{"s.a", "s.b"} {
		must(js.Publish(ctx, subject, nil))
		must(consumer.Next())
	}
	newer := &nats.Msg{Subject: "s.b", Header: nats.Header{}}
	if rollup {
		newer.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	must(js.PublishMsg(ctx, newer))
	if !rollup {
		if err := stream.DeleteMsg(ctx, 2); err != nil {
			panic(err)
		}
	}
	if err := must(consumer.Next()).DoubleAck(ctx); err != nil {
		panic(err)
	}
	floor = must(consumer.Info(ctx)).AckFloor.Stream
	_, err := consumer.Next(jetstream.FetchMaxWait(5 * time.Second))
	return floor, err == nil, must(stream.Info(ctx)).State.Msgs
}

func main() {
	for _, rollup := range []bool{true, false} {
		floor, again, left := try(rollup)
		fmt.Printf("%s: ack floor %d while message 1 is in flight; delivered again: %t; left in the stream: %d\n",
			map[bool]string{true: "rollup", false: "delete"}[rollup], floor, again, left)
	}
}
GO
go mod init client >/dev/null 2>&1
go get "github.com/nats-io/nats-server/v2@$version" github.com/nats-io/nats.go@v1.55.0 2>"$dir/get" || { cat "$dir/get" >&2; exit 1; }
got=$(go run . "$dir")
echo "$got"
[ "$got" = "rollup: ack floor 3 while message 1 is in flight; delivered again: false; left in the stream: 1
delete: ack floor 0 while message 1 is in flight; delivered again: true; left in the stream: 1" ]
