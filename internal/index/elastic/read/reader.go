package read

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/index/elastic/metadata"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/jsontext"
)

// Reader reads documents for indexing: single ones, counts and scans. All methods are safe for concurrent use.
type Reader struct {
	client *transport.Client
	meta   *metadata.Aliases
}

// New returns a Reader.
func New(client *transport.Client, meta *metadata.Aliases) *Reader {
	return &Reader{client: client, meta: meta}
}

// Get returns one document as last written, even before a Refresh; false when it is absent. The id is sent in the body, as a path
// cannot contain every id.
func (r *Reader) Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error) {
	end, err := r.client.Begin(alias)
	if err != nil {
		return core.StoredDocument{}, false, err
	}
	defer end()
	body := append(jsontext.AppendRawString([]byte(`{"ids":[`), id), "]}"...)
	reply, err := r.client.Do(ctx, esapi.MgetRequest{Index: alias, Body: bytes.NewReader(body)}, nil)
	if err != nil {
		return core.StoredDocument{}, false, err
	}
	var answer struct {
		Docs []struct {
			Index   string          `json:"_index"`
			Version core.Version    `json:"_version"`
			Found   bool            `json:"found"`
			Source  json.RawMessage `json:"_source"`
			Error   json.RawMessage `json:"error"`
		} `json:"docs"`
	}
	if err := reply.Decode(&answer); err != nil {
		return core.StoredDocument{}, false, err
	}
	if len(answer.Docs) != 1 {
		return core.StoredDocument{}, false, core.NewError(core.CodeUnavailable, "the response of the index is incomplete")
	}
	doc := answer.Docs[0]
	if doc.Error != nil {
		return core.StoredDocument{}, false, transport.DocumentError(doc.Error)
	}
	if !doc.Found {
		return core.StoredDocument{}, false, nil
	}
	return core.StoredDocument{ID: id, Version: doc.Version, Source: rawSource(reply.Body, doc.Source), Index: doc.Index}, true, nil
}

// GetAll calls each for every id, in order, with its document as last written, even before a Refresh, without surrounding white space.
func (r *Reader) GetAll(ctx context.Context, alias string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error {
	end, err := r.client.Begin(alias)
	if err != nil {
		return err
	}
	defer end()
	return r.getAll(ctx, alias, ids, 0, each)
}

// maxGetAllBytes bounds a response with several documents.
const maxGetAllBytes = 16 << 20

// getAll is GetAll for ids that are preceded by others. It requests them in halves when the response is over the limit.
func (r *Reader) getAll(ctx context.Context, alias string, ids []string, preceding int, each func(i int, doc core.StoredDocument, found bool)) error {
	body := []byte(`{"ids":[`)
	for i, id := range ids {
		if i > 0 {
			body = append(body, ',')
		}
		body = jsontext.AppendRawString(body, id)
	}
	limit := r.client.MaxResponseBytes()
	if len(ids) > 1 {
		limit = min(limit, maxGetAllBytes)
	}
	into := r.client.GetBuffer()
	reply, err := r.client.DoWithin(ctx, esapi.MgetRequest{Index: alias, Body: bytes.NewReader(append(body, "]}"...))}, into, limit)
	if transport.IsOverLimit(err) && len(ids) > 1 {
		r.client.PutBuffer(into)
		half := len(ids) / 2
		if err := r.getAll(ctx, alias, ids[:half], preceding, each); err != nil {
			return err
		}
		return r.getAll(ctx, alias, ids[half:], preceding+half, each)
	}
	defer r.client.PutBuffer(into)
	if err != nil {
		return err
	}
	docs := gjson.GetBytes(reply.Body, "docs").Array()
	if len(docs) != len(ids) {
		return core.NewError(core.CodeUnavailable, "the response of the index is incomplete")
	}
	for _, doc := range docs {
		if fault := doc.Get("error"); fault.Exists() {
			return transport.DocumentError(json.RawMessage(fault.Raw))
		}
	}
	for i, doc := range docs {
		each(preceding+i, core.StoredDocument{
			ID: ids[i], Version: core.Version(doc.Get("_version").Int()), Source: []byte(doc.Get("_source").Raw), Index: doc.Get("_index").Str,
		}, doc.Get("found").Bool())
	}
	return nil
}

// rawSource returns a document with its surrounding white space, which decoding drops. It is the last member in the response
// about one document, and written as it was stored.
func rawSource(body, source []byte) []byte {
	_, rest, found := bytes.Cut(body, []byte(`"_source":`)) // cannot occur in a string, where quotes are escaped
	rest, ends := bytes.CutSuffix(bytes.TrimRight(rest, "\r\n"), []byte("}]}"))
	if found && ends && bytes.Contains(rest, source) && len(bytes.TrimSpace(rest)) == len(source) {
		return rest
	}
	return source
}

// Count returns the number of documents in scope as of the last Refresh.
func (r *Reader) Count(ctx context.Context, alias string, scope core.IndexScope) (int64, error) {
	end, err := r.client.Begin(alias)
	if err != nil {
		return 0, err
	}
	defer end()
	query, err := r.scopeQuery(ctx, alias, scope)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(object{"query": query})
	if err != nil {
		return 0, core.WrapError(core.CodeInternal, "the count cannot be encoded", err)
	}
	reply, err := r.client.Do(ctx, esapi.CountRequest{Index: []string{alias}, Body: bytes.NewReader(body)}, nil)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Count *int64 `json:"count"`
	}
	if err := reply.Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Count == nil {
		return 0, core.NewError(core.CodeUnavailable, "the response of the index has no count")
	}
	return *answer.Count, reply.CheckShards(alias)
}
