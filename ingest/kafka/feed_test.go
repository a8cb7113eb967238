package kafka_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"tutti/ingest"
	"tutti/ingest/kafka"
	"tutti/internal/core"
	"tutti/internal/upstream/song"
)

var _ kafka.Handler = (*ingest.Feed)(nil)

// store is a queue's ports in memory, as far as a feed of records needs them.
type store struct {
	mu       sync.Mutex
	requests map[string]int
	letters  map[string]core.DeadLetter // by position
}

func (s *store) Publish(_ context.Context, r core.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[r.RecordID]++
	return r.Validate()
}

func (s *store) Put(_ context.Context, l core.DeadLetter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letters[l.Position] = l
	return nil
}

func (s *store) counts() (requests, letters int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests), len(s.letters)
}

func (*store) List(context.Context, string, string, int, string) ([]core.DeadLetter, string, error) {
	return nil, "", nil
}

func (*store) Get(context.Context, string) (core.DeadLetter, error) { return core.DeadLetter{}, nil }

func (*store) Delete(context.Context, string) error { return nil }

// TestPoisonDoesNotStopAPartition: of a topic with poison in it every good event is published, every poisonous one is a
// letter that says where it stood, and everything is committed.
func TestPoisonDoesNotStopAPartition(t *testing.T) {
	t.Parallel()
	_, b := fake(t, 2)
	s := &store{requests: map[string]int{}, letters: map[string]core.DeadLetter{}}
	service, err := ingest.New([]core.Repository{{Code: "song.ca", Type: core.TypeSong}}, s, nil, nil, ingest.Config{
		DeadLetters: s, Formats: map[core.RepositoryType]core.EventFormat{core.TypeSong: song.Type().Events},
	})
	if err != nil {
		t.Fatal(err)
	}
	feed, err := service.NewFeed(ingest.FeedConfig{Topic: topic, Repositories: []string{"song.ca"}})
	if err != nil {
		t.Fatal(err)
	}
	const all, every = 4000, 100
	var events []string
	for i := range all {
		event := fmt.Sprintf(`{"analysisId":"A%d","studyId":"S","state":"PUBLISHED","songServerId":"song.ca"}`, i)
		if i%every == 0 {
			event = fmt.Sprintf(`{"analysisId":%d,"studyId":"S"}`, i)
		}
		events = append(events, event)
	}
	b.produce(t, 2, events...)
	start(t, b.config(), feed)
	eventually(t, "every event", func() bool {
		requests, letters := s.counts()
		return requests == all-all/every && letters == all/every
	})
	eventually(t, "the commit", func() bool { return b.committed(t) == all })
	if l := s.letters["partition 0, offset 0"]; l.Source != "kafka song-analysis" || l.Hint != "analysisId must be a string" {
		t.Errorf("the first letter is %+v", l)
	}
}
