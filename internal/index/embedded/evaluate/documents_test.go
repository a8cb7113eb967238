package evaluate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
)

// worldMapping has a field of each type in the document, in elements, and in elements of elements.
const worldMapping = `{"properties":{
	"color":{"type":"keyword"}, "tags":{"type":"keyword"}, "code":{"type":"keyword"}, "rare":{"type":"keyword"},
	"size":{"type":"long"}, "sizes":{"type":"integer"}, "score":{"type":"double"}, "weights":{"type":"float"},
	"day":{"type":"date"}, "instant":{"type":"date_nanos"}, "ok":{"type":"boolean"}, "huge":{"type":"unsigned_long"},
	"words":{"type":"text"},
	"files":{"type":"nested","properties":{
		"kind":{"type":"keyword"}, "name":{"type":"keyword"}, "bytes":{"type":"long"}, "ratios":{"type":"double"},
		"parts":{"type":"nested","properties":{"letter":{"type":"keyword"}, "n":{"type":"integer"}}}}},
	"donor":{"properties":{"visits":{"type":"nested","properties":{"site":{"type":"keyword"}, "on":{"type":"date"}}}}}
}}`

// field returns a field of worldMapping.
func field(path string) query.Field {
	types := map[string]string{
		"color": "keyword", "tags": "keyword", "code": "keyword", "rare": "keyword", "size": "long", "sizes": "integer",
		"score": "double", "weights": "float", "day": "date", "instant": "date_nanos", "ok": "boolean", "huge": "unsigned_long",
		"words": "text", "files.kind": "keyword", "files.name": "keyword", "files.bytes": "long", "files.ratios": "double",
		"files.parts.letter": "keyword", "files.parts.n": "integer", "donor.visits.site": "keyword", "donor.visits.on": "date",
		"_id": "", "nowhere": "keyword",
	}
	kind, known := types[path]
	if !known {
		panic("no field " + path)
	}
	f := query.Field{Path: path, Type: kind}
	for _, nested := range []string{"files", "files.parts", "donor.visits"} {
		if len(path) > len(nested) && path[:len(nested)+1] == nested+"." {
			f.Nested = append(f.Nested, nested)
		}
	}
	return f
}

// document is a test document.
type document struct {
	id   string
	body map[string]any
	// stale documents were rewritten or removed.
	stale bool
}

// parts builds segments of documents, which are numbered from 1; cuts are the indexes at which a new segment starts.
func parts(t testing.TB, docs []document, cuts ...int) []evaluate.Part {
	t.Helper()
	tree, err := mapping.Parse([]byte(worldMapping))
	if err != nil {
		t.Fatal(err)
	}
	var out []evaluate.Part
	from := 0
	for _, to := range append(slices.Clone(cuts), len(docs)) {
		builder := segment.NewBuilder(tree)
		deleted := roaring.New()
		for i, d := range docs[from:to] {
			body, err := json.Marshal(d.body)
			if err != nil {
				t.Fatal(err)
			}
			if err := builder.Add(uint64(from+i+1), d.id, body); err != nil {
				t.Fatal(err)
			}
			if d.stale {
				deleted.Add(uint32(i))
			}
		}
		part := evaluate.Part{Segment: builder.Segment(), Deleted: deleted}
		if deleted.IsEmpty() {
			part.Deleted = nil
		}
		out = append(out, part)
		from = to
	}
	return out
}

// documentsOf parses documents, one JSON object per line, with the ids "a", "b" and so on.
func documentsOf(t testing.TB, bodies ...string) []document {
	t.Helper()
	docs := make([]document, 0, len(bodies))
	for i, body := range bodies {
		d := document{id: string(rune('a' + i))}
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.UseNumber()
		if err := decoder.Decode(&d.body); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		docs = append(docs, d)
	}
	return docs
}

// world returns random documents of worldMapping.
type world struct{ *rand.Rand }

func (w world) pick(of ...string) string { return of[w.IntN(len(of))] }

// set sets a value, several or none in an object.
func (w world) set(into map[string]any, name string, value func() any) {
	switch w.IntN(6) {
	case 0:
	case 1:
		into[name] = nil
	case 2:
		list := []any{}
		for range w.IntN(4) {
			list = append(list, value())
		}
		into[name] = list
	default:
		into[name] = value()
	}
}

// one sets one value or none in an object.
func (w world) one(into map[string]any, name string, value func() any) {
	if w.IntN(8) > 0 {
		into[name] = value()
	}
}

func (w world) day() any {
	return fmt.Sprintf("2024-%02d-%02dT0%d:00:00.%03dZ", 1+w.IntN(2), 1+w.IntN(28), w.IntN(10), w.IntN(2)*500)
}

func (w world) document(id string) document {
	body := map[string]any{}
	text := func(of ...string) func() any { return func() any { return w.pick(of...) } }
	whole := func(n int) func() any { return func() any { return w.IntN(n) - n/3 } }
	fraction := func() any { return float64(w.IntN(40)-10) / 4 }
	w.one(body, "color", text("red", "green", "blue", "Blue", ""))
	w.set(body, "tags", text("a", "ab", "abc", "b*", "Ä", "é", `c\d`))
	w.one(body, "code", func() any { return fmt.Sprintf("C-%05d", w.IntN(100_000)) })
	if w.IntN(30) == 0 {
		body["rare"] = w.pick("x", "y")
	}
	w.one(body, "size", whole(12))
	w.set(body, "sizes", whole(7))
	w.one(body, "score", fraction)
	w.set(body, "weights", fraction)
	w.one(body, "day", w.day)
	w.set(body, "instant", func() any { return fmt.Sprintf("2024-01-01T00:00:00.%09dZ", w.IntN(5)*500_001) })
	w.set(body, "ok", func() any { return w.IntN(3) == 0 })
	w.one(body, "huge", func() any { return json.Number(w.pick("0", "7", "9223372036854775808", "18446744073709551615")) })
	w.one(body, "words", text("some words", "others"))
	w.elements(body, "files", func(file map[string]any) {
		w.one(file, "kind", text("bam", "vcf", "cram"))
		w.one(file, "name", func() any { return fmt.Sprintf("file-%d.%s", w.IntN(500), w.pick("bam", "VCF")) })
		w.set(file, "bytes", whole(50))
		w.set(file, "ratios", fraction)
		w.elements(file, "parts", func(part map[string]any) {
			w.set(part, "letter", text("x", "y", "z"))
			w.one(part, "n", whole(5))
		})
	})
	donor := map[string]any{}
	w.elements(donor, "visits", func(visit map[string]any) {
		w.one(visit, "site", text("ear", "eye"))
		w.one(visit, "on", w.day)
	})
	body["donor"] = donor
	return document{id: id, body: body}
}

// elements sets several elements, one or none in an object.
func (w world) elements(into map[string]any, name string, fill func(map[string]any)) {
	element := func() any {
		e := map[string]any{}
		fill(e)
		return e
	}
	switch w.IntN(6) {
	case 0:
	case 1:
		into[name] = element()
	default:
		list := []any{}
		for range w.IntN(4) {
			list = append(list, element())
		}
		into[name] = list
	}
}

// documents returns n documents, of which some are stale: their ids occur again later.
func (w world) documents(n int) []document {
	docs := make([]document, 0, n)
	ids := w.Perm(n)
	for i := range n {
		docs = append(docs, w.document(fmt.Sprintf("id-%d", ids[i])))
	}
	for i := range docs {
		if i+1 < n && w.IntN(5) == 0 {
			later := i + 1 + w.IntN(n-i-1)
			docs[i].stale, docs[i].id = true, docs[later].id
		}
	}
	return docs
}
