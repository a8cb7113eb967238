#!/usr/bin/env bash
# nats-server 2.15.2 and 2.15.3 (NATS_SERVER=v2.15.3), one server, file storage, sync_interval: always. Needs Go.
#
# What happens: the server does not store the removal of a message that the limit max_msgs_per_subject: 1 removed. While the subject has a
# newer message, recovery after SIGKILL applies the limit again. But when the newer one has been acknowledged (work queue) or purged, the older
# one is there again: below the ack floor of the consumer, so that it is never delivered, and of a purged subject, or of a stream purged up to a
# sequence above it, an older revision. With the header Nats-Rollup: sub instead of the limit, none.
#
# Output seen with 2.15.2 (EXPECTED; the counts differ from run to run):
#   limit, work queue: 300 messages are back below the ack floor 1201, 0 of them are delivered
#   limit, purge of each subject: 300 messages are back
#   limit, purge up to the last sequence: 300 messages are back
#   rollup, work queue: 0 messages are back
#   rollup, purge of each subject: 0 messages are back
#   rollup, purge up to the last sequence: 0 messages are back
#
# Ends with an error if one of the first three counts is 0 or one of the last three is not.
set -euo pipefail
version=${NATS_SERVER:-v2.15.2}
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
export GOFLAGS=-mod=mod GOBIN="$dir/bin" CGO_ENABLED=0
go install "github.com/nats-io/nats-server/v2@$version"
mkdir "$dir/client"
cd "$dir/client"
cat >main.go <<'GO'
// The client starts the server, kills it and starts it again.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const subjects, versions, kills = 300, 4, 3

var ctx = context.Background()

func check(err error) {
	if err != nil {
		panic(err)
	}
}

type server struct {
	binary, dir string
	port        int
	cmd         *exec.Cmd
	nc          *nats.Conn
	js          jetstream.JetStream
}

func (s *server) start() {
	conf := filepath.Join(s.dir, "nats.conf")
	check(os.MkdirAll(s.dir, 0o700))
	check(os.WriteFile(conf, fmt.Appendf(nil, "listen: \"127.0.0.1:%d\"\njetstream: {store_dir: %q, sync_interval: always}\n", s.port, s.dir), 0o600))
	s.cmd = exec.Command(s.binary, "-c", conf)
	check(s.cmd.Start())
	var err error
	s.nc, err = nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", s.port), nats.RetryOnFailedConnect(true), nats.MaxReconnects(300), nats.ReconnectWait(100*time.Millisecond))
	check(err)
	s.js, err = jetstream.New(s.nc)
	check(err)
	for i := 0; ; i++ { // until the streams are recovered
		c, cancel := context.WithTimeout(ctx, time.Second)
		_, err = s.js.AccountInfo(c)
		cancel()
		if err == nil {
			return
		}
		if i > 60 {
			check(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	s.nc.Close()
	check(s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	s.cmd = nil
}

// try returns how many messages are back after the kills, the ack floor and how many of them are delivered.
func try(binary, dir, end string, rollup bool) (back, floor uint64, delivered int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	s := &server{binary: binary, dir: dir, port: l.Addr().(*net.TCPAddr).Port}
	check(l.Close())
	s.start()
	defer s.kill()
	cfg := jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>", "keep"}, Storage: jetstream.FileStorage, AllowRollup: rollup, MaxMsgsPerSubject: 1}
	if rollup {
		cfg.MaxMsgsPerSubject = -1
	}
	if end == "work queue" {
		cfg.Retention = jetstream.WorkQueuePolicy
	}
	stream, err := s.js.CreateStream(ctx, cfg)
	check(err)
	_, err = s.js.Publish(ctx, "keep", nil) // else the empty block is deleted
	check(err)
	for v := range versions {
		for i := range subjects {
			m := nats.NewMsg(fmt.Sprintf("s.%d", i))
			m.Data = fmt.Appendf(nil, "version %d", v)
			if rollup {
				m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
			}
			_, err := s.js.PublishMsg(ctx, m)
			check(err)
		}
	}
	last := uint64(1 + versions*subjects)
	consumer := func() jetstream.Consumer {
		c, err := s.js.CreateOrUpdateConsumer(ctx, "S", jetstream.ConsumerConfig{Durable: "C", FilterSubject: "s.>", AckPolicy: jetstream.AckExplicitPolicy})
		check(err)
		return c
	}
	switch end {
	case "work queue":
		batch, err := consumer().Fetch(subjects)
		check(err)
		for m := range batch.Messages() {
			check(m.DoubleAck(ctx))
		}
	case "purge of each subject":
		for i := range subjects {
			check(stream.Purge(ctx, jetstream.WithPurgeSubject(fmt.Sprintf("s.%d", i))))
		}
	default:
		check(stream.Purge(ctx, jetstream.WithPurgeSubject("s.>"), jetstream.WithPurgeSequence(last+1)))
	}
	for range kills {
		time.Sleep(200 * time.Millisecond) // the server is idle
		s.kill()
		s.start()
	}
	stream, err = s.js.Stream(ctx, "S")
	check(err)
	info, err := stream.Info(ctx)
	check(err)
	if end == "work queue" {
		c := consumer()
		batch, err := c.Fetch(subjects, jetstream.FetchMaxWait(2*time.Second))
		check(err)
		for range batch.Messages() {
			delivered++
		}
		of, err := c.Info(ctx)
		check(err)
		floor = of.AckFloor.Stream
	}
	return info.State.Msgs - 1, floor, delivered
}

func main() {
	log.SetFlags(0)
	changed := false
	for _, way := range []string{"limit", "rollup"} {
		for _, end := range []string{"work queue", "purge of each subject", "purge up to the last sequence"} {
			back, floor, delivered := try(os.Args[1], filepath.Join(os.Args[2], way+end), end, way == "rollup")
			line := fmt.Sprintf("%s, %s: %d messages are back", way, end, back)
			if back > 0 && end == "work queue" {
				line += fmt.Sprintf(" below the ack floor %d, %d of them are delivered", floor, delivered)
			}
			fmt.Println(line)
			changed = changed || (back > 0) != (way == "limit") || delivered > 0
		}
	}
	if changed {
		log.Fatal("the behaviour has changed")
	}
}
GO
go mod init client 2>/dev/null
go get github.com/nats-io/nats.go@v1.55.0 2>/dev/null
go mod tidy 2>/dev/null
go build -o client .
echo "nats-server $version:"
./client "$GOBIN/nats-server" "$dir/data"
