package indexfile

import (
	"encoding/binary"

	"tutti/internal/core"
)

// Names of buckets and keys. They are functions, as a slice cannot be a constant.
func bucketMeta() []byte       { return []byte("meta") }
func bucketAliases() []byte    { return []byte("aliases") }
func bucketNames() []byte      { return []byte("names") }
func bucketIDs() []byte        { return []byte("ids") }
func bucketRows() []byte       { return []byte("rows") }
func bucketScopes() []byte     { return []byte("scopes") }
func bucketTerms() []byte      { return []byte("terms") }
func bucketTombstones() []byte { return []byte("tombstones") }
func bucketSegments() []byte   { return []byte("segments") }
func bucketDeletes() []byte    { return []byte("deaths") } // the name in the file format
func keyFormat() []byte        { return []byte("format") }
func keyMapping() []byte       { return []byte("mapping") }
func keyLimits() []byte        { return []byte("limits") }
func keyIdentity() []byte      { return []byte("identity") }
func keyLive() []byte          { return []byte("live") }

// entry is the value of a document id in the ids bucket.
type entry struct {
	deleted bool
	version core.Version
	// row is the number of the document's row, or the number assigned to its tombstone.
	row uint64
	// since is the creation time of a tombstone in Unix milliseconds, 0 for a document.
	since uint64
	terms []term
}

// appendEntry appends flags, version, row, and then the tombstone's time or the terms.
func appendEntry(dst []byte, e *entry) []byte {
	var flags byte
	if e.deleted {
		flags = 1
	}
	dst = append(dst, flags)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.version))
	dst = binary.BigEndian.AppendUint64(dst, e.row)
	if e.deleted {
		return binary.BigEndian.AppendUint64(dst, e.since)
	}
	return appendTerms(dst, e.terms)
}

// Sizes in bytes.
const (
	entryFixed = 17 // flags, version and row
	rowKey     = 8
	scopeKey   = 12 // term and row
)

// readEntry decodes raw, reusing e's terms. ok is false when raw is not a valid entry.
func readEntry(raw []byte, e *entry) (ok bool) {
	e.terms = e.terms[:0]
	if len(raw) < entryFixed+1 {
		return false
	}
	e.deleted = raw[0] == 1
	e.version = core.Version(binary.BigEndian.Uint64(raw[1:]))
	e.row = binary.BigEndian.Uint64(raw[9:])
	if e.deleted {
		if len(raw) != entryFixed+8 {
			return false
		}
		e.since = binary.BigEndian.Uint64(raw[entryFixed:])
		return true
	}
	e.terms, raw = readTerms(raw[entryFixed:], e.terms)
	return raw != nil
}

func rowKeyOf(row uint64) []byte { return binary.BigEndian.AppendUint64(nil, row) }

func scopeKeyOf(t term, row uint64) []byte {
	key := binary.BigEndian.AppendUint32(make([]byte, 0, scopeKey), uint32(t))
	return binary.BigEndian.AppendUint64(key, row)
}

// scopeValue returns version, terms and id.
func scopeValue(version core.Version, terms []term, id string) []byte {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, 8+1+5*len(terms)+len(id)), uint64(version))
	return append(appendTerms(value, terms), id...)
}

func tombstoneKey(since, row uint64) []byte {
	return binary.BigEndian.AppendUint64(rowKeyOf(since), row)
}
