#!/usr/bin/env bash
# franz-go 1.22.2 (with its broker in process, kfake): a consumer never reads a topic that is deleted and made anew under its name.
#
# Every poll ends with UNKNOWN_TOPIC_ID, and no record of the new topic comes, however long the client runs; a new client, or
# PurgeTopicsFromConsuming and AddConsumeTopics, reads it at once. This is as documented in franz-go's metadata.go ("we do not adopt the new
# ID"); it surprises a client that retries and waits.
#
# Needs Go and access to Go modules. Exits 0 when the behaviour is as described, 1 when it has changed.
set -euo pipefail
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	check(err)
	defer cluster.Close()
	consumer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("t"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(100*time.Millisecond))
	check(err)
	defer consumer.Close()
	produce := func(value string) {
		p, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic("t"))
		check(err)
		defer p.Close()
		check(p.ProduceSync(context.Background(), kgo.StringRecord(value)).FirstErr())
	}
	poll := func(d time.Duration) (records int, unknown bool) {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		for ctx.Err() == nil && records == 0 {
			fetches := consumer.PollFetches(ctx)
			records += fetches.NumRecords()
			fetches.EachError(func(_ string, _ int32, err error) { unknown = unknown || errors.Is(err, kerr.UnknownTopicID) })
		}
		return records, unknown
	}
	produce("old")
	before, _ := poll(20 * time.Second)
	check(cluster.DeleteTopic("t"))
	check(cluster.CreateTopic("t", 1, nil))
	produce("new")
	after, unknown := poll(20 * time.Second)
	consumer.PurgeTopicsFromConsuming("t")
	consumer.AddConsumeTopics("t")
	healed, _ := poll(20 * time.Second)
	fmt.Printf("records of the old topic: %d; of the new one in 20 s: %d, UNKNOWN_TOPIC_ID seen: %t; after purging and adding it: %d\n",
		before, after, unknown, healed)
	if before != 1 || after != 0 || !unknown || healed != 1 {
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/twmb/franz-go@v1.22.2 -require=github.com/twmb/franz-go/pkg/kfake@v0.0.0-20260918054303-01f206a7e32c -require=github.com/twmb/franz-go/pkg/kmsg@v1.15.0
go mod tidy >/dev/null 2>&1
go run .
