package core

import (
	"fmt"
	"time"
)

// Version orders the writes of one document. It is the queue's timestamp, in nanoseconds since 1970, of the Request that caused
// the fetch (DESIGN, Data).
type Version int64

// WriteOp is what a Write does to a document.
type WriteOp uint8

// Operations of a Write.
const (
	OpIndex WriteOp = iota
	OpDelete
)

// Write is one write of one document.
type Write struct {
	Op      WriteOp
	ID      string
	Version Version
	// Strict rejects the write if the stored version is the same, not only if it is higher: of several writers that read one
	// version and write the next, one succeeds.
	Strict bool
	// Repository is the code of the repository that the write is for. It matters in an index that repositories share.
	Repository string
	// Document is the complete document, one JSON object without line feeds; nil for OpDelete. It is valid only until the call
	// that receives it returns.
	Document []byte
	// Plain reports whether Document has neither raw line feeds nor numbers of LongNumber bytes or more: an engine need not look for them.
	// False says nothing.
	Plain bool
	// FetchedAt is when the body was requested: later changes of the record may be missing from it. For a record that was fetched
	// individually, it is at most half of the maximum age before the body arrived, however slow the upstream was, because
	// otherwise the body could not be written. So the body of such a record may be older by the excess time of the upstream, and
	// by up to one second of waiting for memory. A body that is too old is not written (DESIGN, Bodies are short-lived). The version does not
	// need FetchedAt, because a record is always fetched after its Request was stored. FetchedAt is needed if the engine has
	// forgotten the version of a removal, as a shard does when it is reopened: an old body would restore the document, and the
	// older the body may be, the more likely is a removal after it.
	FetchedAt time.Time
}

// Batch is a sequence of Writes to one alias, encoded for one engine.
type Batch struct {
	// Index is the alias to write to.
	Index string
	// Body holds the engine's encodings of all Items, one after the other. It must not be changed, nor kept after the call.
	Body  []byte
	Items []BatchItem
	// Deadline is when the first of the documents becomes too old to be sent; zero for never. An engine that forgets the version
	// of a removal must not send documents after it, even if it has sent a part of the batch before.
	Deadline time.Time
}

// BatchItem locates a Write in the Body of its batch.
type BatchItem struct {
	Op      WriteOp
	ID      string
	Version Version
	Strict  bool
	// Repository and Plain are those of the Write.
	Repository string
	Plain      bool
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

// Slice returns the batch of the items [from, to), sharing b's bytes. Its items still index into the shared Body; send Payload,
// not Body.
func (b Batch) Slice(from, to int) Batch {
	return Batch{Index: b.Index, Body: b.Body, Items: b.Items[from:to], Deadline: b.Deadline}
}

// Payload returns the encodings of all Items, which are contiguous in Body.
func (b Batch) Payload() []byte {
	if len(b.Items) == 0 {
		return nil
	}
	return b.Body[b.Items[0].Start:b.Items[len(b.Items)-1].End]
}

// WriteExcept calls write with the items of b but the rejected ones, if any are left, and returns the results of all. The keys of rejected are
// indices of Items. Errors are those of write, and CodeUnavailable for another number of results than items.
func (b Batch) WriteExcept(rejected map[int]Result, write func(Batch) ([]Result, error)) ([]Result, error) {
	rest := Batch{Index: b.Index, Deadline: b.Deadline}
	for i, item := range b.Items {
		if _, is := rejected[i]; is {
			continue
		}
		shift := len(rest.Body) - item.Start
		rest.Body = append(rest.Body, b.Body[item.Start:item.End]...)
		item.Start, item.DocStart, item.DocEnd, item.End = item.Start+shift, item.DocStart+shift, item.DocEnd+shift, item.End+shift
		rest.Items = append(rest.Items, item)
	}
	var results []Result
	if len(rest.Items) > 0 {
		var err error
		if results, err = write(rest); err != nil {
			return nil, err
		}
		if len(results) != len(rest.Items) {
			return nil, NewError(CodeUnavailable, fmt.Sprintf("the index returned %d results for %d documents", len(results), len(rest.Items)))
		}
	}
	all := make([]Result, len(b.Items))
	for i := range all {
		if r, is := rejected[i]; is {
			all[i] = r
			continue
		}
		all[i], results = results[0], results[1:]
	}
	return all, nil
}

// Outcome is the result of writing one document.
type Outcome uint8

// Outcomes. All but OutcomeRetry are final.
const (
	// OutcomeRetry: not done, may succeed later.
	OutcomeRetry Outcome = iota
	// OutcomeIndexed: written.
	OutcomeIndexed
	// OutcomeRemoved: deleted, or did not exist; the version is remembered.
	OutcomeRemoved
	// OutcomeStale: the index already has the same or a newer version; success.
	OutcomeStale
	// OutcomeMismatch: the record or document belongs to another organization; nothing changed.
	OutcomeMismatch
	// OutcomeRejected: the engine will never accept this document.
	OutcomeRejected
	// OutcomeExcluded: an exclusion rule applies to the record, which has no documents. It counts records.
	OutcomeExcluded
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
	case OutcomeExcluded:
		return "excluded"
	default:
		return "unknown"
	}
}

