package core

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"time"
)

// MaxDeadLetterBytes is how much of a rejected document a dead letter keeps: a message over 1 MiB is refused.
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
)

// DeadLetter is a record that tutti gave up on until somebody mends it: one per record, the newest failure.
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
	// Document is the start of the rejected document, base64 in JSON; absent when nothing had been fetched.
	Document  []byte `json:"document,omitempty"`
	Size      int    `json:"size,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	// Source is where a message that was not understood came from, such as "webhook" or "kafka song-analysis"; empty for
	// a record. It is part of what the letter is kept by: one letter for each source and document.
	Source string `json:"source,omitempty"`
	// Position is where in its source the message stood when it was last seen, such as "partition 3, offset 117".
	Position string `json:"position,omitempty"`
	// Request is what was being done.
	Request *Request `json:"request,omitempty"`
}

// NewDeadLetterDocument copies what a dead letter keeps of doc.
func NewDeadLetterDocument(doc []byte) *DeadLetterDocument {
	var k DeadLetterDocumentBuilder
	k.Add(doc)
	return k.Document()
}

// DeadLetterDocumentBuilder keeps what a dead letter keeps of a document that is seen in pieces. The zero value is ready.
type DeadLetterDocumentBuilder struct {
	kept []byte
	size int
	sum  hash.Hash
}

// Add takes the next piece of the document, and copies of it what is kept.
func (k *DeadLetterDocumentBuilder) Add(piece []byte) {
	if k.sum == nil {
		k.sum = sha256.New()
	}
	k.sum.Write(piece)
	k.kept = append(k.kept, piece[:min(len(piece), MaxDeadLetterBytes-len(k.kept))]...)
	k.size += len(piece)
}

// Document returns what is kept of the pieces so far; the Keeper must not be used afterwards.
func (k *DeadLetterDocumentBuilder) Document() *DeadLetterDocument {
	return &DeadLetterDocument{
		Bytes: k.kept, Size: k.size, SHA256: hex.EncodeToString(k.sum.Sum(nil)), Truncated: k.size > len(k.kept),
	}
}
