package core

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"time"
)

// MaxDeadLetterBytes is the maximum number of bytes of a rejected document in a dead letter: messages over 1 MiB are rejected.
const MaxDeadLetterBytes = 256 << 10

// Reasons of a dead letter.
const (
	ReasonRejected          = "rejected"
	ReasonTooLarge          = "too_large"
	ReasonInvalidID         = "invalid_id"
	ReasonUpstream          = "upstream_error"
	ReasonUnknownRepository = "unknown_repository"
	ReasonCrashLoop         = "crash_loop"
	ReasonNotUnderstood     = "not_understood"
	// ReasonConflict is that of a record of which another repository that shares the index has a newer one that differs.
	ReasonConflict = "conflict"
)

// DeadLetterReasons returns all of them.
func DeadLetterReasons() []string {
	return []string{
		ReasonRejected, ReasonTooLarge, ReasonInvalidID, ReasonUpstream, ReasonUnknownRepository, ReasonCrashLoop, ReasonNotUnderstood, ReasonConflict,
	}
}

// DeadLetter is a record that tutti stopped retrying until an operator fixes it: one per record, for the latest failure.
type DeadLetter struct {
	ID           string    `json:"id"`
	Repository   string    `json:"repository"`
	Organization string    `json:"organization,omitempty"`
	RecordID     string    `json:"recordId,omitempty"`
	Reason       string    `json:"reason"`
	Hint         string    `json:"hint,omitempty"`
	EngineType   string    `json:"engineType,omitempty"`
	EngineReason string    `json:"engineReason,omitempty"`
	Attempts     int       `json:"attempts"`
	FirstAt      time.Time `json:"firstAt"`
	LastAt       time.Time `json:"lastAt"`
	JobID        string    `json:"jobId,omitempty"`
	// Document is the start of the rejected document, base64 in JSON; absent if nothing was fetched.
	Document  []byte `json:"document,omitempty"`
	Size      int    `json:"size,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	// Source is the origin of a message that could not be decoded, for example "webhook" or "kafka song-analysis"; empty for a
	// record. It is part of the key: one dead letter for each source and document.
	Source string `json:"source,omitempty"`
	// Position is the position of the message in its source when it was last received, for example "partition 3, offset 117".
	Position string `json:"position,omitempty"`
	// Version is that of the result of the record, which orders it with its other results; zero if it has none.
	Version Version `json:"version,omitempty"`
	// Request is the request that failed.
	Request *Request `json:"request,omitempty"`
}

// OfRecord reports whether the dead letter is of one record. Those of messages, pages and runs are not.
func (l DeadLetter) OfRecord() bool {
	return l.Source == "" && (l.RecordID != "" || l.Request != nil && l.Request.Scope == ScopeRecord)
}

// RecordRequest returns the Request that processes the record of a dead letter again, if it is OfRecord. It has no id and no cause, and may
// be invalid.
func (l DeadLetter) RecordRequest() Request {
	r := Request{Kind: KindIndex, Scope: ScopeRecord, Repository: l.Repository, Organization: l.Organization, RecordID: l.RecordID}
	if l.Request != nil && l.Request.Scope == ScopeRecord {
		r.Kind, r.Organization, r.RecordID, r.Part = l.Request.Kind, l.Request.Organization, l.Request.RecordID, l.Request.Part
		if r.RecordID != l.RecordID {
			r.Document = l.RecordID
		}
		if r.Kind == KindRemove {
			r.AsOf = l.Request.AsOf
		}
	}
	return r
}

// DeadLetterFilter selects dead letters. The zero value selects all.
type DeadLetterFilter struct {
	// Repository, Organization and Reason are those of the dead letters, empty for any.
	Repository, Organization, Reason string
	// Limit bounds the page, 0 for the default of who lists.
	Limit int
	// Cursor is that of the next page, which the one before returned; empty for the first.
	Cursor string
}

// Matches reports whether the filter selects a dead letter, of any page.
func (f DeadLetterFilter) Matches(l DeadLetter) bool {
	return (f.Repository == "" || f.Repository == l.Repository) && (f.Organization == "" || f.Organization == l.Organization) &&
		(f.Reason == "" || f.Reason == l.Reason)
}

// NewDeadLetterDocument copies the part of doc that a dead letter stores.
func NewDeadLetterDocument(doc []byte) *DeadLetterDocument {
	var k DeadLetterDocumentBuilder
	k.Add(doc)
	return k.Document()
}

// DeadLetterDocumentBuilder builds a DeadLetterDocument from a document that is read in pieces. The zero value is ready to use.
type DeadLetterDocumentBuilder struct {
	kept []byte
	size int
	sum  hash.Hash
}

// Add appends the next piece of the document; it copies what it stores.
func (k *DeadLetterDocumentBuilder) Add(piece []byte) {
	if k.sum == nil {
		k.sum = sha256.New()
	}
	k.sum.Write(piece)
	k.kept = append(k.kept, piece[:min(len(piece), MaxDeadLetterBytes-len(k.kept))]...)
	k.size += len(piece)
}

// Document returns the result; the builder must not be used afterwards.
func (k *DeadLetterDocumentBuilder) Document() *DeadLetterDocument {
	return &DeadLetterDocument{
		Bytes: k.kept, Size: k.size, SHA256: hex.EncodeToString(k.sum.Sum(nil)), Truncated: k.size > len(k.kept),
	}
}

// Types of Elasticsearch, each the EngineType of a document that does not fit the mapping or exceeds a limit.
const (
	TypeParsing         = "document_parsing_exception"
	TypeIllegalArgument = "illegal_argument_exception"
)

// TypeNewField is the EngineType of a document with a field that the mapping lacks, where newFields is reject.
const TypeNewField = "new_field_exception"

// TypeOtherKind is the EngineType of a document with a value of another JSON kind than a rebuild has decided for its path.
const TypeOtherKind = "other_kind_exception"
