package index

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// Spec is the configuration of an alias.
type Spec struct {
	// Alias is the name under which documents are written and read.
	Alias string
	// Mapping is the content of the user's mapping file (package mappingfile), nil for none. Its fields are added to those of Known, or
	// replace them.
	Mapping json.RawMessage
	// NewFields is the policy for fields that the mapping lacks: a policy of package mapping, or "" for that of the mapping file.
	NewFields string
	// Known has the initial fields of tutti's own mapping (mapping.Song, mapping.Repositories). An existing alias keeps the types
	// of its fields; missing fields are added. Nil for none.
	Known *mapping.Field
	// Types are the types that the repository declares for other fields. Only Compare uses them; see Declare for Writes.
	Types *mapping.Types
	// Identity is what Identity returned when the alias was last prepared, "" for never. While that index exists without its alias,
	// Ensure does not create another one and returns CodeIndexBlocked.
	Identity string
	// Kinds are the types that a rebuild has decided by the values of the records, nil for none. They are recorded in the mapping of an index
	// that is created (mapping.Field.RecordKinds).
	Kinds *mapping.Types
	// Replaces is the alias whose index this one will replace by Swap, "" for none. The index is created without copies and periodic
	// refreshes, which Swap adds, and without the aliases of the mapping file, which Swap moves.
	Replaces string
}

// Index is the port to a search index. Aliases have configured names; an alias must be created by Ensure before it accepts writes.
// All methods are safe for concurrent use.
type Index interface {
	// Encode appends the engine's encoding of w to dst and returns it with the bounds of the document in it, which are equal for a
	// deletion. The bytes of a batch are the concatenated encodings of its items.
	Encode(dst []byte, w core.Write) (out []byte, docStart, docEnd int)

	// Write applies the items of b in order and returns one Result each. What it reports as indexed or removed is durable. A write
	// applies when its version is equal to or higher than the stored one, also that of a deletion (external_gte); a strict one only
	// when it is higher (external); otherwise it is OutcomeStale. The deletion of an absent document is OutcomeRemoved and its
	// version is kept for a day. A document that does not fit the mapping is OutcomeRejected and changes nothing, neither other
	// items nor the mapping; unknown paths extend the mapping (document.Derive). Writing to a missing alias returns OutcomeRetry
	// with CodeIndexBlocked for each item, or an error of that code. Write does not change b's bytes, and does not use them after
	// it has returned. An error means that the outcome of all items is unknown or that the engine rejected the whole request; it is
	// a *core.Error.
	Write(ctx context.Context, b core.Batch) ([]core.Result, error)

	// Ensure creates the alias with spec's mapping (Spec.Fields), or adds to an existing one what spec.Mapping says, or without one what it
	// lacks of Known. It may be called repeatedly and concurrently. CodeConflict when an existing mapping contradicts spec.Mapping
	// (core.ErrMappingContradicts), or spec.Alias is the name of an index (core.ErrAliasIsIndex). CodeInvalid, with the path of the field,
	// when the engine refuses the mapping, and core.ErrMappingRefused if the alias exists, which is used as it is.
	Ensure(ctx context.Context, spec Spec) error

	// Declare sets the types that later Writes to an alias use for fields that its mapping lacks (document.Derive). It neither needs nor
	// changes the alias. The types last until this process ends.
	Declare(alias string, types *mapping.Types)

	// Compare returns what the engine has under the name spec.Alias, and how that differs from spec. It changes nothing.
	Compare(ctx context.Context, spec Spec) (Comparison, error)

	// Get returns one document as last written, even before a Refresh; false when it is absent. CodeIndexBlocked when
	// the alias is missing.
	Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error)

	// GetAll calls each for every id, in order, with its document as last written, even before a Refresh, apart from surrounding white
	// space; found is false when it is absent. The document is valid until each returns. CodeIndexBlocked when the alias is missing.
	GetAll(ctx context.Context, alias string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error

	// Count returns the number of documents in scope as of the last Refresh. CodeIndexBlocked when the alias is missing.
	Count(ctx context.Context, alias string, scope core.IndexScope) (int64, error)

	// Refresh makes all completed writes visible to Count, Scan and searches.
	Refresh(ctx context.Context, alias string) error

	// Scan calls each for every document in scope whose version is lower than below (0: for all), or higher than scope.Beyond if
	// that is set, in no particular order, once each, as of the last Refresh. Documents that are written during the scan may be
	// missed or included. An error of each ends the scan and is returned unwrapped.
	Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version,
		each func(id string, v core.Version) error) error

	// Search evaluates reqs on the documents of an alias as of the last Refresh, and returns the results in their order, in one
	// round trip if the engine allows it. Filters, facets and sorts refer to fields of the alias' mapping; an operation that a type
	// does not support yields no documents, buckets or statistics. CodeInvalid, safe to display, for what the engine cannot
	// evaluate; CodeIndexBlocked when the alias is missing or closed; CodeUnavailable when the engine does not answer, or not
	// completely. No Message of an error contains the engine's own text. The search is cancelled when ctx ends.
	Search(ctx context.Context, alias string, reqs []SearchRequest) ([]SearchResult, error)

	// Stream calls each with all matching documents, in batches, as they were at one moment after the last Refresh, regardless of
	// concurrent writes. It holds at most a few thousand of them in memory, which are some megabytes or one document. The hits and their bytes are valid until each returns.
	// An error of each ends the stream and is returned unwrapped. Other errors are those of Search.
	Stream(ctx context.Context, alias string, req StreamRequest, each func([]Hit) error) error

	// Checkpoint returns an opaque checkpoint of everything written to the alias so far, for scope.WrittenBy of a later Scan. It is
	// "", which omits nothing, when the engine has no checkpoints or a part of the index does not answer, and core.CheckpointNone,
	// with which a Scan finds nothing, when nothing was written.
	Checkpoint(ctx context.Context, alias string) (string, error)

	// Check returns nil when the alias accepts writes, CodeIndexBlocked when it is missing, closed or blocked, and CodeUnavailable
	// when the engine does not answer. It is core.ErrIndexMissing only when Ensure would create the index without leaving another
	// one of the alias behind. The message is safe to display.
	Check(ctx context.Context, alias string) error

	// Identity returns a value that no other index has, not even a later one of the same name; "" when the engine has none, or the alias
	// has several indices. It begins with the name of the physical index and "/" where the engine knows indices by such names as well.
	// CodeIndexBlocked when the alias is missing.
	Identity(ctx context.Context, alias string) (string, error)

	// Ping returns nil when the engine answers, otherwise CodeUnavailable.
	Ping(ctx context.Context) error

	// Mapping returns the alias' mapping as Elasticsearch renders it: {"dynamic":…,"properties":{…}}. A field whose facets and sorts the
	// engine gets wrong (fieldtype.Miscounted) has "doc_values": false, and "index": false if it does not find its values either. It reads any index, not only
	// those created by Ensure: when the name stands for several indices (an alias, a data stream) it returns their merged mappings,
	// and CodeConflict, naming the field, when two of them have different types for it. Its errors match, by errors.Is,
	// core.ErrIndexMissing, core.ErrIndexForbidden (both CodeIndexBlocked), core.ErrIndexUnreachable (CodeUnavailable), or none of
	// them. A name that no index can have is CodeInvalid.
	Mapping(ctx context.Context, alias string) (json.RawMessage, error)

	// Swap moves spec.Alias to the index behind from, core.NextAlias or core.PreviousAlias of it, and core.PreviousAlias to the index that
	// spec.Alias had, in one step: every search and every write uses one or the other index. An older index behind core.PreviousAlias is
	// deleted, unless it is from, or others have given it an alias; the alias from is then missing. spec is that of the last Ensure. CodeConflict when the identity of the
	// index behind from is not identity, unless that is "": of several concurrent calls one moves the alias. CodeIndexBlocked when one of
	// the two aliases is missing.
	Swap(ctx context.Context, spec Spec, from, identity string) error

	// Drop deletes an alias with its index, if identity is "" or the index's. It is success when the alias or that index is missing.
	// CodeConflict, and the index stays, when another alias or a data stream reads it, and for a core.NextAlias of an index that Ensure has
	// not created.
	Drop(ctx context.Context, alias, identity string) error

	// Close releases all resources, after the calls in progress have ended.
	Close() error
}

