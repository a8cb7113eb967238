package recordtrace

import (
	"time"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
)

// Statuses of the parts of a Trace.
const (
	// StatusError: the part could not be read; its Error says why.
	StatusError = "error"
	// StatusUnknown: the part was not read in time; its Error says so.
	StatusUnknown = "unknown"
	// StatusFound: the upstream has the record in an indexed state. StatusExcluded: in another state, or for another reason, such as an exclusion rule. StatusTooLarge: over the size limit.
	StatusFound    = "found"
	StatusExcluded = "excluded"
	StatusTooLarge = "tooLarge"
	// StatusAbsent: the upstream, or the index, does not have the record.
	StatusAbsent = "absent"
	// StatusOther: the upstream, or the index, has it under another organization, or the index from another repository.
	StatusOther = "otherOrganization"
	// StatusPresent: the index has documents of the record, or there are dead letters of it.
	StatusPresent = "present"
	// StatusPending: a Request for the record is pending.
	StatusPending = "pending"
	// StatusNone: there is no such Request, job or dead letter.
	StatusNone = "none"
)

// Comparison is how the documents of the index compare with those that the upstream's record becomes now.
type Comparison string

// Comparisons.
const (
	ComparisonEqual   Comparison = "equal"
	ComparisonDiffers Comparison = "differs"
	// ComparisonUnknown: one of the two could not be read, or is too large to compare.
	ComparisonUnknown Comparison = "unknown"
)

// Location names a record by its repository, its organization and its id.
type Location struct {
	Repository   string
	Organization string
	ID           string
}

// Locations are the records with one id.
type Locations struct {
	Found []Location
	// Failed are the codes of the repositories whose search failed: they may have further ones.
	Failed []string
}

// Trace is what is known of one record between its repository and the index. Each part that could not be read has the status
// StatusError or StatusUnknown and its own Error, safe to display.
type Trace struct {
	Repository   string      `json:"repository"`
	Organization string      `json:"organization"`
	ID           string      `json:"id"`
	Upstream     Upstream    `json:"upstream"`
	Index        Index       `json:"index"`
	Queue        Queue       `json:"queue"`
	Jobs         Jobs        `json:"jobs"`
	DeadLetters  DeadLetters `json:"deadLetters"`
	// Next is one sentence with the next step.
	Next string `json:"next"`
}

// Part is what every part of a Trace has.
type Part struct {
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
	// TookMillis is how long it took to read the part, in milliseconds.
	TookMillis float64 `json:"tookMillis"`
}

// Upstream is what the upstream returns for the record now: StatusFound, StatusExcluded, StatusTooLarge, StatusAbsent, StatusOther.
type Upstream struct {
	Part
	// State is the upstream's name for the record's state, empty for none; IndexedStates are the states that are indexed, if configured.
	State         string   `json:"state,omitempty"`
	IndexedStates []string `json:"indexedStates,omitempty"`
	// ExcludedBy is the exclusion rule that applies to a record that is StatusExcluded, nil for none.
	ExcludedBy *core.Exclusion `json:"excludedBy,omitempty"`
	// Reason is why a record is StatusExcluded if neither State nor ExcludedBy say it: what follows "the record". PartOf is the id of the
	// record whose document contains it, empty if it is not part of one, or if that one is not known.
	Reason string `json:"reason,omitempty"`
	PartOf string `json:"partOf,omitempty"`
	// SHA256 is the hexadecimal hash of the record's bytes, Bytes their number.
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
}

// Index is what the index holds of the record: StatusPresent, StatusAbsent, StatusOther.
type Index struct {
	Part
	Alias string `json:"alias"`
	// Comparison compares all documents of the record, also missing and surplus ones.
	Comparison Comparison `json:"comparison,omitempty"`
	Documents  []Document `json:"documents"`
	// Truncated is true if the record has more documents than are listed.
	Truncated bool `json:"truncated,omitempty"`
}

