package indexfile

import (
	"bytes"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"

	"tutti/internal/base/jsontext"
)

// ScopeFields returns the names of the fields that scopes select by: organizations, repositories, and the records of documents of
// files. Their positions are stored: a new one is appended.
func ScopeFields() []string {
	return []string{"studyId", "organization", codeField, "study_id", "analysis.analysisId", "analysis.analysis_id"}
}

const codeField = "repositories.code"

// AppendTerm appends the key of a term: the number of its field, then the value's text.
func AppendTerm(dst []byte, field int, raw []byte) []byte {
	dst = append(dst, byte('0'+field))
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw...)
	}
	return jsontext.AppendUnescaped(dst, raw)
}

// termScoped reports whether a term's key is that of an organization or a record.
func termScoped(key string) bool { return key[0] != '2' }

// term numbers a pair of field and value that an IndexScope selects by. The lowest bit is set for fields of organizations; only those
// terms have entries in the scopes bucket.
type term uint32

func (t term) scoped() bool { return t&1 == 1 }

func appendTerms(dst []byte, terms []term) []byte {
	dst = append(dst, byte(len(terms)))
	for _, t := range terms {
		dst = binary.AppendUvarint(dst, uint64(t))
	}
	return dst
}

// readTerms appends the terms at the start of raw to dst and returns what follows them, nil when raw is truncated.
func readTerms(raw []byte, dst []term) (terms []term, rest []byte) {
	if len(raw) == 0 {
		return dst, nil
	}
	n := int(raw[0])
	raw = raw[1:]
	for range n {
		v, size := binary.Uvarint(raw)
		if size <= 0 {
			return dst, nil
		}
		dst = append(dst, term(v))
		raw = raw[size:]
	}
	return dst, slices.Clip(raw)
}

// hasTerm reports whether terms contains want; zero matches any.
func hasTerm(terms []term, want term) bool { return want == 0 || slices.Contains(terms, want) }

// findTerm returns the number of a value, zero for the empty value; false when no document ever had it.
func findTerm(b *bbolt.Bucket, field int, value string) (term, bool) {
	if value == "" {
		return 0, true
	}
	raw := b.Bucket(bucketTerms()).Get(append([]byte{byte('0' + field)}, value...))
	if len(raw) != 4 {
		return 0, false
	}
	return term(binary.BigEndian.Uint32(raw)), true
}