// PhysicalName returns the name of the physical index that has an identity, "" where the engine has no such names.
func PhysicalName(identity string) string {
	name, _, named := strings.Cut(identity, "/")
	if !named {
		return ""
	}
	return name
}

// Shared returns the error of the deletion of an index that others read besides the alias own.
func Shared(physical, own string, others []string) error {
	hint := "remove them from it first, or the alias " + own + " to keep it"
	for _, suffix := range []string{core.NextSuffix, core.PreviousSuffix} {
		if alias, is := strings.CutSuffix(own, suffix); is && slices.Contains(others, alias) { // which searches need
			hint = "remove the alias " + own + " from it: POST /_aliases"
		}
	}
	return &core.Error{
		Code: core.CodeConflict, Message: "the index " + physical + " is also read by other aliases: " + strings.Join(others, ", "), Hint: hint,
	}
}

// Replaced returns the error of a Swap that expects another index behind from.
func Replaced(from string) error {
	return core.NewError(core.CodeConflict, "the alias "+from+" stands for another index by now")
}

// RefusedMapping returns the error of a mapping file that the engine refuses, for an index that exists and is used as it is. Errors other
// than CodeInvalid stay as they are.
func RefusedMapping(err error) error {
	if core.CodeOf(err) != core.CodeInvalid {
		return err
	}
	return &core.Error{Code: core.CodeInvalid, Message: core.MessageOf(err), Hint: core.HintOf(err), Err: errors.Join(core.ErrMappingRefused, err)}
}
