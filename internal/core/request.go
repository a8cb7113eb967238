package core

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is what a Request wants done.
type Kind string

// Kinds of Request. KindRemove exists for records only (CONTRACT section 1).
const (
	KindIndex  Kind = "index"
	KindRemove Kind = "remove"
)

// Scope is how much a Request or a Job covers.
type Scope string

// Scopes of a Request.
const (
	ScopeRecord Scope = "record"
	// ScopeRecords is several records that were asked for at once. It only saves the queue work: each of its records is
	// worked on, and fails, by itself.
	ScopeRecords      Scope = "records"
	ScopePage         Scope = "page"
	ScopeOrganization Scope = "organization"
	ScopeRepository   Scope = "repository"
)

// Cause is where a Request came from.
type Cause string

// Causes of a Request.
const (
	CauseREST      Cause = "rest"
	CauseKafka     Cause = "kafka"
	CauseWebhook   Cause = "webhook"
	CauseOutbox    Cause = "outbox"
	CauseReconcile Cause = "reconcile"
	CauseSweep     Cause = "sweep"
)

// MaxIDBytes is the longest id that can be a Request's: its subject token is a third longer, and the server closes
// the connection on a subject over 4,050 bytes.
const MaxIDBytes = 512

// MaxBatchRecords is how many records a Request of ScopeRecords names at most.
const MaxBatchRecords = 128

// RecordKey names a record of a repository.
type RecordKey struct {
	Organization string `json:"organization"`
	ID           string `json:"id"`
	// RequestID is the id of the Request that named the record, empty for that of the whole.
	RequestID string `json:"requestId,omitempty"`
}

// Request is the only thing on the queue: small, never a record's body.
type Request struct {
	ID           string `json:"id"`
	Kind         Kind   `json:"kind"`
	Scope        Scope  `json:"scope"`
	Repository   string `json:"repository"`
	Organization string `json:"organization,omitempty"`
	RecordID     string `json:"recordId,omitempty"`
	// Records are those of a Request of ScopeRecords.
	Records     []RecordKey `json:"records,omitempty"`
	Page        *Page       `json:"page,omitempty"`
	JobID       string      `json:"jobId,omitempty"`
	Cause       Cause       `json:"cause"`
	Force       bool        `json:"force,omitempty"`
	Rebuild     bool        `json:"rebuild,omitempty"`
	Attempts    int         `json:"attempts,omitempty"`
	ReceivedAt  time.Time   `json:"receivedAt"`
	Traceparent string      `json:"traceparent,omitempty"`
	// AsOf is the version of the message that this Request was split off from or published again for, or of the dated event
	// that it is of, zero when it is the first: its record is written with that version, so that what was asked for later, and
	// done since, is not undone.
	AsOf Version `json:"asOf,omitempty"`
	// NotBefore is the time before which a republished Request is not worked on.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// NotFoundSince is since when the upstream has answered with nothing but ErrForeignNotFound, zero when its last answer
	// was another one.
	NotFoundSince time.Time `json:"notFoundSince,omitzero"`
}

// Page says which rows of an organization's list a page Request reads, and what was read before them, so that a list
// that shifts between two pages is noticed.
type Page struct {
	// Number counts the pages of a chain from 0.
	Number int `json:"number"`
	// Epoch counts restarts of the chain: pages of an older epoch behind the restart are void.
	Epoch int `json:"epoch,omitempty"`
	// Offset is the first row to read, Limit the number of rows.
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
	// Before holds 64-bit hashes of the last ids read before this page; empty at offset 0.
	Before []uint64 `json:"before,omitempty"`
	// StepsBack counts how often this chain stepped back because the list had shifted.
	StepsBack int `json:"stepsBack,omitempty"`
	// SteppedBack is true when this page re-reads rows because its successor did not join.
	SteppedBack bool `json:"steppedBack,omitempty"`
	// Read counts the distinct ids that the chain read before this page.
	Read int `json:"read,omitempty"`
	// Moved is true once the chain met rows that had moved: any id of this page may have been read before.
	Moved bool `json:"moved,omitempty"`
	// Repeats is true when a page of rows that were all read before, beyond as many rows as there were ids, has had no
	// page with a new id since.
	Repeats bool `json:"repeats,omitempty"`
}

