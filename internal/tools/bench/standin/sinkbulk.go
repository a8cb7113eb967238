package standin

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"tutti/internal/base/retry"
)

// Parts of Elasticsearch's response to a bulk request with tutti's filter_path.
const (
	bulkHead     = `{"errors":false,"items":[`
	bulkIndexed  = `{"index":{"status":201}}`
	bulkDeleted  = `{"delete":{"status":200}}`
	bulkConflict = `{"errors":true,"items":[{"index":{"status":409,"error":{"type":"version_conflict_engine_exception",` +
		`"reason":"required seqNo was not found"}}}]}`
)

// serveBulk reads a bulk request, counts its documents, and responds that all were written.
func (s *Sink) serveBulk(w http.ResponseWriter, r *http.Request) {
	in, out := s.body(), s.body()
	defer s.bodies.Put(in)
	defer s.bodies.Put(out)
	if r.ContentLength < 0 {
		reply(w, http.StatusLengthRequired, `{"error":"the length is not known","status":411}`)
		return
	}
	*in = slices.Grow((*in)[:0], int(r.ContentLength))[:r.ContentLength]
	if _, err := io.ReadFull(r.Body, *in); err != nil {
		return // the client has disconnected
	}
	if retry.Sleep(r.Context(), s.delay) != nil { // the client has disconnected
		return
	}
	if bytes.Contains((*in)[:min(len(*in), 128)], []byte(`"if_seq_no"`)) {
		reply(w, http.StatusOK, bulkConflict) // the write that always fails, with which tutti probes an index
		return
	}
	var n int64
	*out, n = s.appendResults(append((*out)[:0], bulkHead...), *in)
	*out = append(*out, "]}"...)
	s.received.Add(n)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(*out)))
	_, _ = w.Write(*out) // the client may have disconnected
}

// appendResults appends an entry of the response for each action of a bulk body, and counts the documents.
func (s *Sink) appendResults(answer, body []byte) ([]byte, int64) {
	var n int64
	for len(body) > 0 {
		action, rest, _ := bytes.Cut(body, []byte{'\n'})
		if answer[len(answer)-1] == '}' {
			answer = append(answer, ',')
		}
		if bytes.HasPrefix(action, []byte(`{"delete"`)) {
			answer, body = append(answer, bulkDeleted...), rest
			continue
		}
		var doc []byte
		doc, body, _ = bytes.Cut(rest, []byte{'\n'})
		answer = append(answer, bulkIndexed...)
		n++
		if s.kept != nil {
			s.keep(gjson.GetBytes(action, "index._id").String(), doc)
		}
	}
	return answer, n
}

func (s *Sink) keep(id string, doc []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[id] = bytes.Clone(doc)
}

func (s *Sink) body() *[]byte {
	if b, ok := s.bodies.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}
