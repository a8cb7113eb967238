package evaluate_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
)

// FuzzAfter goes on after whatever a client may send as the place of a document: an answer is a part of the whole order, from
// somewhere to its end, or the value is refused.
func FuzzAfter(f *testing.F) {
	for _, seed := range []string{`null`, `"red"`, `1`, `-0.5`, `1e400`, `1E700000000`, `1e-700000000`, `9223372036854775808`, `true`, `[1]`, `1]`, `{"a":`, ``, `"\ud800"`} {
		for kind := range uint8(10) {
			f.Add(kind, kind%2 == 0, seed)
		}
	}
	paths := []string{"color", "tags", "size", "sizes", "score", "weights", "day", "instant", "ok", "huge"}
	w := world{rand.New(rand.NewPCG(17, 19))}
	of := parts(f, w.documents(60), 25)
	f.Fuzz(func(t *testing.T, kind uint8, descending bool, raw string) {
		sorts := []index.Sort{{Field: field(paths[int(kind)%len(paths)]), Descending: descending, MissingFirst: kind%3 == 0}}
		hits := func(after []json.RawMessage) (string, error) {
			answers, err := evaluate.Search(t.Context(), of, []index.SearchRequest{
				{Hits: &index.HitsRequest{Size: 100, Sort: sorts, After: after}},
			})
			if err != nil {
				return "", err
			}
			return ids(answers[0].Hits), nil
		}
		all, err := hits(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := hits([]json.RawMessage{json.RawMessage(raw)})
		if err != nil {
			refused(t, err, "value 1 of the place to go on after is none of the field "+sorts[0].Field.Path)
			return
		}
		if len(got) > len(all) || all[len(all)-len(got):] != got {
			t.Errorf("%q is no end of %q", got, all)
		}
		if !json.Valid([]byte(raw)) {
			t.Errorf("%q is no JSON", raw)
		}
	})
}
