package selection

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
)

// Set selects fields from the objects of one type within documents. Members are found in one pass and written in the
// order of the query.
type Set struct {
	fields []field
	// keys are the selected members of the objects. keyIndex maps a key to its index; it is nil for few keys.
	keys     []string
	keyIndex map[string]int
	// lengthBits has a bit for the length of each key modulo 64, to reject most other names early.
	lengthBits uint64
	// longest is the length of the longest key.
	longest int
	// names are the member names of the last objects, learned counts the updates.
	names   atomic.Pointer[memberNames]
	learned atomic.Int64
	// usual is the usual size of a written object.
	usual atomic.Int64
	// fieldsOf are the indices of the fields of each key: a field may be selected under several aliases.
	fieldsOf [][]int
}

// field is one field of a selection set.
type field struct {
	// encodedKey is the response key as JSON, with its colon.
	encodedKey []byte
	key        string
	// name is the field name in the catalogue, "" for none.
	name string
	kind fieldKind
	// keyIndex is the index of the member among the keys.
	keyIndex int
	scalar   scalarKind
	list     bool
	field    *ast.Field
	// selection is set for an object, nested for nested elements.
	selection *Set
	nested    *nestedConnection
}

type fieldKind uint8

const (
	fieldNull fieldKind = iota
	fieldTypename
	fieldID
	fieldScalar
	fieldObject
	fieldNested
)

// ofMember reports whether the field's value is a member of the object.
func (one *field) ofMember() bool { return one.kind >= fieldScalar }

// nestedConnection selects fields of the connection of nested elements, {hits{total edges{…}}}, or of its hits.
type nestedConnection struct {
	fields []connectionField
	// elements is the range of elements for edges.
	elements elements
}

type connectionField struct {
	encodedKey []byte
	key        string
	kind       connectionKind
	field      *ast.Field
	hits       *nestedConnection
	edge       *Edge
}

type connectionKind uint8

const (
	connectionNull connectionKind = iota
	connectionTypename
	connectionHits
	connectionTotal
	connectionEdges
)

// Edge selects fields of an edge.
type Edge struct {
	fields []edgeField
}

type edgeField struct {
	encodedKey []byte
	key        string
	kind       edgeKind
	field      *ast.Field
	selection  *Set
}

type edgeKind uint8

const (
	edgeTypename edgeKind = iota
	edgeSearchAfter
	edgeNode
)

// manyKeys is the number of keys from which a map is faster than a linear search.
const manyKeys = 8

// finish builds the lookup tables, once all fields are known.
func (s *Set) finish() *Set {
	s.fieldsOf = make([][]int, len(s.keys))
	for i := range s.fields {
		if one := &s.fields[i]; one.ofMember() {
			s.fieldsOf[one.keyIndex] = append(s.fieldsOf[one.keyIndex], i)
		}
	}
	for _, key := range s.keys {
		s.lengthBits |= 1 << (len(key) % 64)
		s.longest = max(s.longest, len(key))
	}
	if len(s.keys) > manyKeys {
		s.keyIndex = make(map[string]int, len(s.keys))
		for i, key := range s.keys {
			s.keyIndex[key] = i
		}
	}
	return s
}

// addKey returns the index of a key, and adds it if it is new.
func (s *Set) addKey(key string) int {
	for i, k := range s.keys {
		if k == key {
			return i
		}
	}
	s.keys = append(s.keys, key)
	return len(s.keys) - 1
}

// Selects reports whether a field is selected at any depth.
func (s *Set) Selects(name string) bool {
	return slices.ContainsFunc(s.fields, func(w field) bool {
		return w.field != nil && w.field.Name == name || w.selection != nil && w.selection.Selects(name)
	})
}

// elements is the range of a document's nested elements to return, in the document's order. total counts all elements.
type elements struct {
	// offset is the number of elements to skip, limit the maximum number to return, -1 for no limit.
	offset, limit int
}

// Limits of memberNames.
const (
	// maxNames is the number of names stored per selection set, maxLearned how often a name is stored: it stops for objects that
	// have nothing in common.
	maxNames   = 256
	maxLearned = 1024
)

// memberNames are the member names of the last objects of a selection set, in order. Documents of an index are similar: comparing
// the next name with the expected one is cheaper than scanning it and looking it up. A memberNames is immutable.
type memberNames struct {
	// encoded are the names as in JSON, with quotes and colon; keyIndices are their indices among the keys, -1 for none.
	encoded    [][]byte
	keyIndices []int
}

// at returns the key index of the nth name and the offset of its value if doc[i] starts with that name; otherwise a value of 0.
func (n *memberNames) at(nth int, doc []byte, i int) (slot, value int) {
	if n == nil || nth >= len(n.encoded) || !bytes.HasPrefix(doc[i:], n.encoded[nth]) {
		return -1, 0
	}
	return n.keyIndices[nth], i + len(n.encoded[nth])
}

// learn stores the nth name of an object. Concurrent updates may be lost.
func (s *Set) learn(nth int, written []byte, slot int) {
	known := s.names.Load()
	if known == nil {
		known = &memberNames{}
	}
	if nth > len(known.encoded) || nth >= maxNames || s.learned.Add(1) > maxLearned {
		return
	}
	now := &memberNames{encoded: slices.Clone(known.encoded), keyIndices: slices.Clone(known.keyIndices)}
	if nth == len(now.encoded) {
		now.encoded, now.keyIndices = append(now.encoded, nil), append(now.keyIndices, 0)
	}
	now.encoded[nth], now.keyIndices[nth] = bytes.Clone(written), slot
	s.names.Store(now)
}

// UsualSize estimates the size of a written document, biased to the recent larger ones.
func (s *Set) UsualSize() int { return int(s.usual.Load()) }

// LearnSize updates the estimate after a document. Concurrent updates may be lost.
func (s *Set) LearnSize(usual, size int) {
	if now := max(size, usual-usual/8); now != usual {
		s.usual.Store(int64(now))
	}
}
