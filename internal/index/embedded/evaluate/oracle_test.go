package evaluate_test

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tutti/internal/base/jsontext"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// oracle evaluates requests by reading every document.
type oracle struct{ docs []document }

func newOracle(t testing.TB, docs []document) oracle {
	t.Helper()
	o := oracle{}
	for _, d := range docs {
		if d.stale {
			continue
		}
		// Decoded from JSON, so that numbers are as written.
		raw, err := json.Marshal(d.body)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(strings.NewReader(string(raw)))
		decoder.UseNumber()
		body := map[string]any{}
		if err := decoder.Decode(&body); err != nil {
			t.Fatal(err)
		}
		o.docs = append(o.docs, document{id: d.id, body: body})
	}
	return o
}

// below returns the elements at a path in an object that is a row of the path from.
func below(row map[string]any, from, path string) []map[string]any {
	rest := strings.TrimPrefix(strings.TrimPrefix(path, from), ".")
	rows := []map[string]any{row}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, ".")
		var next []map[string]any
		for _, r := range rows {
			switch v := r[name].(type) {
			case map[string]any:
				next = append(next, v)
			case []any:
				for _, e := range v {
					next = append(next, e.(map[string]any))
				}
			}
		}
		rows = next
	}
	return rows
}

// values returns the values of a field in a row of its path.
func values(row map[string]any, f query.Field) []any {
	name := strings.TrimPrefix(strings.TrimPrefix(f.Path, f.Row()), ".")
	var list []any
	switch v := row[name].(type) {
	case nil:
	case []any:
		list = v
	default:
		list = []any{v}
	}
	if query.Keyed(f.Type) {
		return list
	}
	var texts []any
	for _, v := range list {
		if !slices.Contains(texts, v) {
			texts = append(texts, v)
		}
	}
	return texts
}

// number returns a number, date or boolean as a float64, in nanoseconds for a date_nanos when exact is set.
func number(f query.Field, v any, exact bool) float64 {
	switch v := v.(type) {
	case bool:
		if v {
			return 1
		}
		return 0
	case json.Number:
		n, _ := v.Float64()
		return n
	case string:
		at := instant(v)
		switch {
		case f.Type == "date":
			return float64(at.UnixMilli())
		case exact:
			return float64(at.UnixNano())
		default:
			return float64(at.UnixNano()) / 1e6
		}
	default:
		panic(v)
	}
}

// instant parses a date.
func instant(v any) time.Time {
	at, err := time.Parse(time.RFC3339Nano, v.(string))
	if err != nil {
		panic(err)
	}
	return at
}

// matches reports whether a node holds for a row of scope.
func (o oracle) matches(n *query.Node, scope string, id string, row map[string]any) bool {
	if n == nil {
		return true
	}
	some := func(holds func(v any) bool) bool {
		if n.Field.Path == "_id" {
			return holds(id)
		}
		return slices.ContainsFunc(values(row, n.Field), holds)
	}
	switch n.Op {
	case query.Everything:
		return true
	case query.And:
		return !slices.ContainsFunc(n.Children, func(c *query.Node) bool { return !o.matches(c, scope, id, row) })
	case query.Or:
		return slices.ContainsFunc(n.Children, func(c *query.Node) bool { return o.matches(c, scope, id, row) })
	case query.Not:
		return !o.matches(n.Children[0], scope, id, row)
	case query.Some:
		return slices.ContainsFunc(below(row, scope, n.Path), func(e map[string]any) bool {
			return o.matches(n.Children[0], n.Path, id, e)
		})
	case query.Terms:
		return some(func(v any) bool { return slices.Contains(n.Terms, term(v)) })
	case query.Range:
		return some(func(v any) bool { return inBounds(n, number(n.Field, v, true)) })
	case query.Patterns:
		return some(func(v any) bool {
			for _, p := range n.Patterns {
				if n.Fold && p.MatchFold(term(v)) || !n.Fold && p.Match(term(v)) {
					return true
				}
			}
			return false
		})
	case query.Exists:
		return some(func(any) bool { return true })
	default:
		return false
	}
}

// term returns a value in the form of Node.Terms.
func term(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	default:
		return v.(json.Number).String()
	}
}

