package merged

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
)

// View is what a repository reads of a shared index: its own entries, as if each were a document of its own. It is safe for concurrent
// use.
type View struct {
	index *Index
	group *group
	repo  core.Repository
}

// Of returns the view of a repository, nil if its index is not shared.
func (x *Index) Of(repo core.Repository) *View {
	g := x.groups[repo.IndexName]
	if g == nil {
		return nil
	}
	return &View{index: x, group: g, repo: repo}
}

// Get returns what the entry says of a record: a document with the ids of the record and its organization, for Same, and with the version
// of the entry.
func (v *View) Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error) {
	stored, found, err := v.index.Get(ctx, alias, id)
	if err != nil || !found {
		return core.StoredDocument{}, false, err
	}
	return v.own(stored)
}

// GetAll is Get for several documents.
func (v *View) GetAll(ctx context.Context, alias string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error {
	var fault error
	err := v.index.GetAll(ctx, alias, ids, func(i int, stored core.StoredDocument, found bool) {
		if found {
			var err error
			stored, found, err = v.own(stored)
			fault = cmp.Or(fault, err)
		}
		each(i, stored, found)
	})
	return cmp.Or(err, fault)
}

// State returns the state of a document, that of all repositories.
func (v *View) State(ctx context.Context, alias, id string) (core.SharedState, error) {
	stored, found, err := v.index.Get(ctx, alias, id)
	if err != nil || !found {
		return core.SharedState{}, err
	}
	d := v.group.parse(stored)
	return *v.group.state(&d), nil
}

// comparedEntry is the part of a document of Get that Same reads.
type comparedEntry struct {
	Hash         string `json:"hash"`
	Organization string `json:"organization"`
	UpdatedAt    string `json:"updatedAt"`
	Block        string `json:"block"`
	Conflict     bool   `json:"conflict,omitempty"`
}

// own returns the repository's entry of a stored document, false if it has none.
func (v *View) own(stored core.StoredDocument) (core.StoredDocument, bool, error) {
	d := v.group.parse(stored)
	at, has := d.find(v.repo.Code)
	if !has {
		return core.StoredDocument{}, false, nil
	}
	e := d.entries[at]
	own := core.StoredDocument{ID: stored.ID, Version: e.Version, Source: []byte(`{}`), Index: stored.Index}
	members := map[string]any{v.repo.Fields.ID: e.RecordID, v.repo.Fields.Organization: e.Organization}
	if v.repo.Fields.Updated != "" {
		members[v.repo.Fields.Updated] = e.UpdatedAt
	}
	if winner := d.entries[v.group.winner(d.entries)]; winner.Hash == d.hash { // otherwise the document must be written again
		members[mapping.Shared] = comparedEntry{e.Hash, e.Organization, e.UpdatedAt, string(e.block), e.Hash != winner.Hash}
	}
	for path, value := range members {
		var err error
		if own.Source, err = sjson.SetBytes(own.Source, path, value); err != nil {
			return own, false, core.WrapError(core.CodeInternal, "encoding an entry of a shared document", err)
		}
	}
	return own, true, nil
}

// Same reports whether the document of Get is the entry of a repository's document.
func (v *View) Same(stored, document []byte) bool {
	var read struct {
		Entry *comparedEntry `json:"_tutti"`
	}
	if json.Unmarshal(stored, &read) != nil || read.Entry == nil {
		return false
	}
	own, e := v.group.newOwn(v.repo, core.BatchItem{}, document), read.Entry
	return e.Hash == own.Hash && e.Organization == own.Organization && e.UpdatedAt == own.UpdatedAt && e.Block == string(own.block)
}

// InConflict reports whether the record of a document of Get differs from the newer one that the document is made of.
func (v *View) InConflict(stored []byte) bool {
	return gjson.GetBytes(stored, mapping.Shared+".conflict").Bool()
}

// Refresh implements index.Index.
func (v *View) Refresh(ctx context.Context, alias string) error { return v.index.Refresh(ctx, alias) }

// Checkpoint returns "": a scan omits nothing.
func (v *View) Checkpoint(context.Context, string) (string, error) { return "", nil }

// Count returns the number of the repository's documents in scope.
func (v *View) Count(ctx context.Context, alias string, scope core.IndexScope) (int64, error) {
	found, err := v.scan(ctx, alias, scope, 0)
	return int64(len(found)), err
}

// Scan calls each for the documents of the repository in scope, with the versions of its entries, after it has found them all: an engine
// may not be read while it streams.
func (v *View) Scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version,
	each func(id string, v core.Version) error,
) error {
	found, err := v.scan(ctx, alias, scope, below)
	if err != nil {
		return err
	}
	for _, one := range found {
		if err := each(one.id, one.version); err != nil {
			return err
		}
	}
	return nil
}

