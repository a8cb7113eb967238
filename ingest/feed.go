package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"tutti/ingest/event"
	"tutti/internal/core"
)

const (
	// otherServerInterval is the shortest interval between dead letters for events of one other server on a topic.
	otherServerInterval = time.Minute
	// maxTopicDeadLetters is how many undecodable messages of a topic are stored, for the topic's repository, before the
	// rest is only counted.
	maxTopicDeadLetters = 10_000
	// maxOtherServers limits the names of other servers that are remembered, and so the dead letters for them.
	maxOtherServers = 100
)

// Feed handles the messages of one Kafka topic for the repositories that share it. It is safe for concurrent use.
type Feed struct {
	service *Service
	topic   string
	source  string
	targets eventTargets

	mu           sync.Mutex
	otherServers map[string]time.Time // the names of other servers, and when a letter was put for each
}

// FeedConfig configures a Feed.
type FeedConfig struct {
	// Topic is the topic's name.
	Topic string
	// Repositories are the codes of the repositories whose events are on the topic. Events are assigned by the
	// servers that they name.
	Repositories []string
	// Requests reports whether the topic carries requests in Maestro's format for any configured repository.
	Requests bool
}

// NewFeed returns the Feed of a topic. CodeNotFound when a repository is not configured, CodeInvalid when the topic
// carries nothing, CodeUnsupported when the Service stores no dead letters: undecodable messages would be lost.
func (s *Service) NewFeed(cfg FeedConfig) (*Feed, error) {
	if s.cfg.DeadLetters == nil {
		return nil, errNoDeadLetters()
	}
	if cfg.Topic == "" || len(cfg.Repositories) == 0 && !cfg.Requests {
		return nil, core.NewError(core.CodeInvalid, "a feed needs a topic, and repositories or requests on it")
	}
	f := &Feed{
		service: s, topic: cfg.Topic, source: sourceKafka + cfg.Topic, targets: eventTargets{requests: cfg.Requests},
		otherServers: map[string]time.Time{},
	}
	for _, code := range cfg.Repositories {
		repo, err := s.repository(code)
		if err != nil {
			return nil, err
		}
		f.targets.repositories = append(f.targets.repositories, repo)
	}
	return f, nil
}

// Handle processes a batch of messages and returns nil only when each is published or stored as a dead letter; after an error
// the batch may be passed again safely. A removal is as of the time of its message, so that a message that is read again
// removes nothing newer. On a topic that carries requests, every event is as of that time, so that one clock orders removals
// and other events. A tombstone is skipped. Of several events for one record the last one counts. An event of another server,
// which is normal on a topic that servers share, is counted, and one dead letter is stored for each such server. The Request
// of a record continues the trace of its message.
func (f *Feed) Handle(ctx context.Context, messages []core.TopicMessage) error {
	b := feedBatch{requests: newRequestSet(core.CauseKafka, ""), results: map[string]int{}, otherServers: map[string]*event.Rejection{}}
	for _, m := range messages {
		f.addMessage(&b, m)
	}
	if err := f.service.submit(ctx, b.requests); err != nil {
		return err
	}
	if err := f.service.putDeadLetters(ctx, f.limitDeadLetters(b.deadLetters)); err != nil {
		return err
	}
	if err := f.reportOtherServers(ctx, b.otherServers); err != nil {
		return err
	}
	for result, n := range b.results {
		f.service.cfg.Metrics.notify(viaKafka, result, n)
	}
	return nil
}

// feedBatch is the outcome of a batch of messages.
type feedBatch struct {
	requests     *requestSet
	deadLetters  []core.DeadLetter
	otherServers map[string]*event.Rejection
	results      map[string]int
}