// Result is the index's result of one Write.
type Result struct {
	Outcome Outcome
	// Type is the engine's error type, for example document_parsing_exception; empty on success.
	Type string
	// Reason is the engine's error text. It may quote the document: it goes to dead letters, never to logs.
	Reason string
	// Hint says what to do about an OutcomeRejected, "" where no more is known than that it was rejected.
	Hint string
	// Code is the reason of an OutcomeRetry: CodeOverloaded, CodeUnavailable or CodeIndexBlocked. It is CodeTooLarge for an
	// OutcomeRejected whose record was too large to fetch.
	Code Code
	// CurrentVersion is the version that made a write stale, zero if unknown.
	CurrentVersion Version
	// NextVersion is the version that made the write stale in the index that a rebuild fills, zero if it was not, or unknown.
	NextVersion Version
	// Mirrored is set when the write also went to the index that a rebuild fills.
	Mirrored bool
	// Rejected is the document of an OutcomeRejected, for the dead letter; nil otherwise.
	Rejected *DeadLetterDocument
	// Shared is the state of the document in an index that repositories share, after an OutcomeIndexed or OutcomeRemoved, or the one that
	// made a write OutcomeStale; nil if it is not known.
	Shared *SharedState
}

// SharedState is the state of a document in an index that repositories share. The zero value is that of an absent document.
type SharedState struct {
	Blocks []SharedBlock
	// Conflicts are the records that were in conflict in this or an earlier state of the document. Only these can have a dead letter of a
	// conflict; whether they must have one, Blocks say.
	Conflicts []SharedConflict
}

// InConflict reports whether the record of a repository, which is of an organization, is in conflict.
func (s SharedState) InConflict(repository, organization string) (SharedBlock, bool) {
	for _, b := range s.Blocks {
		if b.Repository == repository && b.Organization == organization {
			return b, b.Conflict
		}
	}
	return SharedBlock{}, false
}

// SharedConflict identifies the record of a repository in a shared document.
type SharedConflict struct {
	Repository   string `json:"code"`
	Organization string `json:"organization"`
}

// SharedBlock is what one repository has in a document of an index that repositories share.
type SharedBlock struct {
	// Repository is the code of the repository. Organization and RecordID are its record's.
	Repository, Organization, RecordID string
	// Version is that of the repository's last write, Hash that of the record.
	Version Version
	Hash    string
	// Conflict is set when the record differs from the one that the document is made of, which is newer.
	Conflict bool
	// Document is the document that the record would be alone, if Conflict is set and the write has replaced or not used it.
	Document *DeadLetterDocument
	// Fetch is set when the document should be made of this record, but is made of another one: it must be fetched.
	Fetch bool
}

// DeadLetterDocument is a rejected document as a dead letter stores it.
type DeadLetterDocument struct {
	// Bytes are the first MaxDeadLetterBytes bytes of the document.
	Bytes []byte
	// Size is the size of the whole document in bytes, SHA256 its hexadecimal hash.
	Size      int
	SHA256    string
	Truncated bool
}

// StoredDocument is a document as the index stores it.
type StoredDocument struct {
	ID      string
	Version Version
	Source  []byte
	// Index is the physical index that holds it, empty if the engine has only aliases.
	Index string
}

// CheckpointNone is the checkpoint (Index.Checkpoint) of an alias that was never written to: it has no document that is older.
const CheckpointNone = "nothing"

// IndexScope selects documents by the record's own organization. The zero value selects all documents of an alias.
type IndexScope struct {
	// Repository is the code in the document's repositories block; empty for any.
	Repository string
	// Field is the field with the organization (Repository.OrganizationField), Organization its value; both empty for all
	// organizations.
	Field        string
	Organization string
	// Beyond extends a scan below a version to documents whose version is higher than Beyond; zero for none.
	Beyond Version
	// WrittenBy is a checkpoint of the index (Index.Checkpoint): a scan may omit documents that were written after it. Empty omits
	// none.
	WrittenBy string
}

// Includes reports whether a scan below a version (0: of all) includes a document of version v.
func (s IndexScope) Includes(v, below Version) bool {
	return below == 0 || v < below || s.Beyond > 0 && v > s.Beyond
}
