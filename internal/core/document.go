package core

import "time"

// Version orders the writes of one document: the queue's timestamp, in nanoseconds since 1970, of the Request that
// caused the fetch (DESIGN, Data).
type Version int64

// WriteOp is what a Write does to a document.
type WriteOp uint8

// Operations of a Write.
const (
	OpIndex WriteOp = iota
	OpDelete
)

// Write is one change of one document.
type Write struct {
	Op      WriteOp
	ID      string
	Version Version
	// Strict makes the write win over a lower stored version only, not over the same one: of several writers that have
	// read one version and write the next, one wins.
	Strict bool
	// Document is the whole document, one JSON object without line feeds; nil for OpDelete. It is valid only until
	// the call that takes it returns.
	Document []byte
	// FetchedAt is when the body was requested: whatever happened to the record since may be missing from it. For a record
	// that was fetched by itself it is no more than half of the greatest age before the body arrived, however long its
	// upstream took, as it could not be written else; so the body of such a record is older by what the upstream took beyond
	// that, and by up to a second of waiting for memory. A body that grew too old is not written (DESIGN, Bodies). The version
	// alone does not need this, as a record is always fetched after its Request was stored. It does where the engine has
	// forgotten the version of a removal, as a shard does that reopens: an old body would bring the document back, and the
	// older it may be, the more likely is a removal in the meantime.
	FetchedAt time.Time
}

// Batch is a run of Writes to one alias, already encoded for one engine.
type Batch struct {
	// Index is the alias that is written to.
	Index string
	// Body holds the engine's encodings of all Items, one after the other. Nobody may change it, nor keep it beyond
	// the call.
	Body  []byte
	Items []BatchItem
	// Deadline is when the first of the documents becomes too old to be sent; zero for never. An engine that forgets the
	// version of a removal must not send them then, however long it prepared or what it sent of them before.
	Deadline time.Time
}

// BatchItem says where a Write stands in its batch's Body.
type BatchItem struct {
	Op      WriteOp
	ID      string
	Version Version
	Strict  bool
	// Start and End bound the item's encoding in Body; the document is Body[DocStart:DocEnd], empty for OpDelete.
	Start, DocStart, DocEnd, End int
}

// Document returns the bytes of the i-th item's document, nil for OpDelete.
func (b Batch) Document(i int) []byte {
	it := b.Items[i]
	if it.Op == OpDelete {
		return nil
	}
	return b.Body[it.DocStart:it.DocEnd]
}

// Slice returns the batch of the items [from, to), sharing b's bytes. Its items still index into the shared Body, so
// Payload, not Body, is what is sent.
func (b Batch) Slice(from, to int) Batch {
	return Batch{Index: b.Index, Body: b.Body, Items: b.Items[from:to], Deadline: b.Deadline}
}

// Payload returns the encodings of all Items, which stand side by side in Body.
func (b Batch) Payload() []byte {
	if len(b.Items) == 0 {
		return nil
	}
	return b.Body[b.Items[0].Start:b.Items[len(b.Items)-1].End]
}

// Outcome is what became of one document.
type Outcome uint8

// Outcomes. All but OutcomeRetry are final.
const (
	// OutcomeRetry: not done, may succeed later.
	OutcomeRetry Outcome = iota
	// OutcomeIndexed: written.
	OutcomeIndexed
	// OutcomeRemoved: deleted, or was not there; the version is remembered.
	OutcomeRemoved
	// OutcomeStale: the index already holds the same version or a newer one; success.
	OutcomeStale
	// OutcomeMismatch: the record or document belongs to another organization; nothing changed.
	OutcomeMismatch
	// OutcomeRejected: the engine will never take this document.
	OutcomeRejected
)

// String returns the outcome's name as in metrics (CONTRACT section 9).
func (o Outcome) String() string {
	switch o {
	case OutcomeRetry:
		return "retried"
	case OutcomeIndexed:
		return "indexed"
	case OutcomeRemoved:
		return "removed"
	case OutcomeStale:
		return "stale"
	case OutcomeMismatch:
		return "mismatch"
	case OutcomeRejected:
		return "rejected"
	default:
		return "unknown"
	}
}

// Result is what the index said of one Write.
type Result struct {
	Outcome Outcome
	// Type is the engine's error type, such as document_parsing_exception; empty on success.
	Type string
	// Reason is the engine's own text. It may quote the document: it goes to dead letters, never to logs.
	Reason string
	// Code tells why an OutcomeRetry could not be done: CodeOverloaded, CodeUnavailable or CodeIndexBlocked. It is
	// CodeTooLarge for an OutcomeRejected whose record was too large to be fetched.
	Code Code
	// CurrentVersion is the version that made a write stale, zero when unknown.
	CurrentVersion Version
	// Rejected keeps the document of an OutcomeRejected, for the dead letter; nil otherwise.
	Rejected *DeadLetterDocument
}

// DeadLetterDocument is a rejected document as kept in a dead letter.
type DeadLetterDocument struct {
	// Bytes are the first MaxDeadLetterBytes bytes of the document.
	Bytes []byte
	// Size is the size of the whole document in bytes, SHA256 the hexadecimal hash of the whole.
	Size      int
	SHA256    string
	Truncated bool
}

// StoredDocument is a document as the index holds it.
type StoredDocument struct {
	ID      string
	Version Version
	Source  []byte
}

// CheckpointNone is the mark (Index.Mark) of an alias that nothing was ever written to: no document is older than what
// begins then.
const CheckpointNone = "nothing"

// IndexScope selects documents by the record's own organization. The zero value selects all documents of an alias.
type IndexScope struct {
	// Repository is the code in the document's repositories block; empty for any.
	Repository string
	// Field is the field that names the organization (Repository.OrganizationField), Organization its value; both
	// empty for all organizations.
	Field        string
	Organization string
	// Beyond makes a scan below a version also call for documents whose version is higher than Beyond; zero for none.
	Beyond Version
	// WrittenBy is a mark that the index gave (Index.Mark): a scan may leave out documents that were written after it.
	// Empty leaves out none.
	WrittenBy string
}

// Includes reports whether a scan below a version (0: of all) calls for a document of version v.
func (s IndexScope) Includes(v, below Version) bool {
	return below == 0 || v < below || s.Beyond > 0 && v > s.Beyond
}