func inBounds(n *query.Node, v float64) bool {
	at := func(b query.Bound) float64 {
		switch n.Field.Type {
		case "date":
			return float64(b.Time.UnixMilli())
		case "date_nanos":
			return float64(b.Time.UnixNano())
		default:
			f, _ := strconv.ParseFloat(b.Number, 64)
			return f
		}
	}
	if n.From.Set && (v < at(n.From) || v == at(n.From) && !n.From.Inclusive) {
		return false
	}
	return !n.To.Set || v < at(n.To) || v == at(n.To) && n.To.Inclusive
}

// found returns the documents that match.
func (o oracle) found(n *query.Node) []document {
	var out []document
	for _, d := range o.docs {
		if o.matches(n, "", d.id, d.body) {
			out = append(out, d)
		}
	}
	return out
}

// counted returns all values of a field in the counted rows of a document, with duplicates.
func (o oracle) counted(f query.Field, elements *query.Node, d document) []any {
	var all []any
	for _, row := range below(d.body, "", f.Row()) {
		if o.matches(elements, f.Row(), d.id, row) {
			all = append(all, values(row, f)...)
		}
	}
	return all
}

// keyText returns a value in the form of Bucket.Key.
func keyText(f query.Field, v any) string {
	switch f.Type {
	case "date_nanos":
		return strconv.FormatInt(instant(v).UnixMilli(), 10)
	case "date":
		return strconv.FormatInt(int64(number(f, v, false)), 10)
	case "float", "double":
		return jsontext.Number(number(f, v, false))
	default:
		return term(v)
	}
}

// facet evaluates a facet over documents.
func (o oracle) facet(a index.Facet, docs []document) index.FacetResult {
	r := index.FacetResult{Ranges: make([]int64, len(a.Ranges))}
	byKey, holders, firsts := map[string]int64{}, map[string][]document{}, map[string]any{}
	steps := map[float64]int64{}
	for _, d := range docs {
		if a.Missing && len(o.counted(a.Field, nil, d)) == 0 {
			r.Missing++
		}
		seen, seenSteps := map[string]bool{}, map[float64]bool{}
		ranges := make([]bool, len(a.Ranges))
		for _, v := range o.counted(a.Field, a.Elements, d) {
			exact := keyOf(a.Field, v)
			if !seen[exact] {
				seen[exact] = true
				byKey[exact]++
				holders[exact] = append(holders[exact], d)
				firsts[exact] = v
			}
			if !query.Keyed(a.Field.Type) {
				continue
			}
			n := number(a.Field, v, false)
			if a.Stats {
				add(&r.Stats, n)
			}
			if step := math.Floor(n / a.Histogram); a.Histogram > 0 && !seenSteps[step] {
				seenSteps[step] = true
				steps[step]++
			}
			for i, in := range a.Ranges {
				if !ranges[i] && (in.From == nil || *in.From <= n) && (in.To == nil || n < *in.To) {
					ranges[i] = true
					r.Ranges[i]++
				}
			}
		}
	}
	if a.Cardinality > 0 {
		r.Cardinality = int64(len(byKey))
	}
	if r.Stats.Count > 0 {
		r.Stats.Avg = r.Stats.Sum / float64(r.Stats.Count)
	}
	r.Histogram = filled(steps, a.Histogram)
	if a.Buckets != nil {
		r.Buckets = o.buckets(a, byKey, holders, firsts)
	}
	return r
}

// keyOf returns the identity of a value.
func keyOf(f query.Field, v any) string {
	if f.Type == "date_nanos" {
		return keyText(f, v)
	}
	if query.Keyed(f.Type) && f.Type != "unsigned_long" {
		return strconv.FormatFloat(number(f, v, true), 'g', -1, 64)
	}
	return term(v)
}

func add(s *index.Stats, n float64) {
	if s.Count == 0 {
		s.Min, s.Max = n, n
	}
	s.Min, s.Max, s.Sum, s.Count = min(s.Min, n), max(s.Max, n), s.Sum+n, s.Count+1
}

