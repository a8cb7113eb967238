package app_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// Topics of the tests.
const (
	songTopic    = "song-analysis"
	lyricTopic   = "clinical-changes"
	requestTopic = "maestro_index_requests"
)

// broker is a Kafka cluster in process.
type broker struct {
	t       *testing.T
	cluster *kfake.Cluster
}

// startBroker starts a broker with the tests' topics, of two partitions each.
func startBroker(t *testing.T, opts ...kfake.Opt) broker {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.SeedTopics(2, songTopic, lyricTopic, requestTopic),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return broker{t, cluster}
}

// brokers returns the broker's addresses as a YAML list.
func (b broker) brokers() string { return `["` + strings.Join(b.cluster.ListenAddrs(), `","`) + `"]` }

// notifications returns the YAML of a repository with a topic of notifications.
func (b broker) notifications(topic string) string {
	return "notifications: {kafka: {brokers: " + b.brokers() + ", topic: " + topic + "}}"
}

// requests returns the YAML that makes the topic of requests be read.
func (b broker) requests() string {
	return "ingest: {kafka: {brokers: " + b.brokers() + "}}\n"
}

// produce puts messages on a partition of a topic, in their order.
func (b broker) produce(topic string, partition int32, values ...string) {
	b.t.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(b.cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics(),
	)
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}
	}
	if err := client.ProduceSync(b.t.Context(), records...).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

// deadLetters returns the dead letters that a query selects, the newest first.
func (w *world) deadLetters(query string) []gjson.Result {
	w.t.Helper()
	return w.mustRequest(http.MethodGet, "/dead-letters"+query, http.StatusOK).get("deadLetters").Array()
}

// awaitDeadLetters waits until a query selects n dead letters, and returns them.
func (w *world) awaitDeadLetters(query string, n int) []gjson.Result {
	w.t.Helper()
	var list []gjson.Result
	w.eventually(wait, func() (bool, string) {
		list = w.deadLetters(query)
		return len(list) == n, fmt.Sprintf("%d dead letters, want %d: %s", len(list), n, list)
	})
	return list
}

// addRepository adds a repository to a world that is not started, and removes its index at the end.
func (w *world) addRepository(yaml, alias string) {
	w.set.more = "  - " + strings.ReplaceAll(strings.TrimSpace(yaml), "\n", "\n    ") + "\n" + w.set.more
	w.t.Cleanup(func() { w.dropIndex(alias) })
}

// dropIndex removes the index of an alias from an engine that outlives the test.
func (w *world) dropIndex(alias string) {
	base := w.engine.url()
	if base == "" {
		return
	}
	call := func(method, path string) gjson.Result {
		req, err := http.NewRequestWithContext(context.WithoutCancel(w.t.Context()), method, base+path, nil)
		if err != nil {
			return gjson.Result{}
		}
		resp, err := w.client.Do(req)
		if err != nil {
			w.t.Errorf("forgetting the index %s: %v", alias, err)
			return gjson.Result{}
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body) // what is cut short is no JSON
		return gjson.ParseBytes(body)
	}
	call(http.MethodGet, "/_alias/"+alias).ForEach(func(name, value gjson.Result) bool {
		if value.Get("aliases").Exists() {
			call(http.MethodDelete, "/"+name.String())
		}
		return true
	})
}

