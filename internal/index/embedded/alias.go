package embedded

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/gjson"
	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// format is the version of the file's layout. Files of version 1 had no segments, which are rebuilt from the sources.
const format = 2

// alias is one alias of the index file.
type alias struct {
	name   string
	limits limits
	// identity is random. It is set when the alias is created, or when a file of an earlier version without identities is opened.
	identity string

	// growth is held while the tree is replaced. The tree can be read without it.
	growth sync.Mutex
	tree   atomic.Pointer[mapping.Field]

	// saved is the tree in the file, terms is a copy of the terms bucket; both belong to the write transaction in progress.
	saved *mapping.Field
	terms map[string]term

	segments *segmentSet
}

func loadAlias(name string, b *bbolt.Bucket) (*alias, error) {
	tree, err := mapping.Parse(b.Get(keyMapping()))
	if err != nil {
		return nil, core.WrapError(core.CodeUnsupported, fmt.Sprintf("the mapping of the index %q cannot be read", name), err)
	}
	a := &alias{
		name: name, identity: string(b.Get(keyIdentity())), saved: tree, segments: newSegmentSet(b.Bucket(bucketRows()).Sequence()),
	}
	a.tree.Store(tree)
	if err := json.Unmarshal(b.Get(keyLimits()), &a.limits); err != nil {
		return nil, core.WrapError(core.CodeUnsupported, fmt.Sprintf("the limits of the index %q cannot be read", name), err)
	}
	return a, a.loadTerms(b)
}

// loadTerms reads the numbers of all terms.
func (a *alias) loadTerms(b *bbolt.Bucket) error {
	a.terms = map[string]term{}
	return b.Bucket(bucketTerms()).ForEach(func(key, value []byte) error {
		if len(value) != 4 {
			return errCorrupt("term")
		}
		a.terms[string(key)] = term(binary.BigEndian.Uint32(value))
		return nil
	})
}

func aliasBucket(tx *bbolt.Tx, name string) *bbolt.Bucket {
	return tx.Bucket(bucketAliases()).Bucket([]byte(name))
}

// saveTree writes the tree unless the file already has it.
func (a *alias) saveTree(b *bbolt.Bucket) error {
	tree := a.tree.Load()
	if tree == a.saved {
		return nil
	}
	raw, err := tree.Render()
	if err != nil {
		return err
	}
	if err := b.Put(keyMapping(), raw); err != nil {
		return err
	}
	a.saved = tree
	return nil
}

// limits bound the mapping that documents can create, as Elasticsearch's settings index.mapping.* of the same names do.
type limits struct {
	Fields int `json:"totalFields"`
	Nested int `json:"nestedFields"`
	Depth  int `json:"depth"`
}

// limitsOf returns the limits in the settings beside a user's mapping, by default Elasticsearch's.
func limitsOf(body json.RawMessage) limits {
	return limits{
		Fields: setting(body, "total_fields", 1000),
		Nested: setting(body, "nested_fields", 50),
		Depth:  setting(body, "depth", 20),
	}
}

func setting(body json.RawMessage, name string, otherwise int) int {
	for _, path := range []string{"index.mapping.%s.limit", "mapping.%s.limit", `index\.mapping\.%s\.limit`} {
		if v := gjson.GetBytes(body, "settings."+fmt.Sprintf(path, name)); v.Int() > 0 {
			return int(v.Int())
		}
	}
	return otherwise
}

// exceeded returns a message with the limit that tree exceeds, or "".
func (l limits) exceeded(tree *mapping.Field) string {
	fields, nested, depth := 0, 0, 0
	for path, f := range tree.All() {
		fields++
		depth = max(depth, 1+strings.Count(path, "."))
		if f.Type == mapping.Nested {
			nested++
		}
	}
	switch {
	case fields > l.Fields:
		return fmt.Sprintf("Limit of total fields [%d] has been exceeded", l.Fields)
	case nested > l.Nested:
		return fmt.Sprintf("Limit of nested fields [%d] has been exceeded", l.Nested)
	case depth > l.Depth:
		return fmt.Sprintf("Limit of mapping depth [%d] has been exceeded", l.Depth)
	default:
		return ""
	}
}
