package metadata

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

const (
	// timeLayout is RFC 3339 in UTC, with microseconds, always of one length.
	timeLayout = "2006-01-02T15:04:05.000000Z"
	// maxHistoryBytes bounds the state history of an analysis: more than a thousand changes.
	maxHistoryBytes = 128 << 10
	// MaxOwnBytes bounds the bytes that state changes add to an analysis after its submission: history and times.
	MaxOwnBytes = maxHistoryBytes + 1<<10
)

// document is an analysis as it is stored and as clients and the index receive it: the repository's own members first, then the
// rest as submitted.
type document struct {
	id, study string
	state     core.AnalysisState
	// createdAt to publishedAt are formatted times; the last two are empty until the analysis is published.
	createdAt, updatedAt, firstPublishedAt, publishedAt string
	// history is the JSON array of state changes.
	history string
	// kind is the analysis type.
	kind core.AnalysisTypeRef
	// rest holds the other members, each preceded by a comma.
	rest []byte
}

// parseDocument parses the output of bytes.
func parseDocument(body []byte) document {
	var d document
	doc := string(body)
	rest := make([]byte, 0, len(body))
	gjson.Parse(doc).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "analysisId":
			d.id = value.Str
		case "studyId":
			d.study = value.Str
		case "analysisState":
			d.state = core.AnalysisState(value.Str)
		case "createdAt":
			d.createdAt = value.Str
		case "updatedAt":
			d.updatedAt = value.Str
		case "firstPublishedAt":
			d.firstPublishedAt = value.Str
		case "publishedAt":
			d.publishedAt = value.Str
		case "analysisStateHistory":
			d.history = value.Raw
		case "analysisType":
			d.kind = core.AnalysisTypeRef{Name: value.Get("name").Str, Version: int(value.Get("version").Int())}
		default:
			rest = append(append(rest, ','), key.Raw...)
			rest = append(append(rest, ':'), value.Raw...)
		}
		return true
	})
	d.rest = rest
	return d
}

// bytes returns the document as it is stored.
func (d *document) bytes() []byte {
	const head = 512
	doc := make([]byte, 0, head+len(d.history)+len(d.rest))
	doc = jsontext.AppendString(append(doc, `{"analysisId":`...), d.id)
	doc = jsontext.AppendString(append(doc, `,"studyId":`...), d.study)
	doc = append(append(doc, `,"analysisState":"`...), d.state...)
	doc = append(append(doc, `","createdAt":"`...), d.createdAt...)
	doc = append(append(doc, `","updatedAt":"`...), d.updatedAt...)
	if d.firstPublishedAt != "" {
		doc = append(append(doc, `","firstPublishedAt":"`...), d.firstPublishedAt...)
		doc = append(append(doc, `","publishedAt":"`...), d.publishedAt...)
	}
	doc = append(append(doc, `","analysisStateHistory":`...), d.history...)
	doc = append(doc, `,"analysisType":`...)
	doc = append(append(doc, d.kindJSON()...), d.rest...)
	return append(doc, '}')
}

func (d *document) kindJSON() string {
	return `{"name":` + quoteJSON(d.kind.Name) + `,"version":` + strconv.Itoa(d.kind.Version) + `}`
}

// submission returns the document without the repository's own members, as a client might have submitted it, with or without the
// version of its type.
func (d *document) submission(version bool) string {
	kind := `{"name":` + quoteJSON(d.kind.Name) + `}`
	if version {
		kind = d.kindJSON()
	}
	return `{"studyId":` + quoteJSON(d.study) + `,"analysisType":` + kind + string(d.rest) + `}`
}

// files returns the document's files.
func (d *document) files() []file {
	p, err := newPayload(d.submission(true))
	if err != nil {
		return nil // not reached: rejected when it was submitted
	}
	return p.files
}

// setState changes the document's state and its history.
func (d *document) setState(state core.AnalysisState, micros int64) {
	at := formatTime(micros)
	change := `{"initialState":"` + string(d.state) + `","updatedState":"` + string(state) + `","updatedAt":"` + at + `"}`
	if d.history == "[]" {
		d.history = "[" + change + "]"
	} else {
		d.history = d.history[:len(d.history)-1] + "," + change + "]"
	}
	for len(d.history) > maxHistoryBytes {
		_, later, found := strings.Cut(d.history, "},")
		if !found {
			break
		}
		d.history = "[" + later
	}
	d.state, d.updatedAt = state, at
	if state == core.StatePublished {
		d.publishedAt = at
		if d.firstPublishedAt == "" {
			d.firstPublishedAt = at
		}
	}
}

// formatTime formats a time in microseconds since 1970 for documents.
func formatTime(micros int64) string { return time.UnixMicro(micros).UTC().Format(timeLayout) }
