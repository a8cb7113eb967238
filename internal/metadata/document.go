package metadata

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

const (
	// timeLayout is RFC 3339 in UTC, with microseconds, always of one length.
	timeLayout = "2006-01-02T15:04:05.000000Z"
	// maxHistoryBytes is how much is kept of the history of an analysis' states: more than a thousand changes.
	maxHistoryBytes = 128 << 10
	// MaxOwnBytes bounds what an analysis grows by, after it was taken, while its state changes: the history and times.
	MaxOwnBytes = maxHistoryBytes + 1<<10
)

// document is an analysis as it is stored and as clients and the index get it: a head, which is the repository's own, and
// the rest as it was sent.
type document struct {
	id, study string
	state     core.AnalysisState
	// createdAt to publishedAt are times as written; the last two are empty until the analysis is published.
	createdAt, updatedAt, firstPublishedAt, publishedAt string
	// history are the changes of state, a JSON array.
	history string
	// kind is the analysis' type.
	kind core.AnalysisTypeRef
	// rest are the other members, each with a comma before it.
	rest []byte
}

// parseDocument reads what bytes gave.
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
	doc = append(append(doc, `{"analysisId":`...), quoted(d.id)...)
	doc = append(append(doc, `,"studyId":`...), quoted(d.study)...)
	doc = append(append(doc, `,"analysisState":"`...), d.state...)
	doc = append(append(doc, `","createdAt":"`...), d.createdAt...)
	doc = append(append(doc, `","updatedAt":"`...), d.updatedAt...)
	if d.firstPublishedAt != "" {
		doc = append(append(doc, `","firstPublishedAt":"`...), d.firstPublishedAt...)
		doc = append(append(doc, `","publishedAt":"`...), d.publishedAt...)
	}
	doc = append(append(doc, `","analysisStateHistory":`...), d.history...)
	doc = append(append(doc, ','), `"analysisType":`...)
	doc = append(append(doc, d.kindJSON()...), d.rest...)
	return append(doc, '}')
}

func (d *document) kindJSON() string {
	return `{"name":` + quoted(d.kind.Name) + `,"version":` + strconv.Itoa(d.kind.Version) + `}`
}

// sendable returns the document without what is the repository's own, as a client might have sent it, with the version of its
// type or without.
func (d *document) sendable(version bool) string {
	kind := `{"name":` + quoted(d.kind.Name) + `}`
	if version {
		kind = d.kindJSON()
	}
	return `{"studyId":` + quoted(d.study) + `,"analysisType":` + kind + string(d.rest) + `}`
}

// files returns the names and MD5 sums of the document's files.
func (d *document) files() []file {
	p, err := newPayload(d.sendable(true))
	if err != nil {
		return nil // was refused when it was sent
	}
	return p.files
}

// enter puts the document into another state.
func (d *document) enter(state core.AnalysisState, micros int64) {
	at := written(micros)
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

// written returns a time, in microseconds since 1970, as it stands in documents.
func written(micros int64) string { return time.UnixMicro(micros).UTC().Format(timeLayout) }
