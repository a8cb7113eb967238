package core

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is the action of a Request.
type Kind string

// Kinds of Request. KindRemove exists only for records (CONTRACT section 1).
const (
	KindIndex  Kind = "index"
	KindRemove Kind = "remove"
)

// Scope is the extent of a Request or a Job.
type Scope string

// Scopes of a Request.
const (
	ScopeRecord Scope = "record"
	// ScopeRecords is a batch of records. It only saves work for the queue: each record is processed, and fails, individually.
	ScopeRecords      Scope = "records"
	ScopePage         Scope = "page"
	ScopeOrganization Scope = "organization"
	ScopeRepository   Scope = "repository"
	// ScopeIDs is a list of ids that is stored with its job.
	ScopeIDs Scope = "ids"
	// ScopeRetry is the retry of the dead letters of a repository and of a reason, or of all.
	ScopeRetry Scope = "retry"
)

// Cause is the origin of a Request.
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

// MaxIDBytes is the maximum length of an ID in a Request: its subject token is a third longer, and the server closes the
// connection for subjects over 4,050 bytes.
const MaxIDBytes = 512

// MaxBatchRecords is the maximum number of records of a Request of ScopeRecords.
const MaxBatchRecords = 128

// RecordKey identifies a record of a repository.
type RecordKey struct {
	Organization string `json:"organization"`
	ID           string `json:"id"`
	// RequestID is the ID of the Request that named the record, empty for the ID of the batch.
	RequestID string `json:"requestId,omitempty"`
	// Traceparent is that of the Request that named the record, where the records of a batch are of several traces.
	Traceparent string `json:"traceparent,omitempty"`
}

// Request is the only message type of the queue: small, never with a record's body.
type Request struct {
	ID           string `json:"id"`
	Kind         Kind   `json:"kind"`
	Scope        Scope  `json:"scope"`
	Repository   string `json:"repository"`
	Organization string `json:"organization,omitempty"`
	RecordID     string `json:"recordId,omitempty"`
	// Document is the id of a document of the record whose dead letter is retried, empty if it is the record's own id. The dead letter
	// is removed even if the record no longer has that document.
	Document string `json:"document,omitempty"`
	// Records are the records of a Request of ScopeRecords.
	Records    []RecordKey `json:"records,omitempty"`
	Page       *Page       `json:"page,omitempty"`
	JobID      string      `json:"jobId,omitempty"`
	Cause      Cause       `json:"cause"`
	Force      bool        `json:"force,omitempty"`
	Rebuild    bool        `json:"rebuild,omitempty"`
	Difference bool        `json:"difference,omitempty"`
	Attempts   int         `json:"attempts,omitempty"`
	ReceivedAt time.Time   `json:"receivedAt"`
	// Traceparent is the span that published the Request (W3C Trace Context, section 3.2), the parent of its processing; empty for none.
	Traceparent string `json:"traceparent,omitempty"`
	// AsOf is the version of the original message if this Request was split off from it or published again for it, or of its
	// dated event; zero for an original Request. The record is written with that version, so that later requests that were
	// already processed are not undone.
	AsOf Version `json:"asOf,omitempty"`
	// NotBefore is the earliest time to process a republished Request.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// NotFoundSince is the time since which the upstream has returned only ErrForeignNotFound, zero if its last response was
	// another one.
	NotFoundSince time.Time `json:"notFoundSince,omitzero"`
	// Part describes the record if its event says that it was deleted, so that the record that contained it can be found.
	Part *Part `json:"part,omitempty"`
	// Reason is that of the dead letters that a Request of ScopeRetry is for, empty for any; its Repository may be empty too.
	Reason string `json:"reason,omitempty"`
}

// Page identifies the rows of an organization's list that a page Request reads, and the rows before them, to detect a list that
// shifts between two pages.
type Page struct {
	// Number is the page number in the chain, from 0.
	Number int `json:"number"`
	// IDs is true for a page of a job of ScopeIDs: only Number applies.
	IDs bool `json:"ids,omitempty"`
	// Group is true for the first pages of all organizations of a group, the one with this Number, of which Organization is one.
	Group bool `json:"group,omitempty"`
	// Epoch counts restarts of the chain: pages of an older epoch from the restarted page on are ignored.
	Epoch int `json:"epoch,omitempty"`
	// Offset is the first row to read, Limit the number of rows.
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
	// GrowFrom is the number of the page from which pages may be larger again, after a larger one was not returned; 0 for any.
	GrowFrom int `json:"growFrom,omitempty"`
	// Before holds 64-bit hashes of the last ids read before this page; empty at offset 0.
	Before []uint64 `json:"before,omitempty"`
	// StepsBack counts how often this chain stepped back because the list had shifted.
	StepsBack int `json:"stepsBack,omitempty"`
	// SteppedBack is true if this page re-reads rows because its successor did not connect.
	SteppedBack bool `json:"steppedBack,omitempty"`
	// Read counts the distinct ids that the chain read before this page.
	Read int `json:"read,omitempty"`
	// Moved is true once the chain found rows that had moved: any ID of this page may have been read before.
	Moved bool `json:"moved,omitempty"`
	// Repeats is true if a page had only rows that had been read before, with more rows up to its end than distinct IDs, and no page
	// since has had a new ID.
	Repeats bool `json:"repeats,omitempty"`
}

