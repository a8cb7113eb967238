package merged

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"tutti/internal/base/equality"
	"tutti/internal/base/isodate"
	"tutti/internal/base/jsontext"
	"tutti/internal/base/order"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// entry is what is known of one repository's record in a document.
type entry struct {
	Code         string       `json:"code"`
	Version      core.Version `json:"version"`
	Organization string       `json:"organization"`
	RecordID     string       `json:"recordId"`
	UpdatedAt    string       `json:"updatedAt,omitempty"`
	// Hash is that of the record, without the members that ownMembers names.
	Hash string `json:"hash"`
	// Block is the repository's block in repositories.
	block []byte
}

// document is a document of a shared index, taken apart.
type document struct {
	// entries are sorted by code.
	entries []entry
	// content are the members of the record that it is made of, without repositories, and hash is that record's.
	content []byte
	hash    string
	// removals is set if a repository's record may have been removed before, so that a block is added only with a marker.
	removals bool
	// conflicts are core.SharedState.Conflicts, sorted.
	conflicts []core.SharedConflict
}

// storedState is the value of the field mapping.Shared.
type storedState struct {
	// Scope has the terms that select the document (scopeTerms).
	Scope []string `json:"scope"`
	State struct {
		Hash string `json:"hash"`
		// Unordered is set where the hashes do not depend on the order of arrays without order.
		Unordered bool                  `json:"unordered,omitempty"`
		Removals  bool                  `json:"removals,omitempty"`
		Entries   []entry               `json:"entries"`
		Conflicts []core.SharedConflict `json:"conflicts,omitempty"`
	} `json:"state"`
}

// parse takes a stored document apart. One from before the index was shared has no state: version becomes that of its entries.
func (g *group) parse(stored core.StoredDocument) document {
	parts := split(stored.Source)
	var state storedState
	d := document{content: parts.content}
	if parts.state != nil && json.Unmarshal(parts.state, &state) == nil {
		d.entries, d.hash, d.removals, d.conflicts = state.State.Entries, state.State.Hash, state.State.Removals, state.State.Conflicts
		if !state.State.Unordered && len(d.content) > 0 { // a scan reads the state only
			g.renewHashes(&d)
		}
	} else {
		d.removals = true // by a tutti for which the index was not shared
		d.hash = g.hash(stored.Source)
		for code := range parts.blocks {
			if repo, is := g.repositories[code]; is {
				d.entries = append(d.entries, entryOf(repo, stored.ID, stored.Version, stored.Source, d.hash))
			}
		}
		order.Sort(d.entries, func(a, b entry) int { return cmp.Compare(a.Code, b.Code) })
	}
	for i := range d.entries {
		d.entries[i].block = parts.blocks[d.entries[i].Code]
	}
	return d
}

// entryOf returns the entry of a repository's own document.
func entryOf(repo core.Repository, id string, version core.Version, source []byte, hash string) entry {
	e := entry{
		Code: repo.Code, Version: version, RecordID: id, UpdatedAt: updatedAt(repo, source), Hash: hash,
		Organization: gjson.GetBytes(source, repo.Fields.Organization).String(),
	}
	if repo.Fields.Document != "" {
		e.RecordID = gjson.GetBytes(source, repo.Fields.ID).String()
	}
	return e
}

// parts are the members of a document.
type parts struct {
	// content has all but the two others, separated by commas.
	content []byte
	blocks  map[string][]byte
	state   []byte
}

func split(source []byte) parts {
	p := parts{blocks: map[string][]byte{}, content: make([]byte, 0, len(source))}
	jsontext.Members(source, 0, func(name []byte, _ bool, value jsontext.Span) bool {
		switch string(name) {
		case mapping.Shared:
			p.state = value.Of(source)
		case "repositories":
			jsontext.Items(source, value, func(item jsontext.Span) bool {
				block := item.Of(source)
				p.blocks[gjson.GetBytes(block, "code").String()] = block
				return true
			})
		default:
			if len(p.content) > 0 {
				p.content = append(p.content, ',')
			}
			p.content = append(p.content, '"')
			p.content = append(p.content, name...)
			p.content = append(p.content, '"', ':')
			p.content = append(p.content, value.Of(source)...)
		}
		return true
	})
	return p
}

// appendDocument appends the document of blocks and a record's content.
func appendDocument(dst, state, content []byte, blocks ...[]byte) []byte {
	dst = append(dst, '{')
	if state != nil {
		dst = append(dst, `"`+mapping.Shared+`":`...)
		dst = append(append(dst, state...), ',')
	}
	dst = append(dst, `"repositories":[`...)
	dst = append(append(dst, bytes.Join(blocks, []byte{','})...), ']')
	if len(content) > 0 {
		dst = append(append(dst, ','), content...)
	}
	return append(dst, '}')
}

// encode returns the document as it is stored.
func (d document) encode() ([]byte, error) {
	var state storedState
	state.State.Hash, state.State.Removals, state.State.Entries, state.State.Conflicts = d.hash, d.removals, d.entries, d.conflicts
	state.State.Unordered = true
	blocks := make([][]byte, 0, len(d.entries))
	for _, e := range d.entries {
		state.Scope = append(state.Scope, scopeTerms(e)...)
		if e.block != nil {
			blocks = append(blocks, e.block)
		}
	}
	encoded, err := json.Marshal(state)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "encoding the state of a shared document", err)
	}
	return appendDocument(nil, encoded, d.content, blocks...), nil
}

// scopeTerms returns the terms by which an entry's document is found: the repository, one of its organizations, or one of its records.
// A code contains none of the separators.
func scopeTerms(e entry) []string {
	return []string{e.Code, e.Code + ":" + e.Organization, e.Code + "/" + e.RecordID}
}

func (d document) find(code string) (int, bool) {
	return slices.BinarySearchFunc(d.entries, code, func(e entry, code string) int { return cmp.Compare(e.Code, code) })
}

// ownMembers are the members of a record that each repository sets itself: they make no difference between two of them.
func ownMembers() []string {
	return []string{
		"createdAt", "updatedAt", "publishedAt", "firstPublishedAt", "analysisStateHistory", "updated_at", "published_at", "first_published_at",
	}
}

// contentRules returns the rules by which the records of a group are compared.
func contentRules(repositories map[string]core.Repository) *equality.Rules {
	var unordered []string
	for _, r := range repositories {
		unordered = append(unordered, r.Fields.Unordered...)
	}
	without := []string{mapping.Shared, "repositories"}
	for _, name := range ownMembers() {
		without = append(without, name, "analysis."+name)
	}
	return equality.New(unordered, without...)
}

// hash returns the hash of a document's record.
func (g *group) hash(source []byte) string {
	sum := g.rules.Sum(source)
	return hex.EncodeToString(sum[:])
}

// renewHashes replaces the hashes of a document that was written when the order of all arrays made a difference. That of a record that
// was in conflict stays, because only its repository has the record: its next write settles that.
func (g *group) renewHashes(d *document) {
	was := d.hash
	d.hash = g.hash(appendDocument(nil, nil, d.content))
	for i := range d.entries {
		if d.entries[i].Hash == was {
			d.entries[i].Hash = d.hash
		}
	}
}

// updatedAt returns when a document's record was changed according to its repository, "" where that is not a date.
func updatedAt(repo core.Repository, source []byte) string {
	if repo.Fields.Updated == "" {
		return ""
	}
	text := gjson.GetBytes(source, repo.Fields.Updated).String()
	if _, ok := isodate.Time(text); !ok {
		return ""
	}
	return text
}
