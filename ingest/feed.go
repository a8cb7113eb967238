package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"tutti/internal/core"
)

const (
	// otherServerEvery is how often at most a letter is put for events of one other server on a topic.
	otherServerEvery = time.Minute
	// maxTopicLetters is how many messages that are not understood are kept, of the repository that a topic is of, before
	// the rest is only counted.
	maxTopicLetters = 10_000
	// maxOtherServers is how many names of other servers are remembered, and so how many letters there can be.
	maxOtherServers = 100
)

// Feed takes the messages of one Kafka topic for the repositories that share it. It is safe for concurrent use.
type Feed struct {
	service  *Service
	topic    string
	source   string
	audience audience

	mu     sync.Mutex
	others map[string]time.Time // the names of other servers, and when a letter was put for each
}

// FeedConfig says what a topic carries.
type FeedConfig struct {
	// Topic is the topic's name.
	Topic string
	// Repositories are the codes of the repositories whose events are on the topic. Events are told apart by songServerId
	// and by category.
	Repositories []string
	// Requests tells that the topic carries requests of the form of Maestro's for any configured repository.
	Requests bool
}

// NewFeed makes the Feed of a topic. CodeNotFound when a repository is not configured, CodeInvalid when the topic carries
// nothing, CodeUnsupported when the Service keeps no letters: a message that is not understood would be lost.
func (s *Service) NewFeed(cfg FeedConfig) (*Feed, error) {
	if s.cfg.Letters == nil {
		return nil, errNoLetters()
	}
	if cfg.Topic == "" || len(cfg.Repositories) == 0 && !cfg.Requests {
		return nil, core.NewError(core.CodeInvalid, "a feed needs a topic, and repositories or requests on it")
	}
	f := &Feed{
		service: s, topic: cfg.Topic, source: sourceKafka + cfg.Topic, audience: audience{requests: cfg.Requests},
		others: map[string]time.Time{},
	}
	for _, code := range cfg.Repositories {
		repo, err := s.repository(code)
		if err != nil {
			return nil, err
		}
		f.audience.repositories = append(f.audience.repositories, repo)
	}
	return f, nil
}

// Handle takes the values of a batch of messages and returns nil only when each is published or kept as a dead letter;
// after an error the batch may be given again, and nothing is done twice that must not be. position says where the i-th
// message stands, and at when it was written: a removal is as of that time, so that one that is read again removes nothing
// newer, and so is every event of a topic that carries requests, whose removals and other events are thus ordered by one clock.
// A nil value, which Kafka calls a tombstone, is skipped. Of several events for one record the last one counts. An event of
// another server, as is normal on a topic that servers share, is counted, and one letter is kept for each such server.
func (f *Feed) Handle(
	ctx context.Context, values [][]byte, position func(i int) string, at func(i int) time.Time,
) error {
	b := feedBatch{intake: newIntake(core.CauseKafka, ""), results: map[string]int{}, others: map[string]*Fault{}}
	for i, value := range values {
		f.take(&b, value, func() string { return position(i) }, func() time.Time { return at(i) })
	}
	if err := f.service.submit(ctx, b.intake); err != nil {
		return err
	}
	if err := f.service.keep(ctx, f.bounded(b.letters)); err != nil {
		return err
	}
	if err := f.tellOthers(ctx, b.others); err != nil {
		return err
	}
	for result, n := range b.results {
		f.service.cfg.Metrics.notify(viaKafka, result, n)
	}
	return nil
}

// feedBatch is what a batch of messages comes to.
type feedBatch struct {
	intake  *intake
	letters []core.DeadLetter
	others  map[string]*Fault
	results map[string]int
}