// TestKafkaSong: changes on Song's topic are indexed, also those sent while tutti was down; a message that cannot be parsed is kept as a
// dead letter and delays none.
func TestKafkaSong(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	w := newWorld(t, settings{repository: b.notifications(songTopic)})
	ids := w.fill("S1", 40)
	b.produce(songTopic, 0, songEvent(code, "S1", ids[0], "PUBLISHED"), songEvent(code, "S1", ids[1], "PUBLISHED"))
	w.start()
	w.awaitOutcomes(core.OutcomeIndexed, 2) // a new group begins with the oldest message

	poison := []string{"", "{", `{"studyId":"S1"}`, `["a"]`, "\xff\xfe", songEvent(code, "S1", strings.Repeat("x", 600), "PUBLISHED")}
	for i, message := range poison {
		b.produce(songTopic, 1, message, songEvent(code, "S1", ids[2+i], "PUBLISHED"))
	}
	w.awaitOutcomes(core.OutcomeIndexed, 2+len(poison))
	letters := w.awaitDeadLetters("?reason=not_understood", len(poison))
	at := map[string]string{}
	for _, l := range letters {
		at[l.Get("position").String()] = l.Get("hint").String()
		if l.Get("source").String() != "kafka "+songTopic || l.Get("repository").String() != code {
			t.Errorf("dead letter %s", l.Raw)
		}
	}
	for i, hint := range []string{
		"the event is empty", "the event is not valid JSON", "the event has none of the members repositoryCode, systemId and analysisId",
		"the event is not a JSON object", "the event is not valid JSON", "analysisId has 600 bytes, the limit is 512",
	} {
		if got := at[fmt.Sprintf("partition 1, offset %d", 2*i)]; got != hint {
			t.Errorf("the hint of message %d is %q, want %q: %v", i, got, hint, at)
		}
	}

	w.song.SetState(ids[0], "UNPUBLISHED")
	b.produce(songTopic, 0, songEvent(code, "S1", ids[0], "PUBLISHED"))
	w.awaitOutcomes(core.OutcomeRemoved, 1)
	b.produce(songTopic, 0, songEvent(code, "S1", ids[1], "UNPUBLISHED")) // late: it is published
	w.awaitOutcomes(core.OutcomeIndexed, 3+len(poison))

	w.stop()
	asked := w.song.Requests(testkit.RouteRecord)
	for i, id := range ids[2+len(poison):] {
		b.produce(songTopic, int32(i%2), songEvent(code, "S1", id, "PUBLISHED"))
	}
	w.start()
	w.awaitConverged(wait)
	if n, want := w.song.Requests(testkit.RouteRecord)-asked, 40-2-len(poison); n != want {
		t.Errorf("%d records were fetched after the restart, want the %d of the messages sent before it", n, want)
	}
	if n := len(w.deadLetters("")); n != len(poison) {
		t.Errorf("%d dead letters after the restart, want %d", n, len(poison))
	}
}

// TestKafkaShared: of two repositories on one topic and group, songServerId selects the one of an event; all events of an unknown
// server are one dead letter.
func TestKafkaShared(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	w := newWorld(t, settings{repository: b.notifications(songTopic)})
	other, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	alias := w.alias + "-two"
	w.addRepository(fmt.Sprintf("code: song.two\ntype: song\nurl: %q\nindexName: %s\n%s", other.URL(), alias, b.notifications(songTopic)), alias)
	mine := w.fill("S1", 30)
	theirs := dataset.GenerateAnalyses(2, "S1", 30)
	other.PutAll(theirs...)
	w.start()
	w.awaitPaused(false)
	var messages []string
	for i := range mine {
		messages = append(messages, songEvent(code, "S1", mine[i], "PUBLISHED"),
			songEvent("song.two", "S1", theirs[i].ID, "PUBLISHED"),
			songEvent("song.three", "S1", fmt.Sprintf("foreign-%d", i), "PUBLISHED"))
	}
	for i, message := range messages {
		b.produce(songTopic, int32(i%2), message)
	}
	w.awaitConverged(wait)
	want := map[string]string{}
	for _, a := range theirs {
		want[a.ID] = string(a.Body)
	}
	w.eventually(wait, func() (bool, string) {
		fault := difference(want, w.storedRecords(alias, map[string]string{
			"code": "song.two", "name": "", "organization": "", "country": "", "url": other.URL(), "type": "song",
		}))
		return fault == "", fault
	})
	letters := w.awaitDeadLetters("", 1)
	if l := letters[0]; l.Get("reason").String() != core.ReasonUnknownRepository || l.Get("repository").String() != "song.three" ||
		!strings.Contains(l.Get("hint").String(), `events of server "song.three" arrive on this topic`) ||
		l.Get("source").String() != "kafka "+songTopic {
		t.Errorf("dead letter %s", l.Raw)
	}
	if one, two := w.song.Requests(testkit.RouteRecord), other.Requests(testkit.RouteRecord); one != 30 || two != 30 {
		t.Errorf("%d and %d records were fetched from the servers, want 30 each", one, two)
	}
	a := w.mustRequest(http.MethodPost, "/dead-letters/"+letters[0].Get("id").String()+"/retry", http.StatusConflict)
	if a.get("detail").String() != `repository "song.three" is not configured` || a.get("hint").String() == "" {
		t.Errorf("retry of another server's letter: %s", a.raw)
	}
}

// TestKafkaLyric: a flat record on Lyric's topic makes the compound one be fetched; those of another category are one dead letter.
func TestKafkaLyric(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	w := newWorld(t, tabular(settings{repository: b.notifications(lyricTopic)}))
	ids := w.addRecords("O1", 25)
	w.start()
	w.awaitPaused(false)
	for i, id := range ids {
		b.produce(lyricTopic, int32(i%2), lyricEvent("O1", id, false),
			strings.Replace(lyricEvent("O1", fmt.Sprintf("foreign-%d", i), true), `"categoryId":1`, `"categoryId":7`, 1))
	}
	w.awaitLyricConverged()
	w.lyric.SetValid(ids[0], false)
	w.lyric.Remove(ids[1])
	b.produce(lyricTopic, 0, lyricEvent("O1", ids[0], true), lyricEvent("O1", ids[1], true))
	w.awaitLyricConverged()
	letters := w.awaitDeadLetters("", 1)
	if l := letters[0]; l.Get("reason").String() != core.ReasonUnknownRepository ||
		!strings.Contains(l.Get("hint").String(), `events of category "7" arrive on this topic`) {
		t.Errorf("dead letter %s", l.Raw)
	}
	for i := range 25 {
		if n := w.lyric.RecordRequests(fmt.Sprintf("foreign-%d", i)); n != 0 {
			t.Errorf("a record of another category was fetched %d times", n)
		}
	}
}

