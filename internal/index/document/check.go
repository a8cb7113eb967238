package document

import (
	"bytes"
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"tutti/internal/base/isodate"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/mapping"
)

// ParsingError is the reason why a document does not fit the mapping, in Elasticsearch's words.
type ParsingError struct {
	// Type is an error type of Elasticsearch, such as core.TypeParsing.
	Type string
	// Reason names the field. It may quote the document.
	Reason string
}

// Error returns the reason.
func (e *ParsingError) Error() string { return e.Reason }

// Kind is the JSON type of a value.
type Kind uint8

// Kinds of the values passed to a Sink.
const (
	KindString Kind = iota
	KindNumber
	KindBoolean
	KindObject
)

// Sink receives the values of a document in document order. Null, empty arrays and members that the mapping lacks are omitted; the
// elements of an array are passed one by one.
type Sink interface {
	// Enter and Leave mark the start and end of an object of an Object or Nested field below the root.
	Enter(f *mapping.Field)
	Leave(f *mapping.Field)
	// Value is called with a value of any other field: the inside of a string with its escapes (see jsontext.Unquote), or the JSON text of a
	// number, of true and false, and of an object under a Flattened or an opaque type. raw is part of the document.
	Value(f *mapping.Field, kind Kind, raw []byte)
}

// maxLinearNames is the number of members of an object up to which names are compared pairwise.
const maxLinearNames = 16

// Checker checks documents against a mapping as Elasticsearch does when it indexes them. It reuses its buffers. It is not safe for
// concurrent use. The zero value is ready.
type Checker struct {
	// AllTerms also rejects what only OpenSearch does: values of free-form objects that make a term that is too long with the path and the
	// name of the object, also those over ignore_above.
	AllTerms bool
	// AllNames also rejects the names of members without a value that are rejected once the mapping has their object.
	AllNames bool
	// Opaque, unless nil, returns why a value of a field that the Checker does not check is not one of its type; the value is as for a
	// Sink, and nil accepts it. An array that is the value of a geo_point is one value, a KindObject, because it may be a point.
	Opaque func(f *mapping.Field, kind Kind, raw []byte) error

	scan    scanner
	sink    Sink
	names   [][]byte
	path    [][]byte
	hashes  []uint64
	seed    maphash.Seed
	seeded  bool
	unknown bool
	// array is set while an array that is one value is being read.
	array bool
	// formats are those of the fields of dates.
	formats map[formatKey]*isodate.Format
	// naming is set while the names of a skipped value are to be those of fields.
	naming bool
	err    *ParsingError
	// flattened is the field whose value is being skipped, keyed the path in it, with a dot after each name.
	flattened *mapping.Field
	keyed     []byte
}

// Check reads doc once. unknown is true when doc has values at paths that known lacks and, by its dynamic settings, accepts (see
// Derive); of these only the syntax has been checked. sink may be nil; the values passed to it are valid only when there is no
// error. The error is a *ParsingError.
func (c *Checker) Check(known *mapping.Field, doc []byte, sink Sink) (unknown bool, err error) {
	c.scan = scanner{doc: doc}
	c.sink, c.unknown, c.naming, c.array, c.err = sink, false, false, false, nil
	c.names, c.path, c.keyed = c.names[:0], c.path[:0], c.keyed[:0]
	if c.document(known) {
		return c.unknown, nil
	}
	if c.err == nil {
		c.err = &ParsingError{Type: core.TypeParsing, Reason: "the document is not valid JSON: " + c.scan.problem}
	}
	return false, c.err
}

func (c *Checker) document(known *mapping.Field) bool {
	if !utf8.Valid(c.scan.doc) {
		return c.scan.fail("invalid UTF-8")
	}
	if c.scan.peek() != '{' {
		return c.scan.fail("not an object")
	}
	if known.Disabled() {
		if _, ok := c.skip(unlimited); !ok {
			return false
		}
	} else if !c.object(known, inherit(known, mapping.DynamicTrue)) {
		return false
	}
	if c.scan.peek(); c.scan.pos != len(c.scan.doc) {
		return c.scan.fail("data after the document")
	}
	return true
}

