package elastic

import (
	"bytes"
	"encoding/json"

	"tutti/internal/core"
)

// bulkFilterPath asks for one short entry per item, plus the error of a request that was refused as a whole. The status
// makes the entry of a success survive the filter. An error is asked for whole: for each path below items the engine
// looks at every member of every entry, and three more cost it 9 µs for each document.
const bulkFilterPath = "error,status,errors,items.*.status,items.*.error"

type bulkItem struct {
	Status int         `json:"status"`
	Error  engineError `json:"error"`
}

type bulkResponse struct {
	Items []struct {
		Index  *bulkItem `json:"index"`
		Delete *bulkItem `json:"delete"`
	} `json:"items"`
}

// results turns the answer to a bulk request into one Result per item. A batch whose answer does not have exactly one
// fitting entry per item counts as not answered at all.
func (x *Index) results(body []byte, alias string, items []core.BatchItem) ([]core.Result, error) {
	results := make([]core.Result, len(items))
	if allSucceeded(body, items, results) {
		return results, nil
	}
	var answer bulkResponse
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "the bulk response of the index cannot be read", err)
	}
	if len(answer.Items) != len(items) {
		return nil, core.NewError(core.CodeUnavailable, "short bulk response of the index")
	}
	for i := range items {
		got := answer.Items[i].Index
		if items[i].Op == core.OpDelete {
			got = answer.Items[i].Delete
		}
		if got == nil || got.Status == 0 {
			return nil, core.NewError(core.CodeUnavailable, "a bulk response of the index that does not fit the request")
		}
		results[i] = x.outcome(alias, items[i].Op, got)
	}
	return results, nil
}

// Pieces of the one form that an answer without errors takes after the filter.
const (
	responseHead = `{"errors":false,"items":[`
	indexHead    = `{"index":{"status":`
	deleteHead   = `{"delete":{"status":`
	itemTail     = `}}`
	responseTail = `]}`
	statusWidth  = 3
)

// allSucceeded reads an answer that reports success for every item, without decoding it. False means that the answer is
// anything else, which the slow way then tells apart.
func allSucceeded(body []byte, items []core.BatchItem, results []core.Result) bool {
	rest, ok := bytes.CutPrefix(body, []byte(responseHead))
	for i := range items {
		if !ok {
			return false
		}
		if i > 0 {
			if rest, ok = bytes.CutPrefix(rest, []byte{','}); !ok {
				return false
			}
		}
		head, outcome := indexHead, core.OutcomeIndexed
		if items[i].Op == core.OpDelete {
			head, outcome = deleteHead, core.OutcomeRemoved
		}
		rest, ok = bytes.CutPrefix(rest, []byte(head))
		if !ok || len(rest) < statusWidth {
			return false
		}
		status := string(rest[:statusWidth])
		if status != "200" && status != "201" && (status != "404" || items[i].Op != core.OpDelete) {
			return false
		}
		rest, ok = bytes.CutPrefix(rest[statusWidth:], []byte(itemTail))
		results[i].Outcome = outcome
	}
	return ok && string(bytes.TrimSpace(rest)) == responseTail
}
