#!/usr/bin/env bash
# nats-server v2.15.2 with nats.go v1.55.0, package jetstream. Needs Go.
#
# What happens: a publish that carries a message id and an expected last sequence (of the stream or of its subject) cannot be repeated. The server
# checks the expectation before it looks for the id, so that the repetition of a publish that was stored, whose answer was lost, is answered
# with "wrong last sequence" (code 10071) instead of a duplicate, as if another client had written. With an id alone, or with an expected
# stream, the repetition is a duplicate. Whoever uses both must read the last message to learn whose it is.
#
# Output seen (EXPECTED):
#   id only: stored, then duplicate
#   id and expected stream: stored, then duplicate
#   id and expected last sequence: stored, then error 10071
#   id and expected last sequence of the subject: stored, then error 10071
#
# Ends with an error if one of the lines is another one.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
export GOFLAGS=-mod=mod CGO_ENABLED=0
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
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

// outcome says in words how a publish was answered.
func outcome(ack *jetstream.PubAck, err error) string {
	var refused *jetstream.APIError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("error %d", refused.ErrorCode)
	case err != nil:
		return err.Error()
	case ack.Duplicate:
		return "duplicate"
	default:
		return "stored"
	}
}

func main() {
	ctx := context.Background()
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
	for i, c := range []struct {
		words string
		opts  []jetstream.PublishOpt
	}{
		{"id only", nil},
		{"id and expected stream", []jetstream.PublishOpt{jetstream.WithExpectStream("S1")}},
		{"id and expected last sequence", []jetstream.PublishOpt{jetstream.WithExpectLastSequence(0)}},
		{"id and expected last sequence of the subject", []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(0)}},
	} {
		name := fmt.Sprint("S", i)
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Duplicates: time.Minute})
		check(err)
		publish := func() string {
			return outcome(js.Publish(ctx, name+".x", nil, append(c.opts, jetstream.WithMsgID("id"))...))
		}
		first := publish()
		fmt.Printf("%s: %s, then %s\n", c.words, first, publish())
	}
}
GO
go mod init client 2>/dev/null
go get github.com/nats-io/nats.go@v1.55.0 github.com/nats-io/nats-server/v2@v2.15.2 2>/dev/null
go mod tidy 2>/dev/null
go build -o client .
./client "$dir/data" | tee output
diff <(echo "$expected") output || {
  echo "the behaviour has changed" >&2
  exit 1
}