// inherit returns f's setting for unknown members, by default its parent's.
func inherit(f *mapping.Field, parent string) string {
	if f.Dynamic != "" {
		return f.Dynamic
	}
	return parent
}

// reject sets the error for the field at the current path.
func (c *Checker) reject(kind, reason string) bool {
	if c.err == nil {
		c.err = &ParsingError{Type: kind, Reason: "[" + string(bytes.Join(c.path, []byte("."))) + "] " + reason}
	}
	return false
}

// addName adds a member's name to those of its object, which start at base, and rejects a duplicate.
func (c *Checker) addName(base int, name []byte) bool {
	if len(c.names)-base < maxLinearNames {
		for _, other := range c.names[base:] {
			if len(other) == len(name) && bytes.Equal(other, name) {
				return c.duplicate(name)
			}
		}
	}
	c.names = append(c.names, name)
	return true
}

func (c *Checker) duplicate(name []byte) bool {
	c.path = append(c.path, name)
	return c.reject(core.TypeParsing, "duplicate field")
}

// closeNames ends an object. It finds duplicates among more than maxLinearNames members by hash.
func (c *Checker) closeNames(base int) bool {
	names := c.names[base:]
	c.names = c.names[:base]
	if len(names) <= maxLinearNames {
		return true
	}
	if !c.seeded {
		c.seed, c.seeded = maphash.MakeSeed(), true
	}
	c.hashes = c.hashes[:0]
	for _, name := range names {
		c.hashes = append(c.hashes, maphash.Bytes(c.seed, name))
	}
	slices.Sort(c.hashes)
	if len(slices.Compact(c.hashes)) == len(names) {
		return true
	}
	seen := make(map[string]struct{}, len(names))
	for _, name := range names {
		if _, twice := seen[string(name)]; twice {
			return c.duplicate(name)
		}
		seen[string(name)] = struct{}{}
	}
	return true
}

// object reads one object of f, an Object or a Nested.
func (c *Checker) object(f *mapping.Field, dynamic string) bool {
	base, root := len(c.names), c.scan.depth == 0
	return c.scan.object(func(name []byte) bool {
		return c.addName(base, name) && (!root || c.allowed(name)) && c.member(f, dynamic, name)
	}) && c.closeNames(base)
}

// allowed rejects the names that Elasticsearch reserves at a document's root, also those of members of such an object.
func (c *Checker) allowed(name []byte) bool {
	if len(name) == 0 || name[0] != '_' {
		return true
	}
	reserved, _, _ := bytes.Cut(name, []byte{'.'})
	switch string(reserved) {
	case "_id", "_index", "_source", "_routing", "_version", "_seq_no", "_primary_term", "_field_names", "_ignored",
		"_nested_path", "_tier", "_feature", "_data_stream_timestamp", "_ignored_source", "_type", "_doc_count":
		c.path = append(c.path, name)
		return c.reject(core.TypeParsing, "is a metadata field and cannot be added inside a document")
	default:
		return true
	}
}

// member reads the value of a member of f, whose name may contain dots.
func (c *Checker) member(f *mapping.Field, dynamic string, name []byte) bool {
	if child := f.Properties[string(name)]; child != nil {
		c.path = append(c.path, name)
		ok := c.value(child, dynamic)
		c.path = c.path[:len(c.path)-btoi(ok)]
		return ok
	}
	if !c.enterName(name) { // also one without a value
		return false
	}
	c.path = c.path[:len(c.path)-1]
	first, rest, dotted := bytes.Cut(name, []byte{'.'})
	child := f.Properties[string(first)]
	if !dotted || child == nil {
		return c.unmapped(dynamic, name)
	}
	c.path = append(c.path, first)
	if !child.Container() {
		return c.reject(core.TypeParsing, "is of type ["+string(child.Type)+"] and cannot have fields")
	}
	c.enter(child)
	ok := c.member(child, inherit(child, dynamic), rest)
	c.leave(child)
	c.path = c.path[:len(c.path)-btoi(ok)]
	return ok
}