func filled(steps map[float64]int64, width float64) []index.Interval {
	if len(steps) == 0 {
		return nil
	}
	first, last := math.Inf(1), math.Inf(-1)
	for step := range steps {
		first, last = min(first, step), max(last, step)
	}
	var out []index.Interval
	for step := first; step <= last; step++ {
		out = append(out, index.Interval{Key: step * width, Count: steps[step]})
	}
	return out
}

func (o oracle) buckets(a index.Facet, byKey map[string]int64, holders map[string][]document, firsts map[string]any) []index.Bucket {
	var keys []string
	for key := range byKey {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y string) int {
		if c := cmp.Compare(byKey[y], byKey[x]); c != 0 {
			return c
		}
		if query.Keyed(a.Field.Type) {
			if c := cmp.Compare(number(a.Field, firsts[x], true), number(a.Field, firsts[y], true)); c != 0 {
				return c
			}
		}
		return cmp.Compare(x, y)
	})
	var out []index.Bucket
	for _, key := range keys[:min(len(keys), a.Buckets.Max)] {
		b := index.Bucket{Key: keyText(a.Field, firsts[key]), Count: byKey[key]}
		of := slices.SortedFunc(slices.Values(holders[key]), func(x, y document) int { return cmp.Compare(x.id, y.id) })
		for _, d := range of[:min(len(of), a.Buckets.TopHits)] {
			b.TopHits = append(b.TopHits, index.Hit{ID: d.id})
		}
		for _, filter := range a.Buckets.Filters {
			n := int64(0)
			for _, d := range of {
				if o.matches(filter, "", d.id, d.body) {
					n++
				}
			}
			b.Filters = append(b.Filters, n)
		}
		out = append(out, b)
	}
	return out
}

// sort sorts documents.
func (o oracle) sort(docs []document, sorts []index.Sort) {
	type placed struct {
		document
		by []any
	}
	all := make([]placed, 0, len(docs))
	for _, d := range docs {
		p := placed{document: d}
		for _, s := range sorts {
			p.by = append(p.by, o.sortValue(s, d))
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b placed) int {
		for i, s := range sorts {
			if c := compareBy(s, a.by[i], b.by[i]); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.id, b.id)
	})
	for i, p := range all {
		docs[i] = p.document
	}
}

// compareBy compares results of sortValue.
func compareBy(s index.Sort, x, y any) int {
	var c int
	switch x := x.(type) {
	case nil:
		if y == nil {
			return 0
		}
		if s.MissingFirst {
			return -1
		}
		return 1
	case string:
		if text, ok := y.(string); ok {
			c = cmp.Compare(x, text)
		}
	case float64:
		if n, ok := y.(float64); ok {
			c = cmp.Compare(x, n)
		}
	}
	if y == nil {
		return -compareBy(s, y, x)
	}
	if s.Descending {
		return -c
	}
	return c
}

// sortValue returns what a document is sorted by: a text or a float64, nil for no value.
func (o oracle) sortValue(s index.Sort, d document) any {
	if s.Field.Path == "_id" {
		return d.id
	}
	all := o.counted(s.Field, nil, d)
	if len(all) == 0 {
		return nil
	}
	mode := s.Mode
	if mode == "" {
		mode = "min"
		if s.Descending {
			mode = "max"
		}
	}
	if !query.Keyed(s.Field.Type) {
		var texts []string
		for _, v := range all {
			texts = append(texts, v.(string))
		}
		if mode == "min" {
			return slices.Min(texts)
		}
		return slices.Max(texts)
	}
	var numbers []float64
	sum := 0.0
	for _, v := range all {
		numbers = append(numbers, number(s.Field, v, true))
		sum += numbers[len(numbers)-1]
	}
	slices.Sort(numbers)
	whole := s.Field.Type == "long" || s.Field.Type == "integer" || s.Field.Type == "boolean" || s.Field.Type == "date"
	n := len(numbers)
	var v float64
	switch mode {
	case "min":
		return numbers[0]
	case "max":
		return numbers[n-1]
	case "sum":
		return sum
	case "avg":
		v = sum / float64(n)
	case "median":
		v = (numbers[(n-1)/2] + numbers[n/2]) / 2
	}
	if whole {
		v = math.Floor(v + 0.5)
	} else if s.Field.Type == "float" {
		v = float64(float32(v))
	}
	return v
}