// TestKafkaRequests: requests of Maestro's clients for a record, a study, a repository and a removal are done; one for a
// repository that is not configured is a dead letter.
func TestKafkaRequests(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	w := newWorld(t, settings{more: b.requests()})
	one, two := w.fill("S1", 10), w.fill("S2", 20)
	w.fill("S3", 5)
	w.start()
	w.awaitPaused(false)
	say := func(message string) {
		t.Helper()
		b.produce(requestTopic, 0, message)
	}
	say(maestroRequest(code, "S1", one[0]))
	w.awaitOutcomes(core.OutcomeIndexed, 1)
	say(maestroRequest(code, "S2", ""))
	w.awaitOutcomes(core.OutcomeIndexed, 21)
	say(removalRequest(code, "S2", two[0]))
	w.awaitOutcomes(core.OutcomeRemoved, 1)
	if got := w.documents(); len(got) != 20 || got[two[0]] != "" {
		t.Errorf("%d documents after the removal, want 20", len(got))
	}
	say(maestroRequest("song.other", "S1", one[0]))
	say(removalRequest(code, "S1", ""))
	say(songEvent(code, "S1", one[1], "PUBLISHED")) // no request
	say(maestroRequest(code, "", ""))
	w.awaitConverged(wait)
	jobs := w.mustRequest(http.MethodGet, "/jobs", http.StatusOK).get("jobs").Array()
	if len(jobs) != 2 || jobs[0].Get("scope").String() != "repository" || jobs[0].Get("cause").String() != "kafka" ||
		jobs[1].Get("scope").String() != "organization" || jobs[1].Get("organization").String() != "S2" {
		t.Errorf("jobs: %s", jobs)
	}
	for _, j := range jobs {
		if ended := w.awaitJob(j.Get("id").String()); ended.Get("state").String() != string(core.JobSucceeded) {
			t.Errorf("job %s", ended.Raw)
		}
	}
	hints := map[string]string{}
	for _, l := range w.awaitDeadLetters("", 3) {
		hints[l.Get("position").String()] = l.Get("reason").String() + ", " + l.Get("repository").String() + ": " + l.Get("hint").String()
	}
	for position, want := range map[string]string{
		"partition 0, offset 3": `unknown_repository, song.other: repositoryCode "song.other" is not configured`,
		"partition 0, offset 4": "not_understood, : analysisId is missing: removeAnalysis exists for one record only",
		"partition 0, offset 5": "not_understood, : repositoryCode is missing: this topic accepts only requests",
	} {
		if hints[position] != want {
			t.Errorf("%s: %q, want %q", position, hints[position], want)
		}
	}
	if n := w.song.RecordRequests(one[1]); n != 0 {
		t.Errorf("the record of an event on the topic of requests was fetched %d times", n)
	}
}

// heldPort binds a port, so that no other test takes it. Connections are refused until listen is called.
func heldPort(t *testing.T) (port int, listen func() (net.Listener, error)) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	socket := os.NewFile(uintptr(fd), "port")
	t.Cleanup(func() { _ = socket.Close() })
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return address.(*syscall.SockaddrInet4).Port, func() (net.Listener, error) {
		if err := syscall.Listen(fd, 128); err != nil {
			return nil, err
		}
		defer func() { _ = socket.Close() }() // the listener has its own copy
		return net.FileListener(socket)
	}
}

