package index

import (
	"context"
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// Spec says what an alias shall look like.
type Spec struct {
	// Alias is the name that documents are written to and read from.
	Alias string
	// Mapping is the content of the user's mapping file, used as it is: either the mapping itself
	// ({"properties":…}) or a create-index body that holds it ({"settings":…,"mappings":…}). Nil means tutti's own
	// strict mapping, which starts from Known. When Mapping is given, nothing is taken from Known but the repositories that
	// tutti adds to every document, and these only where Mapping has no field of that name.
	Mapping json.RawMessage
	// Known holds the fields that tutti's own mapping has from the start (mapping.Song, mapping.Repositories). An
	// alias that exists keeps the type of a field that it has already; fields that it lacks are added. Nil for none.
	Known *mapping.Field
	// Identity is what Identity returned when the alias was last prepared, "" for never. While that index is there without
	// its alias, Ensure makes no other one and returns CodeIndexBlocked.
	Identity string
}

// Index is the port to a search index. The names of aliases are what people configure; an alias must have been made
// by Ensure before it takes writes. All methods may be called concurrently.
type Index interface {
	// Encode appends the engine's encoding of w to dst and returns it with the bounds of the document in it, which are
	// equal for a deletion. The bytes of a batch are the encodings of its items, one after the other.
	Encode(dst []byte, w core.Write) (out []byte, docStart, docEnd int)

	// Write applies the items of b in their order and returns one Result each. What it reports as indexed or removed
	// is durable. A write wins when its version is equal to or higher than the one stored, also over a deletion
	// (external_gte), a strict one only when it is higher (external), else it is OutcomeStale. The deletion of an absent document is OutcomeRemoved and its version
	// is remembered for a day. A document that the mapping forbids is OutcomeRejected and changes nothing, neither
	// its neighbours nor the mapping; unknown paths grow the mapping (mapping.Derive). Writing to an alias that is
	// missing returns OutcomeRetry with CodeIndexBlocked for each item, or an error of that code. Write neither changes
	// nor keeps b's bytes after it has returned. An error means that the outcome of all items is unknown or that the
	// engine refused the whole request; it is a *core.Error.
	Write(ctx context.Context, b core.Batch) ([]core.Result, error)

	// Ensure makes the alias with spec's mapping, or adds spec's fields to an existing one. It may be called any
	// number of times, also concurrently. CodeConflict where an existing mapping contradicts spec.Mapping.
	Ensure(ctx context.Context, spec Spec) error

	// Get returns one document as last written, also before a Refresh; false when it is absent. CodeIndexBlocked when
	// the alias is missing.
	Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error)

	// Count returns the number of documents in scope as of the last Refresh. CodeIndexBlocked when the alias is missing.
	Count(ctx context.Context, alias string, scope core.IndexScope) (int64, error)

	// Refresh makes everything that was written before it visible to Count, Scan and searches.
	Refresh(ctx context.Context, alias string) error

	// Scan calls each for every document in scope whose version is lower than below (0: for all), or higher than
	// scope.Beyond where that is set, in no particular order, once each, as of the last Refresh. Documents that are written while it runs may be missed or seen. An
	// error of each ends the scan and is returned as it is.
	Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version,
		each func(id string, v core.Version) error) error

	// Search answers each of reqs about the documents of an alias as of the last Refresh, in their order, in one round trip
	// where the engine allows it. Filters, facets and sorts name fields of the alias' mapping; what they ask for that a type
	// does not have is no document, no bucket, no statistic. CodeInvalid, safe to display, for what the engine cannot answer;
	// CodeIndexBlocked when the alias is missing or closed; CodeUnavailable when the engine does not answer, or not as a
	// whole. No error holds the engine's own text in its Message. The end of ctx ends the work on it.
	Search(ctx context.Context, alias string, reqs []SearchRequest) ([]SearchResult, error)

	// Stream calls each with all documents that match, some at a time, as they were at one moment after the last Refresh,
	// whatever is written meanwhile. It holds no more than a few thousand of them in memory. The hits and their bytes are
	// each's until it returns. An error of each ends the stream and is returned as it is. Else as Search.
	Stream(ctx context.Context, alias string, req StreamRequest, each func([]Hit) error) error

	// Mark returns an opaque mark of everything that was written to the alias so far, for a later Scan's
	// scope.WrittenBy; empty when the engine has none, or a part of the index does not answer, which leaves out
	// nothing; core.CheckpointNone when nothing was written, with which a Scan finds nothing.
	Mark(ctx context.Context, alias string) (string, error)

	// Check returns nil when the alias takes writes now, CodeIndexBlocked when it is missing, closed or blocked, and
	// CodeUnavailable when the engine does not answer. It is core.ErrIndexMissing only where Ensure would make the index
	// anew without leaving another one of the alias behind. The message is safe to display.
	Check(ctx context.Context, alias string) error

	// Identity returns what no other index has, also none that is made later under the same name; "" where the engine
	// does not say. CodeIndexBlocked when the alias is missing.
	Identity(ctx context.Context, alias string) (string, error)

	// Ping returns nil when the engine answers, else CodeUnavailable.
	Ping(ctx context.Context) error

	// Mapping returns the alias' mapping as Elasticsearch renders it: {"dynamic":…,"properties":{…}}. It reads any index, not
	// only what Ensure made: where the name stands for several indices (an alias, a data stream) it is their mappings in
	// one, and CodeConflict, naming the field, where two of them give it different types. Its errors say by errors.Is
	// what the matter is: core.ErrIndexMissing, core.ErrIndexForbidden (both CodeIndexBlocked),
	// core.ErrIndexUnreachable (CodeUnavailable), else none of them. A name that no index can have is CodeInvalid.
	Mapping(ctx context.Context, alias string) (json.RawMessage, error)

	// Close lets go of everything that the engine holds, after the calls in progress have ended.
	Close() error
}
