#!/usr/bin/env bash
# nats-server v2.15.2 with nats.go v1.55.0, package jetstream. Needs Go.
#
# What happens: the size of the blocks in which a stream is stored depends on limits that have nothing to do with it, and cannot be set. A
# stream without limits has blocks of 8 MB. A limit of messages for each subject, even one that can never be reached, makes them 4 MB; so
# does the retention of a work queue. A limit of bytes that is large as well makes them 8 MB again, also with a limit for each subject or in
# a work queue. It matters because the server loads the whole block of a message into memory to remove or to read it: whoever removes
# messages all over a large stream needs half of the memory after setting a limit of a million million messages for each subject.
#
# Output seen (EXPECTED): the largest block after 24 messages of 1 MB
#   no limit: 8 MB
#   messages for each subject, never reached: 4 MB
#   messages, never reached: 8 MB
#   work queue: 4 MB
#   bytes, never reached: 8 MB
#   messages for each subject and bytes, never reached: 8 MB
#   work queue and bytes, never reached: 8 MB
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
	"fmt"
	"log"
	"os"
	"path/filepath"
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

func main() {
	ctx := context.Background()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: os.Args[1], NoLog: true, NoSigs: true, MaxPayload: 2 << 20,
	})
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
	const never = 1 << 40
	for i, c := range []struct {
		words string
		cfg   jetstream.StreamConfig
	}{
		{"no limit", jetstream.StreamConfig{}},
		{"messages for each subject, never reached", jetstream.StreamConfig{MaxMsgsPerSubject: never}},
		{"messages, never reached", jetstream.StreamConfig{MaxMsgs: never}},
		{"work queue", jetstream.StreamConfig{Retention: jetstream.WorkQueuePolicy}},
		{"bytes, never reached", jetstream.StreamConfig{MaxBytes: 1 << 30}},
		{"messages for each subject and bytes, never reached", jetstream.StreamConfig{MaxMsgsPerSubject: never, MaxBytes: 1 << 30}},
		{"work queue and bytes, never reached", jetstream.StreamConfig{Retention: jetstream.WorkQueuePolicy, MaxBytes: 1 << 30}},
	} {
		c.cfg.Name = fmt.Sprint("S", i)
		c.cfg.Subjects = []string{c.cfg.Name + ".>"}
		_, err := js.CreateStream(ctx, c.cfg)
		check(err)
		for n := range 24 {
			_, err := js.Publish(ctx, fmt.Sprint(c.cfg.Name, ".", n), make([]byte, 1_000_000))
			check(err)
		}
		blocks, err := filepath.Glob(filepath.Join(os.Args[1], "jetstream", "*", "streams", c.cfg.Name, "msgs", "*.blk"))
		check(err)
		largest := int64(0)
		for _, block := range blocks {
			info, err := os.Stat(block)
			check(err)
			largest = max(largest, info.Size())
		}
		fmt.Printf("%s: %d MB\n", c.words, (largest+500_000)/1_000_000)
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
