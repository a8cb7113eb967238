#!/usr/bin/env bash
# nats-server v2.15.2 within a Go program, with nats.go v1.55.0. Needs Go.
#
# What happens: a server that is shut down while atomic batches arrive (AllowAtomicPublish) is not done when WaitForShutdown returns. Shutting down
# closes the batches of a stream that are open; a message that begins another one may still be processed after that, for some seconds. For it the
# server opens a store in the folder of the stopped stream, with files and goroutines. The timeout of a batch, 10 s later, removes those that were not
# committed; those whose commit the stopped stream could not process stay open, with their folders, as long as the program runs. It matters to
# who embeds the server: a copy or a removal of the folder meets files that come and go, each restart within a program leaves some open files, and a
# test that looks for goroutines finds some. Clients must have stopped publishing before the server is shut down.
#
# Output seen (EXPECTED): what is left of batches after up to 20 servers were shut down amid them
#   when WaitForShutdown has returned: stores are open
#   their folders are in those of stopped streams: yes
#   15 s later: stores are open, folders are left
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
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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

// open counts the stores whose goroutine runs.
func open() int {
	stacks := make([]byte, 16<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "flushStreamStateLoop(")
}

// batches counts the folders of batches below a folder.
func batches(folder string) int {
	found, err := filepath.Glob(filepath.Join(folder, "*", "jetstream", "*", "streams", "S", "batches", "*"))
	check(err)
	return len(found)
}

// stopAmidBatches starts a server, and shuts it down while clients begin batches, each of one message, and commit every second one.
func stopAmidBatches(folder string) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true})
	check(err)
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		log.Fatal("the server is not ready")
	}
	nc, err := nats.Connect(s.ClientURL(), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	check(err)
	js, err := jetstream.New(nc)
	check(err)
	_, err = js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, AllowAtomicPublish: true})
	check(err)
	var clients sync.WaitGroup
	var done atomic.Bool
	for client := range 8 {
		clients.Go(func() {
			for n := 0; !done.Load(); n++ {
				m := nats.NewMsg("s.a")
				m.Header.Set("Nats-Batch-Id", fmt.Sprint(client, "-", n))
				m.Header.Set("Nats-Batch-Sequence", "1")
				if n%2 == 0 {
					m.Header.Set("Nats-Batch-Commit", "1")
					_, _ = nc.RequestMsg(m, 50*time.Millisecond)
				} else {
					_ = nc.PublishMsg(m)
				}
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	s.Shutdown()
	s.WaitForShutdown()
	done.Store(true)
	nc.Close()
	clients.Wait()
}

func main() {
	for round := range 20 {
		stopAmidBatches(filepath.Join(os.Args[1], fmt.Sprint(round)))
	}
	words := func(yes bool, then, otherwise string) string {
		if yes {
			return then
		}
		return otherwise
	}
	fmt.Println("when WaitForShutdown has returned:", words(open() > 0, "stores are open", "no store is open"))
	fmt.Println("their folders are in those of stopped streams:", words(batches(os.Args[1]) > 0, "yes", "no"))
	time.Sleep(15 * time.Second)
	fmt.Printf("15 s later: %s, %s\n", words(open() > 0, "stores are open", "no store is open"), words(batches(os.Args[1]) > 0, "folders are left", "no folder is left"))
}
GO
go mod init client 2>/dev/null
go get github.com/nats-io/nats.go@v1.55.0 github.com/nats-io/nats-server/v2@v2.15.2 2>/dev/null
go mod tidy 2>/dev/null
go build -o client .
./client "$dir/data" 2>/dev/null | tee output
diff <(echo "$expected") output || {
  echo "the behaviour has changed" >&2
  exit 1
}