// Validate names the first fault of r, as CodeInvalid.
func (r Request) Validate() error {
	if r.Kind != KindIndex && r.Kind != KindRemove {
		return NewError(CodeInvalid, fmt.Sprintf("unknown kind %q", r.Kind))
	}
	if err := ValidKey("repository", r.Repository); err != nil {
		return err
	}
	if r.Scope == ScopeRepository {
		return r.validateRun()
	}
	if r.Scope == ScopeRecords {
		return r.validateRecords()
	}
	if err := ValidKey("organization", r.Organization); err != nil {
		return err
	}
	switch r.Scope {
	case ScopeRecord:
		return ValidKey("id", r.RecordID)
	case ScopePage:
		if r.Page == nil || r.Page.Number < 0 || r.Page.Offset < 0 || r.Page.Limit < 1 {
			return NewError(CodeInvalid, "a page Request needs its page")
		}
		return r.validateRun()
	case ScopeOrganization:
		return r.validateRun()
	default:
		return NewError(CodeInvalid, fmt.Sprintf("unknown scope %q", r.Scope))
	}
}

func (r Request) validateRecords() error {
	if r.Kind == KindRemove {
		return NewError(CodeInvalid, "removal exists for one record only")
	}
	if err := ValidKey("request id", r.ID); err != nil {
		return err
	}
	if len(r.Records) == 0 || len(r.Records) > MaxBatchRecords {
		return NewError(CodeInvalid, fmt.Sprintf("a Request for several records names 1 to %d", MaxBatchRecords))
	}
	for _, k := range r.Records {
		if err := ValidKey("organization", k.Organization); err != nil {
			return err
		}
		if err := ValidKey("id", k.ID); err != nil {
			return err
		}
	}
	return nil
}

// ForRecord returns the Request for one of r's Records alone.
func (r Request) ForRecord(k RecordKey) Request {
	r.Scope, r.Organization, r.RecordID, r.Records = ScopeRecord, k.Organization, k.ID, nil
	if k.RequestID != "" {
		r.ID = k.RequestID
	}
	return r
}

// Dated reports whether r is to index a record as of an event of Kafka. The event's version orders it with removals only: what
// is fetched for it is newer than any document that is stored, whatever the producer's clock said.
func (r Request) Dated() bool {
	return r.Kind == KindIndex && r.Scope == ScopeRecord && r.Cause == CauseKafka && r.AsOf > 0 && r.JobID == ""
}

// MergeWithPending returns what to store when r, a Request that tutti makes by itself or one as of an earlier version, meets pending,
// of that version, on its subject; false when pending stands instead. What is newer than the message that r was split off from
// (AsOf) stands, and so does a removal of any age where r is a sweep's or does not say what it was split off from. What a sweep
// asks for is dropped when its job is cancelled; so it takes over the job and the cause of another Request that it replaces, and
// a Request that is not a sweep's replaces a newer one of a sweep, as of its version. So does a dated Request (Dated) beside any
// newer Request to index, whose record may have been fetched already. A removal never becomes newer: it leaves its cause and job
// to the sweep's Request.
func (r Request) MergeWithPending(pending Request, version Version) (Request, bool) {
	newer := r.AsOf > 0 && version > r.AsOf
	switch {
	case r.Kind == KindRemove && newer && pending.Cause == CauseSweep:
		pending.Cause, pending.JobID, pending.AsOf = r.Cause, r.JobID, version
		return pending, true
	case pending.Kind == KindRemove && (newer || r.AsOf == 0 || r.Cause == CauseSweep):
		return r, false
	case newer && (r.Dated() || r.Cause != CauseSweep && pending.Cause == CauseSweep):
		r.AsOf = version
		return r, true
	case r.Cause == CauseSweep && pending.Cause != CauseSweep:
		r.Cause, r.JobID = pending.Cause, pending.JobID
	}
	return r, !newer
}

func (r Request) validateRun() error {
	if r.Kind == KindRemove {
		return NewError(CodeInvalid, "removal exists for one record only")
	}
	if r.JobID == "" {
		return NewError(CodeInvalid, "a run needs its job id")
	}
	return nil
}

// ValidKey checks what can be part of a Request's subject: not empty, at most MaxIDBytes bytes, valid UTF-8. An
// upstream's own ids may hold anything else, control characters included. what names the part in the message.
func ValidKey(what, key string) error {
	var fault string
	switch {
	case key == "":
		fault = "is empty"
	case len(key) > MaxIDBytes:
		fault = fmt.Sprintf("has %d bytes, the limit is %d", len(key), MaxIDBytes)
	case !utf8.ValidString(key):
		fault = "is not valid UTF-8"
	default:
		return nil
	}
	return NewError(CodeInvalid, what+" "+fault)
}

// ValidID checks one opaque path segment of a client (CONTRACT section 0): a valid key that is not "." or ".." and
// holds no control character. what names the segment in the message.
func ValidID(what, id string) error {
	if err := ValidKey(what, id); err != nil {
		return err
	}
	if id == "." || id == ".." {
		return NewError(CodeInvalid, what+" must not be a relative path segment")
	}
	if strings.IndexFunc(id, unicode.IsControl) >= 0 {
		return NewError(CodeInvalid, what+" holds a control character")
	}
	return nil
}
