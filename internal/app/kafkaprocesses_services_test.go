//go:build services

package app_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestKafkaProcesses: on a real broker, what a process that was killed or stopped has not read of its topics is read by the other one, or
// after its restart; what was removed before it was read is said, and found by a run of the difference; topics made anew are read.
func TestKafkaProcesses(t *testing.T) {
	t.Parallel()
	addresses := strings.Split(os.Getenv("TUTTI_TEST_KAFKA_BROKERS"), ",")
	if addresses[0] == "" {
		t.Fatal("TUTTI_TEST_KAFKA_BROKERS is not set; deploy/local/kafka/start prints it")
	}
	connect := func() *kgo.Client {
		client, err := kgo.NewClient(kgo.SeedBrokers(addresses...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	admin := kadm.NewClient(connect())
	t.Cleanup(admin.Close)
	w := newWorld(t, settings{queueURL: externalQueue(t)})
	topics := []string{w.alias + "-events", w.alias + "-requests"}
	create := func() {
		t.Helper()
		w.eventually(wait, func() (bool, string) {
			made, err := admin.CreateTopics(t.Context(), 4, 1, nil, topics...)
			return err == nil && made.Error() == nil, fmt.Sprint(made, err)
		})
	}
	create()
	brokers := fmt.Sprintf("brokers: [%q], group: %s", strings.Join(addresses, `", "`), w.alias)
	w.set.repository = fmt.Sprintf("notifications: {kafka: {%s, topic: %s}}", brokers, topics[0])
	w.set.more = fmt.Sprintf("ingest: {kafka: {%s, requestTopic: %s}}\n", brokers, topics[1])
	changed := 0
	change := func() {
		t.Helper()
		// Each record is changed by a message on one of the topics, and on one of the partitions.
		ids := w.fill(fmt.Sprintf("S%d", changed), 16)
		records := []*kgo.Record{}
		for i, id := range ids {
			value := songEvent(code, fmt.Sprintf("S%d", changed), id, "PUBLISHED")
			if i%2 == 1 {
				value = maestroRequest(code, fmt.Sprintf("S%d", changed), id)
			}
			records = append(records, &kgo.Record{Topic: topics[i%2], Partition: int32(i / 2 % 4), Value: []byte(value)})
		}
		changed++
		client := connect() // which knows no topic from before
		defer client.Close()
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	committed := func() {
		t.Helper()
		w.eventually(wait, func() (bool, string) {
			lag, err := admin.Lag(t.Context(), w.alias)
			return err == nil && lag[w.alias].Lag.Total() == 0, fmt.Sprint(lag, err)
		})
	}
	one, two := w.secondProcess().startChild(), w.startChild()
	change()
	w.awaitConverged(wait)
	one.kill()
	change()
	w.awaitConverged(wait)
	other := w.secondProcess()
	one = other.startChild()
	w.url = other.url
	if err := two.stop(); err != nil {
		t.Error(err)
	}
	change()
	w.awaitConverged(wait)
	committed()
	one.kill()
	change() // and removed before it is read
	ends, err := admin.ListEndOffsets(t.Context(), topics...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.DeleteRecords(t.Context(), ends.Offsets()); err != nil {
		t.Fatal(err)
	}
	w.startChild()
	w.awaitConverged(wait)
	if n := w.missedOffsets(); n != 16 {
		t.Errorf("%s offsets were missed, want 16", fmt.Sprint(n))
	}
	if _, err := admin.DeleteTopics(t.Context(), topics...); err != nil {
		t.Fatal(err)
	}
	create()
	change()
	w.awaitConverged(wait)
}

// missedOffsets returns the sum of the metric of missed offsets of the process that requests go to.
func (w *world) missedOffsets() (n int) {
	w.t.Helper()
	return (&member{world: w}).total("tutti_kafka_missed_offsets_total")
}