// take reads one message.
func (f *Feed) take(b *feedBatch, value []byte, position func() string, at func() time.Time) {
	if value == nil {
		b.results[resultSkipped]++
		return
	}
	e, fault := ParseEvent(value)
	var repositories []core.Repository
	if fault == nil {
		repositories, fault = f.service.resolve(e, f.audience)
	}
	if fault == nil {
		b.results[resultAccepted]++
		asOf := core.Version(0)
		if e.Remove || f.audience.requests {
			// Kafka counts milliseconds: a removal is newer than what was asked for in the one in which it was written.
			asOf = f.service.asOf(at().Add(time.Millisecond - 1))
		}
		for _, repo := range repositories {
			b.intake.add(f.service.asked(e, repo.Code), repo.Code, asOf)
		}
		return
	}
	b.results[fault.result()]++
	if fault.Kind == FaultOtherServer {
		b.others[fault.Server] = fault
		return
	}
	b.letters = append(b.letters, letterOf(fault, f.only(), f.source, position(), value))
}

// bounded returns the letters that are kept: where a topic carries too much that is not understood, the last one stands for
// those beyond, and counts them, as the topic itself still has them for a while. A disk must not fill up with them.
func (f *Feed) bounded(letters []core.DeadLetter) []core.DeadLetter {
	index := f.service.cfg.LetterIndex
	if index == nil || len(letters) == 0 {
		return letters
	}
	room := max(0, maxTopicLetters-index.CountReason(f.only(), core.ReasonNotUnderstood))
	if len(letters) <= room {
		return letters
	}
	beyond := letters[room:]
	about := Fault{Message: fmt.Sprintf("the topic carries more than %d messages that are not understood: this letter counts "+
		"those beyond, the last one stands at the position; mend their sender, then discard the letters", maxTopicLetters)}
	rest := letterOf(&about, f.only(), f.source, beyond[len(beyond)-1].Position, fmt.Appendf(nil, "{%q:%q}", "topic", f.topic))
	rest.Attempts = len(beyond)
	return append(letters[:room:room], rest)
}

// only returns the code of the feed's repository where there is just one, else "".
func (f *Feed) only() string {
	if len(f.audience.repositories) != 1 || f.audience.requests {
		return ""
	}
	return f.audience.repositories[0].Code
}

// tellOthers keeps one letter for each other server whose events arrive, at most once a minute.
func (f *Feed) tellOthers(ctx context.Context, others map[string]*Fault) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.service.now()
	for name, fault := range others {
		last, known := f.others[name]
		if known && now.Sub(last) < otherServerEvery || !known && len(f.others) >= maxOtherServers {
			continue
		}
		letter, err := f.otherLetter(name, fault)
		if err != nil {
			return err
		}
		if err := f.service.keep(ctx, []core.DeadLetter{letter}); err != nil {
			return err
		}
		f.others[name] = now
		f.service.cfg.Logger.WarnContext(ctx, "events of another server arrive on a topic", "topic", f.topic, "server", name)
	}
	return nil
}

// otherLetter makes the letter of another server. Its document is not an event but the server's name, so that there is
// one letter for each, and for a server that has a code it is the request that makes up for the events that passed: once
// the repository is configured, a retry of the letter runs over it.
func (f *Feed) otherLetter(name string, fault *Fault) (core.DeadLetter, error) {
	about := Fault{Message: fmt.Sprintf(
		"events of server %q arrive on this topic, but no repository that reads it has that code: "+
			"configure one, or leave them to whoever else reads the topic", name)}
	member := memberRepository
	if fault.Member == memberCategory {
		member = memberCategory
		about.Message = fmt.Sprintf("events of category %q arrive on this topic, but no repository that reads it has that "+
			"category: configure one, or leave them to whoever else reads the topic", name)
	}
	document, err := json.Marshal(map[string]string{member: name})
	if err != nil {
		return core.DeadLetter{}, core.WrapError(core.CodeInternal, "encoding the name of a server", err)
	}
	letter := letterOf(&about, "", f.source, "", document)
	letter.Reason = core.ReasonUnknownRepository
	if member == memberRepository {
		letter.Repository = name
	}
	return letter, nil
}

func errNoLetters() error {
	return core.NewError(core.CodeUnsupported, "dead letters are not kept here")
}