// Validate returns the first error of r, as CodeInvalid.
func (r Request) Validate() error {
	if r.Kind != KindIndex && r.Kind != KindRemove {
		return NewError(CodeInvalid, fmt.Sprintf("unknown kind %q", r.Kind))
	}
	if r.Scope == ScopeRetry {
		return r.validateRun()
	}
	if err := ValidKey("repository", r.Repository); err != nil {
		return err
	}
	if r.Scope == ScopeRepository || r.Scope == ScopeIDs {
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
			return NewError(CodeInvalid, "a page Request must have a page")
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
		return NewError(CodeInvalid, fmt.Sprintf("a Request for several records must name 1 to %d", MaxBatchRecords))
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

// ForRecord returns the Request for one of r's Records.
func (r Request) ForRecord(k RecordKey) Request {
	r.Scope, r.Organization, r.RecordID, r.Records = ScopeRecord, k.Organization, k.ID, nil
	if k.RequestID != "" {
		r.ID = k.RequestID
	}
	if k.Traceparent != "" {
		r.Traceparent = k.Traceparent
	}
	return r
}

// Dated reports whether r indexes a record as of a Kafka event. The event's version only orders it with removals: the fetched
// record is newer than any stored document, whatever the producer's clock was.
func (r Request) Dated() bool {
	return r.Kind == KindIndex && r.Scope == ScopeRecord && r.Cause == CauseKafka && r.AsOf > 0 && r.JobID == ""
}

// ResultVersion returns the version that orders the result of processing r's record with a version among all results of the record. That
// of a dated Request is at least when it was received, since its record was fetched then.
func (r Request) ResultVersion(version Version) Version {
	if r.Dated() {
		return max(version, Version(r.ReceivedAt.UnixNano()))
	}
	return version
}

// MergeWithPending decides what the queue stores if r is published while its subject has a pending Request, of that version. It
// returns the Request to store, or false if pending stays. r is a Request that tutti itself created, or one as of an earlier version
// (AsOf). The rules are:
//
//   - A pending Request stays if it is newer than the message from which r was split off (AsOf).
//   - A pending removal stays, however old, if r belongs to a sweep or has no AsOf.
//   - The Request of a sweep is dropped when its job is cancelled. So it takes over the job and the cause of another Request that it
//     replaces, and a Request that is not a sweep's replaces a newer one of a sweep, with the newer version.
//   - A dated Request (Dated) replaces any newer Request to index in the same way: the record of that Request may have been
//     fetched already.
//   - A removal never becomes newer: instead, a newer Request of a sweep stays, with the cause and the job of the removal.
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

// YieldsTo reports whether the pending Request of a record stays if r, which may have been stored and processed before, is published
// again: it was received later and does the other thing. An index that is sent again must not undo a removal that was asked for since.
func (r Request) YieldsTo(pending Request) bool {
	return pending.Kind != r.Kind && pending.ReceivedAt.After(r.ReceivedAt)
}

func (r Request) validateRun() error {
	if r.Kind == KindRemove {
		return NewError(CodeInvalid, "removal exists for one record only")
	}
	if r.JobID == "" {
		return NewError(CodeInvalid, "a run must have a job id")
	}
	return nil
}

// ValidKey validates a part of a Request's subject: not empty, at most MaxIDBytes bytes, valid UTF-8. An upstream's own IDs may
// contain anything else, including control characters. what names the part in the message.
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

// ValidID validates one opaque path segment of a client (CONTRACT section 0): a valid key that is not "." or ".." and has no
// control character. what names the segment in the message.
func ValidID(what, id string) error {
	if err := ValidKey(what, id); err != nil {
		return err
	}
	if id == "." || id == ".." {
		return NewError(CodeInvalid, what+" must not be a relative path segment")
	}
	if strings.IndexFunc(id, unicode.IsControl) >= 0 {
		return NewError(CodeInvalid, what+" contains a control character")
	}
	return nil
}

// RecordRef names one record. Its parts are valid (ValidID), because only NewRecordRef makes one.
type RecordRef struct{ repository, organization, id string }

// NewRecordRef returns the RecordRef of a record, or CodeInvalid.
func NewRecordRef(repository, organization, id string) (RecordRef, error) {
	for _, part := range [...]struct{ what, value string }{{"repository", repository}, {"organization", organization}, {"id", id}} {
		if err := ValidID(part.what, part.value); err != nil {
			return RecordRef{}, err
		}
	}
	return RecordRef{repository, organization, id}, nil
}

// Repository is the code of the record's repository.
func (r RecordRef) Repository() string { return r.repository }

// Organization is that of the record.
func (r RecordRef) Organization() string { return r.organization }

// ID is the record's id.
func (r RecordRef) ID() string { return r.id }

// RunFlags change how a run treats the index.
type RunFlags struct {
	// Force lifts the guard against removing most documents.
	Force bool
	// Rebuild fills another index, which then replaces the repository's. Only for whole repositories.
	Rebuild bool
	// Difference writes only the records whose documents differ from those in the index, and requests those that it does not list.
	Difference bool
}

// PendingRecord is what the queue holds for one record.
type PendingRecord struct {
	// Request is the pending Request of the record, nil for none.
	Request *Request
	// Batches counts the pending batches of the repository.
	Batches int
}
