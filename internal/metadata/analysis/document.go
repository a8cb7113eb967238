package analysis

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/jsontext"
	"tutti/internal/core/datamodel"
)

const (
	// timeLayout is RFC 3339 in UTC, with microseconds, always of one length.
	timeLayout = "2006-01-02T15:04:05.000000Z"
	// maxHistoryBytes bounds the state history of an analysis: more than a thousand changes.
	maxHistoryBytes = 128 << 10
	// MaxOwnBytes bounds the bytes that state changes add to an analysis after its submission: history and times.
	MaxOwnBytes = maxHistoryBytes + 1<<10
)

// Document is an analysis as it is stored and as clients and the index receive it: the repository's own members first, then the
// rest as submitted.
type Document struct {
	ID, Study string
	State     datamodel.AnalysisState
	// UpdatedAt is the time of the last change, as FormatTime formats it.
	UpdatedAt string
	// History is the JSON array of state changes.
	History string
	// Kind is the analysis type.
	Kind datamodel.AnalysisTypeRef

	// createdAt to publishedAt are formatted times; the last two are empty until the analysis is published.
	createdAt, firstPublishedAt, publishedAt string
	// rest holds the other members, each preceded by a comma.
	rest []byte
}

// New returns the unpublished document of an analysis that was created at a time in microseconds since 1970. The files of p must have
// their object ids.
func New(study, id string, kind datamodel.AnalysisTypeRef, p *Payload, micros int64) Document {
	d := Document{ID: id, Study: study, State: datamodel.StateUnpublished, createdAt: FormatTime(micros), History: "[]"}
	d.SetPayload(p, kind, micros)
	return d
}

// Parse parses the output of Bytes.
func Parse(body []byte) Document {
	var d Document
	doc := string(body)
	rest := make([]byte, 0, len(body))
	gjson.Parse(doc).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "analysisId":
			d.ID = value.Str
		case "studyId":
			d.Study = value.Str
		case "analysisState":
			d.State = datamodel.AnalysisState(value.Str)
		case "createdAt":
			d.createdAt = value.Str
		case "updatedAt":
			d.UpdatedAt = value.Str
		case "firstPublishedAt":
			d.firstPublishedAt = value.Str
		case "publishedAt":
			d.publishedAt = value.Str
		case "analysisStateHistory":
			d.History = value.Raw
		case "analysisType":
			d.Kind = datamodel.AnalysisTypeRef{Name: value.Get("name").Str, Version: int(value.Get("version").Int())}
		default:
			rest = append(append(rest, ','), key.Raw...)
			rest = append(append(rest, ':'), value.Raw...)
		}
		return true
	})
	d.rest = rest
	return d
}

// Bytes returns the document as it is stored.
func (d *Document) Bytes() []byte {
	const head = 512
	doc := make([]byte, 0, head+len(d.History)+len(d.rest))
	doc = jsontext.AppendString(append(doc, `{"analysisId":`...), d.ID)
	doc = jsontext.AppendString(append(doc, `,"studyId":`...), d.Study)
	doc = append(append(doc, `,"analysisState":"`...), d.State...)
	doc = append(append(doc, `","createdAt":"`...), d.createdAt...)
	doc = append(append(doc, `","updatedAt":"`...), d.UpdatedAt...)
	if d.firstPublishedAt != "" {
		doc = append(append(doc, `","firstPublishedAt":"`...), d.firstPublishedAt...)
		doc = append(append(doc, `","publishedAt":"`...), d.publishedAt...)
	}
	doc = append(append(doc, `","analysisStateHistory":`...), d.History...)
	doc = append(doc, `,"analysisType":`...)
	doc = append(append(doc, d.kindJSON()...), d.rest...)
	return append(doc, '}')
}

func (d *Document) kindJSON() string {
	return `{"name":` + quoteJSON(d.Kind.Name) + `,"version":` + strconv.Itoa(d.Kind.Version) + `}`
}

// submission returns the document without the repository's own members, as a client might have submitted it, with or without the
// version of its type.
func (d *Document) submission(version bool) string {
	kind := `{"name":` + quoteJSON(d.Kind.Name) + `}`
	if version {
		kind = d.kindJSON()
	}
	return `{"studyId":` + quoteJSON(d.Study) + `,"analysisType":` + kind + string(d.rest) + `}`
}

// Payload returns the payload of the document, with the object ids of its files.
func (d *Document) Payload() (Payload, error) { return newPayload(d.submission(true)) }

// Files returns the document's files.
func (d *Document) Files() []File {
	p, err := d.Payload()
	if err != nil {
		return nil // not reached: rejected when it was submitted
	}
	return p.Files
}

// SetPayload replaces what was submitted and its type at a time in microseconds since 1970. The files of p must have their object ids.
func (d *Document) SetPayload(p *Payload, kind datamodel.AnalysisTypeRef, micros int64) {
	d.UpdatedAt, d.Kind, d.rest = FormatTime(micros), kind, p.rest(d.Study, d.ID)
}

// SetState changes the state, and adds the change to the history, at a time in microseconds since 1970.
func (d *Document) SetState(state datamodel.AnalysisState, micros int64) {
	at := FormatTime(micros)
	change := `{"initialState":"` + string(d.State) + `","updatedState":"` + string(state) + `","updatedAt":"` + at + `"}`
	if d.History == "[]" {
		d.History = "[" + change + "]"
	} else {
		d.History = d.History[:len(d.History)-1] + "," + change + "]"
	}
	for len(d.History) > maxHistoryBytes {
		_, later, found := strings.Cut(d.History, "},")
		if !found {
			break
		}
		d.History = "[" + later
	}
	d.State, d.UpdatedAt = state, at
	if state == datamodel.StatePublished {
		d.publishedAt = at
		if d.firstPublishedAt == "" {
			d.firstPublishedAt = at
		}
	}
}

// FormatTime returns a time in microseconds since 1970 as documents have it: RFC 3339 in UTC, with microseconds.
func FormatTime(micros int64) string { return time.UnixMicro(micros).UTC().Format(timeLayout) }
