package evaluate_test

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"

	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
)

// FuzzAfter continues after arbitrary sort values: the result is a suffix of the complete result, or the value is invalid.
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
			invalid(t, err, "sort value 1 to continue after is not a value of the field "+strconv.Quote(sorts[0].Field.Path))
			return
		}
		if len(got) > len(all) || all[len(all)-len(got):] != got {
			t.Errorf("%q is not a suffix of %q", got, all)
		}
		if !json.Valid([]byte(raw)) {
			t.Errorf("%q is not JSON", raw)
		}
	})
}
