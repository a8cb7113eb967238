package core

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// RepositoryType is the protocol that a repository speaks.
type RepositoryType string

// Types of repository (CONTRACT section 9).
const (
	TypeSong  RepositoryType = "song"
	TypeLyric RepositoryType = "lyric"
	TypeLocal RepositoryType = "local"
)

// Repository is one configured source of records, with the metadata that is written into each document.
type Repository struct {
	Code string
	Type RepositoryType
	URL  string
	// IndexName is the alias for the repository's documents.
	IndexName string
	// Fields are the RecordFields of the type.
	Fields RecordFields
	// Name, Organization and Country describe the repository in a document's repositories block.
	Name         string
	Organization string
	Country      string
}

// RecordFields are the document fields that identify a record.
type RecordFields struct {
	// ID is the record's id, Organization its own organization.
	ID, Organization string
	// Document is the document's id if a record has several documents, empty if its document has the record's id.
	Document string
	// State is the record's state, Entity the name of its entity; empty if records have none.
	State, Entity string
	// Updated is the date of the record's last change; empty if its repository returns none.
	Updated string
	// Unordered are the arrays in which the upstream keeps no order, in the form of equality.New. Documents keep the order in which they
	// were fetched.
	Unordered []string
}

// RepositoryNotConfigured returns the error for the code of a repository that is not configured.
func RepositoryNotConfigured(code string) *Error {
	return &Error{
		Code: CodeNotFound, Message: fmt.Sprintf("repository %q is not configured", code),
		Hint: "use the code of one of the configured repositories; codes are case-sensitive",
	}
}

// CheckOwnIndex returns CodeConflict if the repository of a code shares its index with others: its index cannot be replaced, because that
// would lose theirs.
func CheckOwnIndex(all []Repository, code string) error {
	at := slices.IndexFunc(all, func(r Repository) bool { return r.Code == code })
	if at < 0 {
		return nil
	}
	var others []string
	for _, r := range all {
		if r.IndexName == all[at].IndexName && r.Code != code {
			others = append(others, r.Code)
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	return &Error{
		Code:    CodeConflict,
		Message: "the index " + all[at].IndexName + " cannot be replaced, because " + strings.Join(others, ", ") + " and " + code + " share it",
		Hint:    "give the repositories that share it another indexName, which is filled beside it; the index remains until you delete it",
	}
}

// Pause is a repository whose consumers are paused, and why. Reason is safe to display.
type Pause struct {
	Repository string `json:"repository"`
	Reason     string `json:"reason"`
}

// Suffixes of the aliases of a rebuild.
const (
	NextSuffix     = "--next"
	PreviousSuffix = "--previous"
)

// NextAlias returns the alias of the index that a rebuild fills to replace that of alias.
func NextAlias(alias string) string { return alias + NextSuffix }

// PreviousAlias returns the alias of the index that alias had before its last rebuild.
func PreviousAlias(alias string) string { return alias + PreviousSuffix }

// RepositoryState is the state of a repository and its index in one word.
type RepositoryState string

// States of a repository, the worst first. A repository in several of them has the first one.
const (
	// RepositoryPaused: nothing is written until the reason is gone.
	RepositoryPaused RepositoryState = "paused"
	// RepositoryFailing: the last run of the whole repository failed.
	RepositoryFailing RepositoryState = "failing"
	// RepositoryNeverIndexed: no run has written a document.
	RepositoryNeverIndexed RepositoryState = "neverIndexed"
	// RepositoryAttention: there are dead letters or drift, or the last run of the whole repository was not complete.
	RepositoryAttention RepositoryState = "attention"
	RepositoryOK        RepositoryState = "ok"
)

// RepositoryStates lists every state, the worst first.
func RepositoryStates() []RepositoryState {
	return []RepositoryState{RepositoryPaused, RepositoryFailing, RepositoryNeverIndexed, RepositoryAttention, RepositoryOK}
}

// RepositoryStatus is what is known of a repository and its index. It is safe to display.
type RepositoryStatus struct {
	Code         string          `json:"code"`
	Type         RepositoryType  `json:"type"`
	IndexName    string          `json:"indexName"`
	Name         string          `json:"name,omitempty"`
	Organization string          `json:"organization,omitempty"`
	Country      string          `json:"country,omitempty"`
	State        RepositoryState `json:"state"`
	// Paused is why the repository is paused, empty if it is not.
	Paused string `json:"paused,omitempty"`
	// LastSuccess is when a document was last written or found to be up to date; nil if that is unknown. FreshnessSeconds is the time
	// since then.
	LastSuccess      *time.Time `json:"lastSuccess"`
	FreshnessSeconds *int64     `json:"freshnessSeconds"`
	// Figures are nil for callers that may not see all organizations of the repository.
	*RepositoryFigures
}

// RepositoryFigures are the figures of a RepositoryStatus over all organizations.
type RepositoryFigures struct {
	// LastRun is the newest run of the whole repository that has ended, CurrentRun one that has not; nil for none.
	LastRun    *RepositoryRun `json:"lastRun"`
	CurrentRun *RepositoryRun `json:"currentRun"`
	// Pending is the number of Requests that wait, InFlight of those that are being processed.
	Pending     uint64 `json:"pending"`
	InFlight    int    `json:"inFlight"`
	DeadLetters int    `json:"deadLetters"`
	// LastNotification is when a trigger, a webhook notification, a message of a topic or a change of the built-in repository was last
	// received, by any process; nil for none.
	LastNotification *time.Time `json:"lastNotification"`
	// RatePerSecond is the sum of the rates of the running jobs, in records per second.
	RatePerSecond float64 `json:"ratePerSecond"`
	// Drift is the last comparison of the index with the repository, nil for none.
	Drift *RepositoryDrift `json:"drift"`
}

// RepositoryRun is one run of a whole repository.
type RepositoryRun struct {
	JobID    string     `json:"jobId"`
	State    JobState   `json:"state"`
	QueuedAt time.Time  `json:"queuedAt"`
	EndedAt  *time.Time `json:"endedAt"`
	Error    *JobError  `json:"error,omitempty"`
}

// RepositoryDrift is the comparison of the last run of the difference.
type RepositoryDrift struct {
	JobID   string    `json:"jobId"`
	EndedAt time.Time `json:"endedAt"`
	Drift
}
