package read

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/transport"
)

const (
	// freeBytes is the size up to which a response with documents is read without memory.
	freeBytes = 256 << 10
	// maxGetAllBytes bounds a response with several documents.
	maxGetAllBytes = 4 << 20
	// documentWeight is the memory of a response with documents as a multiple of its size: the response, and what is made of it.
	documentWeight = 3
	// maxMemoryWait is how long a response may wait for memory.
	maxMemoryWait = time.Second
)

// ownCaller is the process itself, which never waits for its first response.
var ownCaller = core.Caller{ID: "index: documents", Known: true}

// Reader reads documents for indexing: single ones, counts and scans. All methods are safe for concurrent use.
type Reader struct {
	// memory bounds the documents that are read at once; nil means no bound.
	memory core.Memory
	client *transport.Client
	meta   *aliases.Aliases
}

// New returns a Reader. memory bounds the documents that are read at once; nil means no bound.
func New(client *transport.Client, meta *aliases.Aliases, memory core.Memory) *Reader {
	return &Reader{client: client, meta: meta, memory: memory}
}

// Get returns one document as last written, even before a Refresh; false when it is absent. The id is sent in the body, as a path
// cannot contain every id. A large document waits for memory, which it does not hold afterwards.
func (r *Reader) Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error) {
	end, err := r.client.Begin(alias)
	if err != nil {
		return core.StoredDocument{}, false, err
	}
	defer end()
	reply, release, err := r.getOne(ctx, alias, id)
	defer release()
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

// GetAll calls each for every id, in order, with its document as last written, even before a Refresh, without surrounding white space. Large
// documents wait for memory.
func (r *Reader) GetAll(ctx context.Context, alias string, ids []string, each func(i int, doc core.StoredDocument, found bool)) error {
	end, err := r.client.Begin(alias)
	if err != nil {
		return err
	}
	defer end()
	size, largest := len(ids), r.client.MaxResponseBytes()
	limit := min(largest, maxGetAllBytes)
	for first := 0; first < len(ids); {
		size = min(size, len(ids)-first)
		err := r.getAll(ctx, alias, ids[first:first+size], first, limit, each)
		switch over := transport.IsOverLimit(err); {
		case over && size > 1:
			size /= 2
		case over && limit < largest: // one large document
			limit = min(4*limit, largest)
		case err != nil:
			return err
		default:
			first += size
			limit = min(largest, maxGetAllBytes)
		}
	}
	return nil
}

// getAll is GetAll for ids that are preceded by others, in one request, whose response has at most limit bytes.
func (r *Reader) getAll(ctx context.Context, alias string, ids []string, preceding int, limit int64, each func(i int, doc core.StoredDocument, found bool)) error {
	into := r.client.GetBuffer()
	defer r.client.PutBuffer(into)
	reply, release, err := r.get(ctx, alias, ids, into, limit)
	defer release()
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

// get requests documents, with a response of at most limit bytes, into a buffer. The memory of the response is held until release, which is
// never nil. A response that waited for it for long is requested again, since the request may have timed out.
func (r *Reader) get(ctx context.Context, alias string, ids []string, into *bytes.Buffer, limit int64) (reply *transport.Response, release func(), err error) {
	body := []byte(`{"ids":[`)
	for i, id := range ids {
		if i > 0 {
			body = append(body, ',')
		}
		body = jsontext.AppendRawString(body, id)
	}
	body = append(body, "]}"...)
	release = func() {}
	engine, err := r.client.Engine(ctx)
	if err != nil {
		return nil, release, err
	}
	held, waited := false, time.Duration(0)
	grow := func(read int64) (allowed int64, err error) {
		if r.memory == nil || held {
			return limit + 1, nil
		}
		if read < freeBytes {
			return freeBytes, nil
		}
		began := time.Now()
		acquired, err := r.memory.Acquire(ctx, ownCaller, documentWeight*limit)
		if err != nil {
			return 0, err
		}
		held, release, waited = true, acquired, time.Since(began)
		return limit + 1, nil
	}
	for {
		reply, err = r.client.DoGrowing(ctx, transport.DocumentsRequest(engine, alias, body), into, limit, grow)
		if err == nil || waited < maxMemoryWait || transport.IsOverLimit(err) {
			return reply, release, err
		}
		waited = 0
		into.Reset()
	}
}

// getOne is get for one document of any size.
func (r *Reader) getOne(ctx context.Context, alias, id string) (reply *transport.Response, release func(), err error) {
	largest := r.client.MaxResponseBytes()
	for limit := min(largest, maxGetAllBytes); ; limit = min(4*limit, largest) {
		reply, release, err = r.get(ctx, alias, []string{id}, new(bytes.Buffer), limit)
		if limit == largest || !transport.IsOverLimit(err) {
			return reply, release, err
		}
		release()
	}
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