// btoi is 1 for ok: the path is kept after an error, for its message.
func btoi(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

func (c *Checker) enter(f *mapping.Field) {
	if c.sink != nil {
		c.sink.Enter(f)
	}
}

func (c *Checker) leave(f *mapping.Field) {
	if c.sink != nil {
		c.sink.Leave(f)
	}
}

// isInfo reports whether a member, whose name may contain dots, is a field named info.
func isInfo(name []byte) bool {
	return string(name[bytes.LastIndexByte(name, '.')+1:]) == mapping.ReservedInfo
}

// unmapped reads the value of a member that the mapping lacks. The type of an object named info is known even when it is empty.
func (c *Checker) unmapped(dynamic string, name []byte) bool {
	typed := isInfo(name) && c.scan.peek() == '{'
	added := dynamic != mapping.DynamicFalse && dynamic != mapping.DynamicRuntime
	naming := c.AllNames && added
	if naming && !c.enterName(name) {
		return false
	}
	c.naming = naming && !isInfo(name) // info is a free-form object
	valued, ok := c.skip(unlimited)
	c.naming = false
	c.path = c.path[:len(c.path)-btoi(ok && naming)]
	if (valued || typed) && added {
		c.unknown = true
	}
	return ok
}

// enterName adds a member's name to the path, and rejects one that has nothing before, between or after its dots.
func (c *Checker) enterName(name []byte) bool {
	c.path = append(c.path, name)
	for segment := range bytes.SplitSeq(name, []byte{'.'}) {
		if len(bytes.TrimSpace(segment)) == 0 {
			return c.reject(core.TypeParsing, "field name cannot contain only whitespace or an empty segment")
		}
	}
	return true
}

// value reads one value of f.
func (c *Checker) value(f *mapping.Field, dynamic string) bool {
	switch b := c.scan.peek(); b {
	case '[':
		if c.Opaque != nil && !c.array && f.Type == "geo_point" {
			return c.points(f, dynamic)
		}
		return c.scan.array(func() bool { return c.value(f, dynamic) })
	case '{':
		return c.composite(f, dynamic)
	case '"':
		raw, escaped, ok := c.scan.str()
		return ok && c.scalar(f, KindString, raw, escaped)
	default:
		kind, raw, ok := c.scan.scalar(b)
		return ok && (kind == KindNull || c.scalar(f, kind, raw, false))
	}
}

// points reads an array that is the value of a geo_point.
func (c *Checker) points(f *mapping.Field, dynamic string) bool {
	start := c.scan.pos
	c.array = true
	ok := c.value(f, dynamic)
	c.array = false
	return ok && c.opaque(f, KindObject, c.scan.doc[start:c.scan.pos])
}

// opaque rejects a value of a field that is not checked here, if Opaque does.
func (c *Checker) opaque(f *mapping.Field, kind Kind, raw []byte) bool {
	if g := fieldtype.Of(f.Type).Group; c.Opaque == nil || c.array || g != fieldtype.Opaque && g != fieldtype.Range && g != fieldtype.Geo || string(f.Params["ignore_malformed"]) == "true" {
		return true
	}
	if err := c.Opaque(f, kind, raw); err != nil {
		return c.reject(core.TypeParsing, "failed to parse field of type ["+string(f.Type)+"]: "+err.Error())
	}
	return true
}

// composite reads an object as the value of f.
func (c *Checker) composite(f *mapping.Field, dynamic string) bool {
	if f.Container() && !f.Disabled() {
		c.enter(f)
		ok := c.object(f, inherit(f, dynamic))
		c.leave(f)
		return ok
	}
	start, limit := c.scan.pos, unlimited
	switch fieldtype.Of(f.Type).Group {
	case fieldtype.Flattened:
		limit, c.flattened = depthLimit(f), f
	case fieldtype.Opaque, fieldtype.Range, fieldtype.Geo, fieldtype.Container:
	default:
		return c.reject(core.TypeParsing, "failed to parse field of type ["+string(f.Type)+"]: found an object")
	}
	if _, ok := c.skip(limit); !ok {
		return false
	}
	if !f.Container() && !c.opaque(f, KindObject, c.scan.doc[start:c.scan.pos]) {
		return false
	}
	if c.sink != nil && !f.Container() {
		c.sink.Value(f, KindObject, c.scan.doc[start:c.scan.pos])
	}
	return true
}
