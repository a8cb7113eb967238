package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"tutti/http/api"
	"tutti/http/explore"
	"tutti/internal/core"
)

// maxTree bounds the values of the tree of a document, maxDocument the bytes of a document that is shown.
const (
	maxTree     = 2000
	maxDocument = 1 << 20
)

// documentView is the content of the page of one document.
type documentView struct {
	Base string
	*core.Catalogue
	DocumentID string
	Tree       explore.Node
	// Whole is false if the document has more values than Tree.
	Whole bool
	// JSON is the document, indented. TooLarge is set instead if it is larger than what is shown.
	JSON     string
	TooLarge bool
	// Params are those of its download.
	Params string
}

// document shows one document of a catalogue as the caller may see it.
func (s *cataloguePages) document(w http.ResponseWriter, r *http.Request) error {
	c, err := s.openCatalogue(r)
	if err != nil {
		return err
	}
	id := r.URL.Query().Get("id")
	if id == "" {
		return &core.Error{Code: core.CodeInvalid, Message: "the parameter id is missing", Hint: "open a document from the table of the catalogue"}
	}
	filter, err := explore.DocumentFilter(id)
	if err != nil {
		return err
	}
	params, err := json.Marshal(map[string]any{"format": "jsonl", "sqon": filter})
	if err != nil {
		return core.WrapError(core.CodeInternal, "an internal error occurred", err)
	}
	v := documentView{Base: s.base, Catalogue: c, DocumentID: id, Params: string(params)}
	caller, _ := api.CallerOf(r.Context())
	var found documentBuffer
	err = s.ports.Downloads.Download(r.Context(), c.ID, caller, core.DownloadRequest{Params: params, Caller: api.LimitCaller(r)},
		func(core.DownloadHead) (io.Writer, error) { return &found, nil })
	if v.TooLarge = found.full; err != nil && !v.TooLarge {
		return err
	}
	document := bytes.TrimSpace(found.text)
	switch {
	case v.TooLarge:
	case len(document) == 0:
		return &core.Error{Code: core.CodeNotFound, Message: "there is no such document, or you may not see it", Hint: "it may have been removed from the index since the page before"}
	default:
		v.Tree, v.Whole = explore.Tree(document, maxTree)
		v.JSON, _ = readable(document)
	}
	s.render(w, r, http.StatusOK, "document", page{Title: "Document " + id, Active: "catalogues", Content: v})
	return nil
}

// documentBuffer takes a document of at most maxDocument bytes.
type documentBuffer struct {
	text []byte
	full bool
}

// Write implements io.Writer.
func (b *documentBuffer) Write(p []byte) (int, error) {
	if b.full = b.full || len(b.text)+len(p) > maxDocument; b.full {
		return 0, errors.New("the document is larger than what a page shows")
	}
	b.text = append(b.text, p...)
	return len(p), nil
}