// addMessage decodes one message.
func (f *Feed) addMessage(b *feedBatch, m core.TopicMessage) {
	if m.Value == nil {
		b.results[resultSkipped]++
		return
	}
	e, rejection := f.service.events.Parse(m.Value)
	var repositories []core.Repository
	if rejection == nil {
		repositories, rejection = f.service.resolve(e, f.targets)
	}
	if rejection == nil {
		f.service.logUnknown(e, f.source)
		b.results[resultAccepted]++
		asOf := core.Version(0)
		if e.Remove || f.targets.requests {
			// Kafka timestamps are in milliseconds: a removal is newer than anything requested in the millisecond in which it
			// was written.
			asOf = f.service.asOf(m.At.Add(time.Millisecond - 1))
		}
		parent := f.service.cfg.Tracer.Parent(m.Traceparent)
		for _, repo := range repositories {
			b.requests.add(e, repo.Code, asOf, parent)
		}
		return
	}
	b.results[resultOf(rejection)]++
	if rejection.Kind == event.OtherServer {
		b.otherServers[rejection.Server] = rejection
		return
	}
	b.deadLetters = append(b.deadLetters, messageDeadLetter(rejection, f.soleRepository(), f.source, m.Position(), m.Value))
}

// limitDeadLetters returns the dead letters to store: beyond the limit of a topic, the last one stands for the rest
// and counts them, since the topic still has them for some time. They must not fill the disk.
func (f *Feed) limitDeadLetters(letters []core.DeadLetter) []core.DeadLetter {
	index := f.service.cfg.DeadLetterIndex
	if index == nil || len(letters) == 0 {
		return letters
	}
	room := max(0, maxTopicDeadLetters-index.CountReason(f.soleRepository(), core.ReasonNotUnderstood))
	if len(letters) <= room {
		return letters
	}
	beyond := letters[room:]
	about := event.Rejection{Message: fmt.Sprintf("the topic has more than %d messages that cannot be decoded: this dead letter counts "+
		"those above the limit, the last of them is at the position; fix their sender, then discard the dead letters", maxTopicDeadLetters)}
	rest := messageDeadLetter(&about, f.soleRepository(), f.source, beyond[len(beyond)-1].Position, fmt.Appendf(nil, "{%q:%q}", "topic", f.topic))
	rest.Attempts = len(beyond)
	return append(letters[:room:room], rest)
}

// soleRepository returns the code of the feed's repository if there is only one, else "".
func (f *Feed) soleRepository() string {
	if len(f.targets.repositories) != 1 || f.targets.requests {
		return ""
	}
	return f.targets.repositories[0].Code
}

// reportOtherServers stores one dead letter for each other server whose events arrive, at most once a minute.
func (f *Feed) reportOtherServers(ctx context.Context, others map[string]*event.Rejection) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.service.now()
	for name, rejection := range others {
		last, known := f.otherServers[name]
		if known && now.Sub(last) < otherServerInterval || !known && len(f.otherServers) >= maxOtherServers {
			continue
		}
		letter, err := f.otherServerDeadLetter(name, rejection)
		if err != nil {
			return err
		}
		if err := f.service.putDeadLetters(ctx, []core.DeadLetter{letter}); err != nil {
			return err
		}
		f.otherServers[name] = now
		f.service.cfg.Logger.WarnContext(ctx, "events of another server arrive on a topic", "topic", f.topic, "server", name)
	}
	return nil
}

// otherServerDeadLetter returns the dead letter of another server. Its document is not an event but the server's
// name, so that there is one for each. For a server that has a code, the document is a request for a run that
// replaces the missed events: once the repository is configured, retrying the dead letter runs it.
func (f *Feed) otherServerDeadLetter(name string, rejection *event.Rejection) (core.DeadLetter, error) {
	about := event.Rejection{Message: fmt.Sprintf(
		"events of server %q arrive on this topic, but no repository that reads it has that code: "+
			"configure one, or ignore this if other consumers read the topic", name)}
	member := event.MemberRepository
	if term := rejection.ServerTerm; term != "" {
		member = rejection.Member
		about.Message = fmt.Sprintf("events of %s %q arrive on this topic, but no repository that reads it has that "+
			"%s: configure one, or ignore this if other consumers read the topic", term, name, term)
	}
	document, err := json.Marshal(map[string]string{member: name})
	if err != nil {
		return core.DeadLetter{}, core.WrapError(core.CodeInternal, "encoding the name of a server", err)
	}
	letter := messageDeadLetter(&about, "", f.source, "", document)
	letter.Reason = core.ReasonUnknownRepository
	if member == event.MemberRepository {
		letter.Repository = name
	}
	return letter, nil
}

func errNoDeadLetters() error {
	return core.NewError(core.CodeUnsupported, "dead letters are not stored here")
}
