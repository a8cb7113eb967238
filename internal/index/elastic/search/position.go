package search

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"tutti/internal/base/jsontext"
	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
)

// position is a document's position in an order that ends with sequence numbers, preceded by a random score if scored is set.
// Each shard numbers its documents separately, so documents of several shards may have equal positions.
type position struct {
	scored bool
	score  float32
	number int64
	// indicesHash identifies the alias' indices: numbers of other indices are unrelated.
	indicesHash uint64
	// returned are the documents with this position that were already returned.
	returned []location
}

// location is the index and id of a document.
type location struct{ index, id string }

// equal reports whether two positions have the same number and score.
func (p *position) equal(q *position) bool {
	return p.number == q.number && p.scored == q.scored && p.score == q.score
}

// append appends p in the form that decodePosition reads.
func (p *position) append(dst []byte) []byte {
	scored := byte(0)
	if p.scored {
		scored = 1
	}
	dst = append(dst, scored)
	dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(p.score))
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.number))
	dst = binary.BigEndian.AppendUint64(dst, p.indicesHash)
	for _, at := range p.returned {
		for _, text := range []string{at.index, at.id} {
			dst = binary.AppendUvarint(dst, uint64(len(text)))
			dst = append(dst, text...)
		}
	}
	return dst
}

// decodePosition decodes the bytes written by append; nil for anything else.
func decodePosition(b []byte) *position {
	const head = 1 + 4 + 8 + 8
	if len(b) < head {
		return nil
	}
	p := &position{
		scored: b[0] == 1, score: math.Float32frombits(binary.BigEndian.Uint32(b[1:])), number: int64(binary.BigEndian.Uint64(b[5:])),
		indicesHash: binary.BigEndian.Uint64(b[13:]),
	}
	b = b[head:]
	text := func() string {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			p = nil
			return ""
		}
		text := string(b[size : size+int(n)])
		b = b[size+int(n):]
		return text
	}
	for len(b) > 0 && p != nil {
		at := location{index: text()}
		if p == nil {
			break
		}
		if at.id = text(); p != nil {
			p.returned = append(p.returned, at)
		}
	}
	return p
}

// seqNoSort is an order by sequence numbers, used instead of ids.
type seqNoSort struct {
	// key is the index of the id in the requested order; later keys have no effect.
	key        int
	descending bool
	scored     bool
	// start is where the page begins, nil for the first page.
	start   *position
	cursors *sealer
	alias   string
	// indicesHash identifies the alias' indices.
	indicesHash uint64
}

// keys returns the number of keys that the cluster sorts by.
func (n *seqNoSort) keys() int {
	if n.scored {
		return n.key + 2
	}
	return n.key + 1
}

// filter returns filter, excluding the documents already returned at the start position, and with the scores.
func (n *seqNoSort) filter(filter []byte) []byte {
	if n.start != nil {
		filter = n.start.excluding(filter)
	}
	if !n.scored {
		return filter
	}
	return fmt.Appendf(nil, `{"function_score":{"boost_mode":"replace","random_score":{"field":"`+dsl.SeqNo+`","seed":%d},"query":%s}}`,
		n.cursors.seed, filter)
}

// excluding returns filter, excluding the documents that were already returned.
func (p *position) excluding(filter []byte) []byte {
	var returned [][]byte
	for _, at := range p.returned {
		returned = append(returned, fmt.Appendf(nil,
			`{"bool":{"filter":[{"ids":{"values":[%s]}},{"term":{"_index":%s}},{"term":{"`+dsl.SeqNo+`":%d}}]}}`,
			jsontext.AppendRawString(nil, at.id), jsontext.AppendRawString(nil, at.index), p.number))
	}
	return fmt.Appendf(nil, `{"bool":{"filter":[%s],"must_not":[%s]}}`, filter, dsl.Join(returned...))
}

// order returns the sort of h's documents and the values to continue after.
func (n *seqNoSort) order(h *index.HitsRequest) []byte {
	keys := make([][]byte, 0, n.keys())
	for _, s := range h.Sort[:n.key] {
		keys = append(keys, dsl.AppendSort(nil, s, dsl.SeqNo))
	}
	if n.scored {
		keys = append(keys, []byte(`{"_score":{"order":"asc"}}`))
	}
	keys = append(keys, dsl.AppendSort(nil, h.Sort[n.key], dsl.SeqNo))
	order := fmt.Appendf(nil, "[%s]", dsl.Join(keys...))
	if n.start == nil {
		return order
	}
	after := trimmed(h.After[:n.key])
	if n.scored {
		after = append(after, strconv.AppendFloat(nil, float64(n.start.score), 'g', -1, 64))
	}
	before := n.start.number - 1 // other documents may have the same number
	if n.descending {
		before = n.start.number + 1
	}
	after = append(after, strconv.AppendInt(nil, before, 10))
	return fmt.Appendf(order, `,"search_after":[%s]`, dsl.Join(after...))
}

// seal replaces the sequence numbers of hits, whose indices are given, by encrypted cursors; false when the hits lack them.
func (n *seqNoSort) seal(hits []index.Hit, indices []string, keys int) bool {
	if len(hits) != len(indices) {
		return false
	}
	at := position{indicesHash: n.indicesHash}
	if n.start != nil {
		at = *n.start
		at.returned = slices.Clone(at.returned)
	}
	places := make([]json.RawMessage, len(hits)*keys)
	sealing, kept := n.cursors.sealing(n.alias), new(dsl.Arena)
	var plain, cursor []byte
	for i := range hits {
		next, ok := n.position(hits[i].Sort)
		if !ok {
			return false
		}
		if !next.equal(&at) {
			next.returned = at.returned[:0]
			at = next
		}
		at.returned = append(at.returned, location{indices[i], hits[i].ID})
		plain = at.append(plain[:0])
		cursor = sealing.seal(cursor[:0], plain)
		place := places[i*keys : (i+1)*keys : (i+1)*keys]
		copy(place, hits[i].Sort[:n.key])
		place[n.key] = kept.Copy(cursor)
		for j := n.key + 1; j < keys; j++ {
			place[j] = json.RawMessage(dsl.Null)
		}
		hits[i].Sort = place
	}
	return true
}

// position returns a document's position from its sort values.
func (n *seqNoSort) position(sort []json.RawMessage) (position, bool) {
	if len(sort) != n.keys() {
		return position{}, false
	}
	p := position{scored: n.scored, indicesHash: n.indicesHash}
	var err error
	if p.number, err = strconv.ParseInt(string(bytes.TrimSpace(sort[len(sort)-1])), 10, 64); err != nil {
		return position{}, false
	}
	if n.scored {
		score, err := strconv.ParseFloat(string(bytes.TrimSpace(sort[n.key])), 32)
		if err != nil {
			return position{}, false
		}
		p.score = float32(score)
	}
	return p, true
}

// position returns the position in a cursor, nil if it has none.
func (s *sealer) position(alias string, raw json.RawMessage) *position {
	var text string
	if raw == nil || json.Unmarshal(raw, &text) != nil {
		return nil
	}
	if plain, ok := s.open(alias, text); ok {
		return decodePosition(plain)
	}
	return nil
}

// idCursor returns the id's value in h.After, nil for none.
func idCursor(h *index.HitsRequest) json.RawMessage {
	if h == nil || len(h.After) != len(h.Sort) {
		return nil
	}
	if at := dsl.IDKey(h.Sort); at >= 0 {
		return h.After[at]
	}
	return nil
}
