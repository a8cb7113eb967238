package alert

import (
	"time"
	"unicode/utf8"
)

// Kind is a kind of event.
type Kind string

// The kinds of events.
const (
	JobFailed           Kind = "job_failed"
	JobPartial          Kind = "job_partial"
	RepositoryPaused    Kind = "repository_paused"
	RepositoryResumed   Kind = "repository_resumed"
	DeadLetters         Kind = "dead_letters"
	Drift               Kind = "drift"
	kindTest            Kind = "test"
	maxExamples              = 5
	maxRepositories          = 100
	otherRepositories        = "other"
	maxExampleIDBytes        = 128
	maxExampleTextBytes      = 300
)

// Kinds lists the kinds of events.
func Kinds() []Kind {
	return []Kind{JobFailed, JobPartial, RepositoryPaused, RepositoryResumed, DeadLetters, Drift}
}

// Event is one event, as an example in a message. Fields that do not apply are empty; texts are truncated.
type Event struct {
	Kind         Kind      `json:"-"`
	At           time.Time `json:"at"`
	Repository   string    `json:"repository"`
	Organization string    `json:"organization,omitempty"`
	RecordID     string    `json:"recordId,omitempty"`
	// Reason is a code, or why a repository is paused. Hint says more, for example what to do.
	Reason       string `json:"reason,omitempty"`
	Hint         string `json:"hint,omitempty"`
	JobID        string `json:"jobId,omitempty"`
	DeadLetterID string `json:"deadLetterId,omitempty"`
	// Link is the URL of the console's page of the job or dead letter, its path if the server's public URL is not configured.
	Link string `json:"link,omitempty"`
}

// truncate bounds the size of an event in the state and in messages.
func (e *Event) truncate() {
	for _, s := range []*string{&e.Repository, &e.Organization, &e.RecordID, &e.JobID, &e.DeadLetterID} {
		*s = truncated(*s, maxExampleIDBytes)
	}
	for _, s := range []*string{&e.Reason, &e.Hint} {
		*s = truncated(*s, maxExampleTextBytes)
	}
}

// truncated returns s, or its start and an ellipsis, of at most limit bytes.
func truncated(s string, limit int) string {
	const ellipsis = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}

// Summary counts events of one kind.
type Summary struct {
	Count   int64     `json:"count"`
	FirstAt time.Time `json:"firstAt,omitzero"`
	LastAt  time.Time `json:"lastAt,omitzero"`
	// Repositories counts the events of each repository.
	Repositories map[string]int64 `json:"repositories,omitempty"`
	// Examples are the first events.
	Examples []Event `json:"examples,omitempty"`
}

// add adds an event.
func (s *Summary) add(e Event) {
	e.truncate()
	s.merge(Summary{
		Count: 1, FirstAt: e.At, LastAt: e.At, Repositories: map[string]int64{e.Repository: 1}, Examples: []Event{e},
	})
}

// merge adds a later summary.
func (s *Summary) merge(later Summary) {
	if later.Count == 0 {
		return
	}
	if s.Count == 0 || later.FirstAt.Before(s.FirstAt) {
		s.FirstAt = later.FirstAt
	}
	if later.LastAt.After(s.LastAt) {
		s.LastAt = later.LastAt
	}
	s.Count += later.Count
	if s.Repositories == nil {
		s.Repositories = make(map[string]int64)
	}
	for code, n := range later.Repositories {
		if _, known := s.Repositories[code]; !known && len(s.Repositories) >= maxRepositories {
			code = otherRepositories
		}
		s.Repositories[code] += n
	}
	s.Examples = append(s.Examples, later.Examples[:min(len(later.Examples), maxExamples-len(s.Examples))]...)
}