// Document is one document of the record, stored or expected.
type Document struct {
	ID string `json:"id"`
	// Stored reports whether the index has it, Expected whether the upstream's record becomes it now; nil if that is unknown.
	Stored   bool  `json:"stored"`
	Expected *bool `json:"expected,omitempty"`
	// Version is the stored version, WrittenFor the same as a time: when the Request was stored that it was written for.
	Version    core.Version `json:"version,omitempty"`
	WrittenFor *time.Time   `json:"writtenFor,omitempty"`
	// PhysicalIndex is the index behind the alias, empty if the engine has none.
	PhysicalIndex string `json:"physicalIndex,omitempty"`
	// State is the record's state as the stored document has it, empty for none.
	State string `json:"state,omitempty"`
	// SHA256 is the hexadecimal hash of the stored document's bytes without the members that tutti adds to a record (repositories), Bytes
	// their number. If the document of a record is the record itself, they are those of Upstream while it is current.
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
	// ExpectedSHA256 is the same of the document that the upstream's record becomes now, empty if that is none, or unknown.
	ExpectedSHA256 string `json:"expectedSha256,omitempty"`
	// Comparison compares the whole documents by their values, Content the documents without the members that tutti adds.
	Comparison Comparison `json:"comparison"`
	Content    Comparison `json:"content"`
}

// Queue is what waits in the queue: StatusPending, StatusNone.
type Queue struct {
	Part
	Request *Request `json:"request,omitempty"`
	// Batches counts the pending batches of the repository, any of which may name the record.
	Batches int `json:"batches,omitempty"`
	// Paused is why the repository is paused, empty if it is not.
	Paused string `json:"paused,omitempty"`
}

// Request is the pending Request of a record.
type Request struct {
	Kind       core.Kind  `json:"kind"`
	Cause      core.Cause `json:"cause"`
	Attempts   int        `json:"attempts"`
	ReceivedAt time.Time  `json:"receivedAt"`
	// NotBefore is when it is retried, zero for at once.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// Jobs are the runs over the record's organization, and the jobs over lists of ids that name the record: StatusPresent, StatusNone.
type Jobs struct {
	Part
	// InProgress are those that have not ended, the newest first; LastEnded is the newest that has ended and read the organization or,
	// of a list, the record.
	InProgress []Job `json:"inProgress"`
	LastEnded  *Job  `json:"lastEnded,omitempty"`
}

// Job is one run over the record's organization, or one job over a list of ids that names the record.
type Job struct {
	// ID is empty if the caller may not read the job.
	ID    string        `json:"id,omitempty"`
	Scope core.Scope    `json:"scope"`
	State core.JobState `json:"state"`
	// OrganizationState is the state of the record's organization in the job, empty if the job has not begun it, or if it was not read
	// in time.
	OrganizationState core.JobState `json:"organizationState,omitempty"`
	// ErrorCode is the code of the core.JobError of the organization or, where the guard has kept the documents of the whole repository, of
	// the job; empty for none.
	ErrorCode string `json:"errorCode,omitempty"`
	// Outcome is the record's in a job over a list of ids, idlist.Queued until it is processed; empty for other jobs.
	Outcome  idlist.Outcome `json:"outcome,omitempty"`
	QueuedAt time.Time      `json:"queuedAt"`
	EndedAt  *time.Time     `json:"endedAt,omitempty"`
}

// DeadLetters are the dead letters of the record and of its documents: StatusPresent, StatusNone.
type DeadLetters struct {
	Part
	Letters []DeadLetter `json:"letters"`
}

// DeadLetter is one dead letter.
type DeadLetter struct {
	ID       string `json:"id"`
	RecordID string `json:"recordId"`
	Reason   string `json:"reason"`
	Hint     string `json:"hint,omitempty"`
	// EngineType is the engine's error type.
	EngineType string    `json:"engineType,omitempty"`
	Attempts   int       `json:"attempts"`
	LastAt     time.Time `json:"lastAt"`
}