// TestKafkaUnreachable: without its broker tutti starts, says so, and does all else; when the broker appears, its topic is
// read.
func TestKafkaUnreachable(t *testing.T) {
	t.Parallel()
	port, listen := heldPort(t)
	w := startWorld(t, settings{repository: fmt.Sprintf(
		"notifications: {kafka: {brokers: [\"127.0.0.1:%d\"], topic: %s, group: later}}", port, songTopic)})
	ids := w.fill("S1", 10)
	a := w.awaitReady()
	if a.get("components.kafka").String() != "down" || a.get("status").String() != "healthy" {
		t.Errorf("ready without the broker: %s", a.raw)
	}
	w.trigger("S1", ids[0])
	w.awaitOutcomes(core.OutcomeIndexed, 1)
	w.run("S1", "", core.JobSucceeded)
	w.eventually(wait, func() (bool, string) {
		text := string(w.mustRequest(http.MethodGet, "/metrics", http.StatusOK).raw)
		_, text, _ = strings.Cut(text, "# TYPE tutti_kafka_up")
		text = text[:min(len(text), 200)]
		return strings.Contains(text, `tutti_kafka_up{topic="`+songTopic+`"} 0`), text
	})

	b := startBroker(t, kfake.Ports(port), kfake.ListenFn(func(string, string) (net.Listener, error) { return listen() }))
	w.put("S1", ids[0], fmt.Sprintf(`"experiment":{"number":%d}`, rand.Uint32()))
	b.produce(songTopic, 0, songEvent(code, "S1", ids[0], "PUBLISHED"))
	w.awaitConverged(wait)
	w.eventually(wait, func() (bool, string) {
		a := w.awaitReady()
		up := w.metric("tutti_kafka_up", "topic", songTopic)
		return a.get("components.kafka").String() == "up" && up == 1, fmt.Sprintf("%s, tutti_kafka_up %v", a.raw, up)
	})
}

// TestKafkaMissed: what retention removes from a topic before it is read is said in /ready and counted, and a run of the difference
// finds what it would have changed.
func TestKafkaMissed(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	var hold atomic.Bool
	release := make(chan struct{})
	w := newWorld(t, settings{repository: b.notifications(songTopic), song: testkit.SongConfig{
		BeforePage: func(*testkit.SongServer, int, testkit.PageCall) {
			if hold.Load() {
				waitFor(t, release)
			}
		},
	}})
	ids := w.fill("S1", 20)
	w.start()
	w.run("", "", core.JobSucceeded)
	b.produce(songTopic, 0, songEvent(code, "S1", ids[0], "PUBLISHED"))
	w.awaitOutcomes(core.OutcomeIndexed, 21) // of the run, and of the message, which the stop commits
	w.stop()

	w.song.SetState(ids[0], "UNPUBLISHED")
	w.put("S1", ids[1], `"experiment":{"changed":true}`)
	for _, id := range append(ids[:2:2], w.fill("S2", 3)...) {
		b.produce(songTopic, 0, songEvent(code, "any", id, "PUBLISHED"))
	}
	if err := b.cluster.DeleteRecords(songTopic, 0, 6); err != nil {
		t.Fatal(err)
	}
	hold.Store(true) // /ready has the reason while the run lasts
	w.start()
	job := ""
	w.eventually(wait, func() (bool, string) {
		reasons := w.awaitReady().get("reasons").String()
		_, after, found := strings.Cut(reasons, fmt.Sprintf(`repository %s: the Kafka topic \"%s\" removed messages before they were read (5 offsets, `, code, songTopic))
		_, after, _ = strings.Cut(after, "; job ")
		job, _, _ = strings.Cut(after, " compares the repository with its index")
		return found && job != "", reasons
	})
	close(release)
	ended := w.awaitJob(job)
	if ended.Get("state").String() != string(core.JobSucceeded) || !ended.Get("difference").Bool() || ended.Get("cause").String() != string(core.CauseKafka) {
		t.Errorf("the job of the missed messages: %s", ended.Raw)
	}
	w.awaitConverged(wait)
	if n := w.metric("tutti_kafka_missed_offsets_total", "topic", songTopic); n != 5 {
		t.Errorf("the metric counts %v offsets, want 5", n)
	}
	w.eventually(wait, func() (bool, string) {
		reasons := w.awaitReady().get("reasons").String()
		return !strings.Contains(reasons, "before they were read"), reasons
	})
}

// TestKafkaQueueFull: while the queue is full, no message is skipped, also by a restart: all are done when it accepts requests again.
func TestKafkaQueueFull(t *testing.T) {
	t.Parallel()
	const room = 30
	b := startBroker(t)
	w := newWorld(t, settings{faulty: true, maxPending: room, repository: b.notifications(songTopic)})
	ids := w.fill("S1", 2*room)
	w.engine.setDown(true)
	w.start()
	w.awaitPaused(true)
	for _, id := range ids[:room] {
		w.trigger("S1", id)
	}
	for i, id := range ids[room:] {
		b.produce(songTopic, int32(i%2), songEvent(code, "S1", id, "PUBLISHED"))
	}
	w.eventually(wait, func() (bool, string) {
		return strings.Contains(strings.Join(w.logs.all(), ""), "messages were not handled and are retried"), "no batch is refused"
	})
	w.stop() // in the middle of that
	w.engine.setDown(false)
	w.start()
	w.awaitPaused(false)
	w.awaitConverged(wait)
	if n := len(w.deadLetters("")); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}