type scanned struct {
	id      string
	version core.Version
}

func (v *View) scan(ctx context.Context, alias string, scope core.IndexScope, below core.Version) ([]scanned, error) {
	filter, err := v.filter(ctx, alias, scope)
	if err != nil {
		return nil, err
	}
	var found []scanned
	var earlier []string // documents from before the index was shared
	req := index.StreamRequest{Filter: filter, Source: index.Source{Paths: []string{mapping.Shared}}}
	err = v.index.Stream(ctx, alias, req, func(hits []index.Hit) error {
		for _, hit := range hits {
			if state := gjson.GetBytes(hit.Source, mapping.Shared); !state.Exists() {
				earlier = append(earlier, hit.ID)
				continue
			}
			found = v.include(found, scope, below, hit.ID, v.group.parse(core.StoredDocument{ID: hit.ID, Source: hit.Source}))
		}
		return nil
	})
	for chunk := range slices.Chunk(earlier, earlierChunk) {
		if err != nil {
			break
		}
		err = v.index.GetAll(ctx, alias, chunk, func(_ int, stored core.StoredDocument, is bool) {
			if is {
				found = v.include(found, scope, below, stored.ID, v.group.parse(stored))
			}
		})
	}
	return found, err
}

// earlierChunk is the number of documents from before the index was shared that are read in one request.
const earlierChunk = 100

// include appends a document if its entry of the repository is in scope.
func (v *View) include(found []scanned, scope core.IndexScope, below core.Version, id string, d document) []scanned {
	at, has := d.find(v.repo.Code)
	if !has || !scope.Includes(d.entries[at].Version, below) || !slices.Contains(scopeTerms(d.entries[at]), v.term(scope)) {
		return found
	}
	return append(found, scanned{id, d.entries[at].Version})
}

// term returns the term of scopeTerms that selects a scope.
func (v *View) term(scope core.IndexScope) string {
	switch scope.Field {
	case "":
		return v.repo.Code
	case v.repo.Fields.ID:
		return v.repo.Code + "/" + scope.Organization
	default:
		return v.repo.Code + ":" + scope.Organization
	}
}

// filter returns the filter of the documents in scope, and of all of the repository that are from before the index was shared.
func (v *View) filter(ctx context.Context, alias string, scope core.IndexScope) (*query.Node, error) {
	raw, err := v.index.Index.Mapping(ctx, alias)
	if err != nil {
		return nil, err
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the mapping of the index cannot be read", err)
	}
	state := query.Field{Path: mapping.Shared + ".scope", Type: string(mapping.Keyword)}
	code := query.Field{Path: "repositories.code", Type: string(mapping.Keyword)}
	if block := tree.Lookup("repositories"); block != nil && block.Type == mapping.Nested {
		code.Nested = []string{"repositories"}
	}
	without := &query.Node{Op: query.Not, Children: []*query.Node{{Op: query.Exists, Field: state}}}
	return query.Either(query.Exactly(state, []string{v.term(scope)}), query.Both(query.Exactly(code, []string{v.repo.Code}), without)), nil
}
