package search

import (
	"bytes"
	"encoding/json"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
)

// checkSearch rejects requests that the cluster cannot evaluate.
func checkSearch(reqs []index.SearchRequest) error {
	for i := range reqs {
		if h := reqs[i].Hits; h != nil {
			if err := checkHits(h); err != nil {
				return err
			}
		}
		for j := range reqs[i].Facets {
			if err := reqs[i].Facets[j].Check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkHits(h *index.HitsRequest) error {
	if h.From < 0 || h.Size < 0 || h.From > index.MaxWindow || h.Size > index.MaxWindow || h.From+h.Size > index.MaxWindow {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("the requested documents must be among the first %d", index.MaxWindow))
	}
	if h.After != nil {
		if len(h.After) != len(h.Sort) {
			return core.NewError(core.CodeInvalid, "the cursor must have one value for each sort key")
		}
		for _, value := range h.After {
			if !scalar(value) {
				return core.NewError(core.CodeInvalid, "the cursor is not one that was returned with a document")
			}
		}
	}
	return dsl.CheckSorts(h.Sort)
}

// scalar reports whether raw is one JSON value other than an object or array.
func scalar(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] != '{' && raw[0] != '[' && json.Valid(raw)
}
